"""APPS (Hendrycks et al. 2021, arXiv 2105.09938) and TACO (Li et al. 2023, arXiv 2312.14852).

Tests stand in `input_output`: lists `inputs` and `outputs`, with `fn_name` where the task is a function. The
originals keep it and `solutions` as strings of JSON; plain objects are read too. A function's results are
unwrapped where every one of them is a list of one; such a list as a result itself cannot be told apart.

Public tests are chosen as in CodeContests-like files; of a function's tests they are the first `public_count`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from smalt.problems import codecontests
from smalt.problems.codecontests import PUBLIC_COUNT
from smalt.problems.problem import CallTest, Problem
from smalt.problems.records import Record, describe, read_records, unique_ids


def read_apps(path: str | Path, public_count: int = PUBLIC_COUNT) -> list[Problem]:
    """Read an APPS-like file, `.jsonl`, `.jsonl.gz` or `.json`.

    Args:
        path: the file.
        public_count: how many tests of a problem become public (Cobalt: 4).

    Raises:
        ProblemFileError: a field is missing or of the wrong type.
    """
    return unique_ids((record, problem_from_record(record, public_count)) for record in read_records(path))


def problem_from_record(record: Record, public_count: int = PUBLIC_COUNT) -> Problem:
    """One problem from a record of the file."""
    tests = _unpacked(record, "input_output")
    if not isinstance(tests, dict):
        raise record.error("input_output", f"{describe(tests)}; expected an object with inputs and outputs")
    inputs, outputs = _pair_of_lists(record, tests)
    solutions = _unpacked(record, "solutions") or []
    if tests.get("fn_name"):
        return _function_problem(record, tests["fn_name"], inputs, outputs, solutions, public_count)
    as_codecontests = {
        "name": _name(record),
        "description": record.text("question"),
        "tests": [
            {"input": _lines(given), "output": _lines(expected)}
            for given, expected in zip(inputs, outputs, strict=True)
        ],
        "solutions": solutions,
    }
    problem = codecontests.problem_from_record(Record(record.place, as_codecontests), public_count)
    return problem.model_copy(update={"metadata": _metadata(record)})


def _function_problem(
    record: Record, name: Any, inputs: list[Any], outputs: list[Any], solutions: list[str], public_count: int
) -> Problem:
    # Codewars' results each stand in a list of one, LeetCode's do not.
    is_wrapped = all(isinstance(expected, list) and len(expected) == 1 for expected in outputs)
    tests = [
        CallTest(args=tuple(_list_of(record, "inputs", given)), expected=expected[0] if is_wrapped else expected)
        for given, expected in zip(inputs, outputs, strict=True)
    ]
    return record.problem(
        id=_name(record),
        statement=record.text("question"),
        public_tests=tests[:public_count],
        hidden_tests=tests[public_count:],
        entry_point=name,
        starter_code=record.text("starter_code", default="") or None,
        preamble=_PREAMBLE,
        solutions=solutions,
        metadata=_metadata(record),
    )


# LeetCode's signatures use these names without importing them.
_PREAMBLE = "from typing import *\n"


def _unpacked(record: Record, field: str) -> Any:
    """A field that is JSON data, or a string of JSON."""
    value = record.fields.get(field)
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value) if value.strip() else None
    except ValueError as error:
        raise record.error(field, f"is not JSON ({error}); expected an object or its JSON text") from None


def _pair_of_lists(record: Record, tests: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    inputs, outputs = (_list_of(record, name, tests.get(name)) for name in ("inputs", "outputs"))
    if len(inputs) != len(outputs) or not inputs:
        counts = f"{len(inputs)} inputs and {len(outputs)} outputs"
        raise record.error("input_output", f"has {counts}; expected as many, at least one")
    return inputs, outputs


def _list_of(record: Record, name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise record.error(f"input_output.{name}", f"{describe(value)}; expected a list")
    return value


def _lines(text: Any) -> str:
    # Some tests keep their lines as a list.
    return "\n".join(map(str, text)) if isinstance(text, list) else str(text)


def _name(record: Record) -> str:
    """Problems have an id or a number, or only the URL they come from."""
    for field in ("id", "problem_id", "url"):
        value = record.fields.get(field)
        if value is not None and str(value).strip():
            return str(value)
    raise record.error("id", "missing; expected id, problem_id or url")


def _metadata(record: Record) -> dict[str, Any]:
    kept = {field: record.fields[field] for field in ("difficulty", "source", "url") if record.fields.get(field)}
    return {"source": "apps", **{f"original_{key}" if key == "source" else key: value for key, value in kept.items()}}
