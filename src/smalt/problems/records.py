"""Problem files as records: lines of JSON with the place each came from.

Every reader goes through `read_records`, so that each error names the file, the line, the field, what was
expected there and how to put it right.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from smalt.problems.problem import Problem


class ProblemFileError(ValueError):
    """A problem file that cannot be read; the message says where, what was expected and the fix."""


@dataclass(frozen=True)
class Record:
    """One JSON object of a problem file.

    `place` is where it stands: `file:line` in a file of lines, `file[index]` in a JSON array.
    """

    place: str
    fields: dict[str, Any]

    def error(self, field: str, message: str) -> ProblemFileError:
        """The error to raise for a field of this record."""
        return ProblemFileError(f"{self.place}: {field}: {message}")

    def text(self, field: str, default: str | None = None) -> str:
        """A field that holds a string; `default` stands in for a missing or null one."""
        value = self.fields.get(field)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise self.error(field, f"{describe(value, field in self.fields)}; expected a string")
        return value

    def texts(self, field: str) -> list[str]:
        """A field that holds a list of strings; missing or null means none."""
        value = self.fields.get(field)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.error(field, f"{describe(value)}; expected a list of strings")
        for index, item in enumerate(value):
            if not isinstance(item, str):
                raise self.error(f"{field}[{index}]", f"{describe(item)}; expected a string")
        return value

    def problem(self, **fields: Any) -> Problem:
        """Build the problem; what the model refuses becomes an error at this record's place."""
        try:
            return Problem(**fields)
        except ValidationError as error:
            raise self.error(*first_complaint(error)) from None


def describe(value: object, present: bool = True) -> str:
    """How an error message names a value of the wrong type: `missing`, `null`, `a list`, ..."""
    if not present:
        return "missing"
    if value is None:
        return "is null"
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a string", dict: "an object"}
    return f"is {names.get(type(value), 'a list')}"


def first_complaint(error: ValidationError) -> tuple[str, str]:
    """Field and message of the first thing that pydantic refused."""
    complaint = error.errors()[0]
    field = ".".join(str(part) for part in complaint["loc"]) or "problem"
    return field, complaint["msg"].removeprefix("Value error, ")


def read_records(path: str | Path) -> Iterator[Record]:
    """Read the objects of a `.jsonl` file, one a line, or of a `.json` file that is one array.

    `.gz` is unpacked. Blank lines are skipped. A file without a single object is an error.
    """
    text = _read_text(Path(path))
    is_array = ".json" in Path(path).suffixes and text.lstrip().startswith("[")
    records = _array_records(path, text) if is_array else _line_records(path, text)
    found = False
    for record in records:
        found = True
        yield record
    if not found:
        raise ProblemFileError(f"{path}: is empty; expected one JSON object a line, a problem each")


def unique_ids(places: Iterator[tuple[Record, Problem]]) -> list[Problem]:
    """The problems of a file; a repeated id is an error, because results are joined by id."""
    first_place: dict[str, str] = {}
    problems = []
    for record, problem in places:
        if problem.id in first_place:
            seen = first_place[problem.id]
            raise record.error("id", f"{problem.id!r} repeats the id at {seen}; give each problem its own")
        first_place[problem.id] = record.place
        problems.append(problem)
    return problems


def _read_text(path: Path) -> str:
    try:
        data = path.read_bytes()
        if path.suffix == ".gz":
            data = gzip.decompress(data)
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ProblemFileError(f"{path}: cannot be read: {reason}") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ProblemFileError(f"{path}: is not UTF-8 text (byte {error.start}); convert it to UTF-8") from None


def _line_records(path: str | Path, text: str) -> Iterator[Record]:
    # Not splitlines(): JSON strings may hold U+2028 and other characters that it would split at.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield _record(f"{path}:{number}", _parse(f"{path}:{number}", line))


def _array_records(path: str | Path, text: str) -> Iterator[Record]:
    for index, value in enumerate(_parse(str(path), text)):
        yield _record(f"{path}[{index}]", value)


def _parse(place: str, text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where = f"column {error.colno}" if ":" in place else f"line {error.lineno}, column {error.colno}"
        raise ProblemFileError(f"{place}: is not JSON: {error.msg} at {where}") from None
    except (ValueError, RecursionError) as error:
        raise ProblemFileError(f"{place}: cannot be read as JSON: {error}") from None


def _record(place: str, value: Any) -> Record:
    if not isinstance(value, dict):
        raise ProblemFileError(f"{place}: {describe(value)}; expected a JSON object, a problem each")
    return Record(place, value)
