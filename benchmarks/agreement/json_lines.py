"""Reading the study's data files as plain objects."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from smalt.problems.records import read_records


def objects(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a `.jsonl`, `.jsonl.gz` or `.json` file."""
    return (record.fields for record in read_records(path))
