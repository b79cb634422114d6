"""LiveCodeBench, code generation (Jain et al. 2024, arXiv 2403.07974), as its `code_generation_lite` files.

`public_test_cases` are public, `private_test_cases` hidden. A test of type `stdin` is a text; one of type
`functional` calls a method of `class Solution`, with one JSON argument a line. The private tests may be packed
(base64 of zlib of a pickled JSON text); the pickle is opened for text only, so that a file cannot run code.
"""

from __future__ import annotations

import base64
import binascii
import io
import json
import pickle
import zlib
from pathlib import Path
from typing import Any, NoReturn

from smalt.problems.problem import CallTest, Problem, StdinTest
from smalt.problems.records import Record, describe, read_records, unique_ids

_PREAMBLE = "from typing import *\n"
"""LeetCode's signatures use these names without importing them."""


def read_livecodebench(path: str | Path) -> list[Problem]:
    """Read a LiveCodeBench file, `.jsonl`, `.jsonl.gz` or `.json`.

    Raises:
        ProblemFileError: a field is missing, of the wrong type, or packed in an unknown way.
    """
    return unique_ids((record, problem_from_record(record)) for record in read_records(path))


def problem_from_record(record: Record) -> Problem:
    """One problem from a record of the file."""
    starter_code = record.text("starter_code", default="")
    entry_point = _entry_point(record)
    return record.problem(
        id=record.text("question_id"),
        statement=record.text("question_content"),
        public_tests=_tests(record, "public_test_cases", entry_point),
        hidden_tests=_tests(record, "private_test_cases", entry_point),
        entry_point=entry_point,
        starter_code=starter_code or None,
        preamble=_PREAMBLE if entry_point else "",
        metadata={
            "source": "livecodebench",
            **{
                name: record.fields[name]
                for name in ("platform", "difficulty", "contest_date")
                if name in record.fields
            },
        },
    )


def _entry_point(record: Record) -> str | None:
    metadata = _json(record, "metadata", record.text("metadata", default="{}"))
    name = metadata.get("func_name") if isinstance(metadata, dict) else None
    return str(name) if name else None


def _tests(record: Record, field: str, entry_point: str | None) -> list[StdinTest | CallTest]:
    text = record.text(field, default="")
    if not text.strip():
        return []
    rows = _json(record, field, text if text.lstrip().startswith("[") else _unpacked(record, field, text))
    if not isinstance(rows, list):
        raise record.error(field, f"{describe(rows)}; expected a list of tests")
    return [_test(record, f"{field}[{index}]", row, entry_point) for index, row in enumerate(rows)]


def _test(record: Record, field: str, row: Any, entry_point: str | None) -> StdinTest | CallTest:
    if not isinstance(row, dict):
        raise record.error(field, f"{describe(row)}; expected an object with input, output and testtype")
    inner = Record(record.place, {f"{field}.{name}": value for name, value in row.items()})
    given, expected = inner.text(f"{field}.input"), inner.text(f"{field}.output")
    if row.get("testtype") != "functional":
        return StdinTest(stdin=given, expected=expected)
    if entry_point is None:
        raise record.error("metadata", "names no func_name; functional tests need it")
    arguments = [_json(inner, f"{field}.input", line) for line in given.split("\n") if line.strip()]
    return CallTest(args=tuple(arguments), expected=_json(inner, f"{field}.output", expected))


def _json(record: Record, field: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise record.error(field, f"is not JSON: {error}") from None


def _unpacked(record: Record, field: str, text: str) -> str:
    try:
        value = _TextUnpickler(io.BytesIO(zlib.decompress(base64.b64decode(text, validate=True)))).load()
    except (binascii.Error, zlib.error, pickle.UnpicklingError, EOFError, ValueError) as error:
        raise record.error(field, f"cannot be unpacked ({error}); expected JSON or LiveCodeBench's packing") from None
    if not isinstance(value, str):
        raise record.error(field, f"holds {type(value).__name__}; expected a JSON text")
    return value


class _TextUnpickler(pickle.Unpickler):
    """Opens pickles of plain data; whatever names a class or function is refused."""

    def find_class(self, module_name: str, global_name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it names {module_name}.{global_name}")
