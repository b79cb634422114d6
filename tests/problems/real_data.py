"""Where the real data sets are: read in place, never copied."""

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("SMALT_DATA", Path(__file__).parents[3] / "shared" / "data"))


def data_file(name: str) -> Path:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{name} is absent; set SMALT_DATA to the folder of the data sets")
    return path
