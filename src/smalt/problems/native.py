"""The native problem format: JSON Lines, one problem a line. `docs/formats.md` describes every field.

Reading is strict: an unknown field is an error, because a misspelt `hidden_test` that is silently dropped
changes what a run measures.
"""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from smalt.problems.problem import CallTest, CodeTest, Limits, Problem, StdinTest, TestCase
from smalt.problems.records import (
    ProblemFileError,
    Record,
    describe,
    first_complaint,
    read_records,
    unique_ids,
)
from smalt.problems.values import decode_value, encode_value

_FIELDS = tuple(Problem.model_fields)
_TEST_SHAPES = '{"stdin": .., "expected": ..}, {"args": [..], "expected": ..} or {"code": ..}'


def read_native(path: str | Path) -> list[Problem]:
    """Read a native file (`.jsonl` or `.jsonl.gz`).

    Raises:
        ProblemFileError: with file, line, field, what was expected and the fix.
    """
    return unique_ids((record, problem_from_record(record)) for record in read_records(path))


def write_native(path: str | Path, problems: Iterable[Problem]) -> None:
    """Write problems as a native file, compressed when the name ends in `.gz`.

    The file appears whole or not at all: it is written beside its place and then moved there.

    Raises:
        ProblemFileError: a value that the format cannot hold, or an id that repeats; nothing is written.
    """
    path = Path(path)
    lines = []
    seen: set[str] = set()
    for problem in problems:
        if problem.id in seen:
            raise ProblemFileError(f"{path}: id {problem.id!r} repeats; give each problem its own")
        seen.add(problem.id)
        lines.append(_line(path, problem))
    data = "".join(lines).encode()
    # mtime=0: equal problems make equal files.
    _write_atomically(path, gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def problem_from_record(record: Record) -> Problem:
    """One problem from its JSON object."""
    unknown = [field for field in record.fields if field not in _FIELDS]
    if unknown:
        raise record.error(unknown[0], f"unknown field; known are {', '.join(_FIELDS)}")
    fields = {field: value for field, value in record.fields.items() if value is not None}
    for field in ("id", "statement"):
        if not record.text(field).strip():
            raise record.error(field, "is empty; expected some text")
    for field in ("entry_point", "starter_code", "preamble"):
        record.text(field, default="")
    fields["solutions"] = record.texts("solutions")
    fields["metadata"] = _object(record, "metadata")
    for field in ("public_tests", "hidden_tests"):
        fields[field] = _tests(record, field)
    if "limits" in fields:
        fields["limits"] = _limits(record)
    return record.problem(**fields)


def _object(record: Record, field: str) -> dict[str, Any]:
    value = record.fields.get(field)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise record.error(field, f"{describe(value)}; expected an object")
    return value


def _limits(record: Record) -> Limits:
    try:
        return Limits(**_object(record, "limits"))
    except ValidationError as error:
        field, message = first_complaint(error)
        known = ", ".join(Limits.model_fields)
        raise record.error(f"limits.{field}", f"{message}; known limits are {known}") from None


def _tests(record: Record, field: str) -> list[TestCase]:
    tests = record.fields.get(field)
    if tests is None:
        return []
    if not isinstance(tests, list):
        raise record.error(field, f"{describe(tests)}; expected a list of tests, each {_TEST_SHAPES}")
    return [_test(record, f"{field}[{index}]", test) for index, test in enumerate(tests)]


def _test(record: Record, field: str, test: Any) -> TestCase:
    if not isinstance(test, dict):
        raise record.error(field, f"{describe(test)}; expected {_TEST_SHAPES}")
    inner = Record(record.place, {f"{field}.{name}": value for name, value in test.items()})
    kind = next((name for name in ("stdin", "args", "code") if name in test), None)
    if kind is None:
        raise record.error(field, f"has none of stdin, args, code; expected {_TEST_SHAPES}")
    allowed = ("code",) if kind == "code" else (kind, "expected")
    for name in test:
        if name not in allowed:
            raise inner.error(f"{field}.{name}", f"unknown beside {kind!r}; expected {_TEST_SHAPES}")
    if kind == "code":
        return CodeTest(code=inner.text(f"{field}.code"))
    if kind == "stdin":
        return StdinTest(stdin=inner.text(f"{field}.stdin"), expected=inner.text(f"{field}.expected"))
    return _call_test(inner, field, test)


def _call_test(inner: Record, field: str, test: dict[str, Any]) -> CallTest:
    if not isinstance(test["args"], list):
        message = f"{describe(test['args'])}; expected a list, an item for each argument, such as [[1, 2], 3]"
        raise inner.error(f"{field}.args", message)
    if "expected" not in test:
        raise inner.error(f"{field}.expected", "missing; expected the value that the call returns")
    values = {}
    for name in ("args", "expected"):
        try:
            values[name] = decode_value(test[name])
        except (ValueError, RecursionError) as error:
            raise inner.error(f"{field}.{name}", str(error)) from None
    return CallTest(args=tuple(values["args"]), expected=values["expected"])


def _line(path: Path, problem: Problem) -> str:
    fields = problem.model_dump(exclude_defaults=True, exclude={"public_tests", "hidden_tests"})
    for name, tests in (("public_tests", problem.public_tests), ("hidden_tests", problem.hidden_tests)):
        for index, test in enumerate(tests):
            try:
                fields.setdefault(name, []).append(_test_fields(test))
            except ValueError as error:
                raise ProblemFileError(f"{path}: {problem.id}: {name}[{index}]: {error}") from None
    try:
        return json.dumps(fields, allow_nan=False) + "\n"
    except (TypeError, ValueError) as error:
        raise ProblemFileError(f"{path}: {problem.id}: metadata: JSON cannot hold it: {error}") from None


def _test_fields(test: TestCase) -> dict[str, Any]:
    if isinstance(test, CallTest):
        return {"args": [encode_value(value) for value in test.args], "expected": encode_value(test.expected)}
    return test.model_dump()


def _write_atomically(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp files are private to the user; a problem file follows the umask like any other.
        umask = os.umask(0)
        os.umask(umask)
        Path(temporary).chmod(0o666 & ~umask)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
