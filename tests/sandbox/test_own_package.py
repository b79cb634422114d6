"""Where this library is installed like any other, programs cannot read it: it makes the lab's tests."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import smalt
from smalt.sandbox.isolation import Layer
from smalt.sandbox.worker.layers import landlock, root

PROBE = r"""
import os, sys
def tried(act):
    try:
        return str(act())
    except Exception as error:
        return type(error).__name__
import beside
home = os.path.dirname(beside.__file__)
print(beside.ANSWER, 'smalt' in os.listdir(home))
print(tried(lambda: __import__('smalt.lab.generator').lab.generator.generate))
print(tried(lambda: open(home + '/smalt/lab/generator.py').read()[:20]))
"""
CALLER = """
import sys
import smalt
from smalt.problems.problem import Limits
from smalt.sandbox.execution import Job, StdinInput
from smalt.sandbox.forkserver import ForkServerSandbox
from smalt.sandbox.isolation import IsolationSettings, Layer
with ForkServerSandbox(1, settings=IsolationSettings(frozenset(map(Layer, sys.argv[2:])))) as sandbox:
    [execution] = sandbox.run(Job(sys.argv[1], (StdinInput(""),), Limits()))
print(smalt.__file__, execution.error, execution.stdout, sep="\\n")
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of installed packages: a copy of this library, and a module beside it."""
    folder = tmp_path_factory.mktemp("installed") / "site-packages"
    skipped = shutil.ignore_patterns("__pycache__", "*.safetensors", "*.gguf")
    shutil.copytree(Path(smalt.__file__).parent, folder / "smalt", ignore=skipped)
    (folder / "beside.py").write_text("ANSWER = 42\n")
    return folder


@pytest.mark.parametrize("without", [[], [Layer.NAMESPACES], [Layer.LANDLOCK]])
def test_its_own_package_is_out_of_reach(installed: Path, without: list[Layer]) -> None:
    if landlock.abi_version() == 0 and Layer.NAMESPACES in without:
        pytest.skip("below the minimum without Landlock")
    others = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if not Path(path, "smalt").is_dir()]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(installed), *filter(None, others)])}
    done = subprocess.run(
        [sys.executable, "-c", CALLER, PROBE, *without], env=environment, capture_output=True, text=True, check=True
    )
    place, error, beside, imported, read = done.stdout.strip().splitlines()
    assert place == str(installed / "smalt" / "__init__.py") and error == ""
    assert beside == "42 True"
    assert imported in ("ModuleNotFoundError", "PermissionError")
    assert read in ("FileNotFoundError", "PermissionError")


def test_a_folder_is_left_out_of_those_around_it(tmp_path: Path) -> None:
    for name in ("a/b/hidden/x", "a/b/seen", "a/other", "c"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "a" / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "d").symlink_to(tmp_path / "a")
    hidden = tmp_path / "a" / "b" / "hidden"
    whole, apart = root.around([str(tmp_path / name) for name in ("a", "c", "d")], hidden)
    assert set(whole) == {str(tmp_path / name) for name in ("a/b/seen", "a/other", "c")}
    assert set(apart) == {str(tmp_path / name) for name in ("a", "a/b")}
    assert root.around([str(hidden)], hidden) == ([], [])
