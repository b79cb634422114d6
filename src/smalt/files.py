"""Small files that other tools read, and folders, written as a whole or not at all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def write_text(path: Path, text: str) -> None:
    """Write `text` atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """Write `value` as JSON, atomically."""
    write_text(path, json.dumps(value, indent=2) + "\n")


def read_json(path: Path) -> Any | None:
    """The value in a JSON file, or None when there is no such file."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A path beside `folder`, free to be made a folder, that replaces `folder` when the block ends well."""
    temporary = folder.with_name(folder.name + ".tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    yield temporary
    shutil.rmtree(folder, ignore_errors=True)
    temporary.replace(folder)
