"""CodeContests-like problems: programs that read standard input (Li et al. 2022, arXiv 2203.07814).

Two layouts are read: one list `tests` of `{input, output}`, each with an optional `public` flag, and the
original data set's `public_tests`, `private_tests` and `generated_tests` with lists of inputs and outputs.
Where a file does not say which tests are public, `public_count` of them are taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from smalt.problems.problem import Problem, StdinTest
from smalt.problems.records import Record, describe, read_records, unique_ids

PUBLIC_COUNT = 4
"""Public tests of a problem whose file does not name them: Cobalt's split of TACO (arXiv 2602.03806)."""

_PYTHON_3 = 3  # CodeContests' number for Python 3 in `solutions.language`
_TEST_LISTS = ("public_tests", "private_tests", "generated_tests")


def read_codecontests(path: str | Path, public_count: int = PUBLIC_COUNT) -> list[Problem]:
    """Read a CodeContests-like file.

    Args:
        path: a `.jsonl`, `.jsonl.gz` or `.json` file.
        public_count: how many tests become public where the file does not tell (Cobalt: 4).

    Raises:
        ProblemFileError: a field is missing or of the wrong type.
    """
    return unique_ids((record, problem_from_record(record, public_count)) for record in read_records(path))


def problem_from_record(record: Record, public_count: int = PUBLIC_COUNT) -> Problem:
    """One problem from a record of the file."""
    field = "description" if "description" in record.fields else "statement"
    statement = _without_run_instructions(record.text(field))
    if not statement.strip():
        raise record.error(field, "is empty; expected the text of the task")
    if "tests" in record.fields:
        public, hidden = _split_tests(record, statement, public_count)
    else:
        public = _columns(record, "public_tests")
        hidden = [test for name in _TEST_LISTS[1:] for test in _columns(record, name)]
    return record.problem(
        id=record.text("name"),
        statement=statement,
        public_tests=public,
        hidden_tests=hidden,
        solutions=list(_solutions(record)),
        metadata={"source": "codecontests"},
    )


def _without_run_instructions(statement: str) -> str:
    # One packaging of the data ends each statement with how to start its own scripts; no part of the task.
    return re.sub(r"\n## Testing\n\nRun the solution with:.*\Z", "\n", statement, flags=re.DOTALL)


def _split_tests(record: Record, statement: str, public_count: int) -> tuple[list[StdinTest], list[StdinTest]]:
    rows = record.fields["tests"]
    if not isinstance(rows, list):
        raise record.error("tests", f"{describe(rows)}; expected a list of {{input, output}}")
    tests = [_row_test(record, index, row) for index, row in enumerate(rows)]
    if any("public" in row for row in rows):
        is_public = [bool(row.get("public")) for row in rows]
    else:
        chosen = _chosen(tests, statement, public_count)
        is_public = [index in chosen for index in range(len(tests))]
    public = [test for test, shown in zip(tests, is_public, strict=True) if shown]
    hidden = [test for test, shown in zip(tests, is_public, strict=True) if not shown]
    return public, hidden


def _chosen(tests: list[StdinTest], statement: str, public_count: int) -> set[int]:
    """Which tests become public: those the statement prints, then those with the shortest input.

    A test that the statement prints is known to the policy anyway; counted as hidden it would reward
    copying it.
    """
    chosen = {index for index, test in enumerate(tests) if _is_printed(test, statement)}
    for index in sorted(range(len(tests)), key=lambda index: len(tests[index].stdin)):
        if len(chosen) >= public_count:
            break
        chosen.add(index)
    return chosen


def _is_printed(test: StdinTest, statement: str) -> bool:
    """Whether the statement has the input as whole lines, and soon after it the output."""
    given, expected = test.stdin.strip(), test.expected.strip()
    if not given or not expected:
        return False
    pattern = rf"\n\s*{re.escape(given)}\s*\n.{{0,60}}?\n\s*{re.escape(expected)}\s*\n"
    return re.search(pattern, statement + "\n", flags=re.DOTALL) is not None


def _row_test(record: Record, index: int, row: Any) -> StdinTest:
    field = f"tests[{index}]"
    if not isinstance(row, dict):
        raise record.error(field, f"{describe(row)}; expected an object with input and output")
    inner = Record(record.place, {f"{field}.{name}": value for name, value in row.items()})
    return StdinTest(stdin=inner.text(f"{field}.input"), expected=inner.text(f"{field}.output"))


def _columns(record: Record, field: str) -> list[StdinTest]:
    """Tests kept as two lists of equal length, `input` and `output`."""
    value = record.fields.get(field)
    if value is None:
        return []
    if not isinstance(value, dict):
        raise record.error(field, f"{describe(value)}; expected an object with the lists input and output")
    inner = Record(record.place, {f"{field}.{name}": item for name, item in value.items()})
    inputs, outputs = inner.texts(f"{field}.input"), inner.texts(f"{field}.output")
    if len(inputs) != len(outputs):
        raise record.error(field, f"has {len(inputs)} inputs and {len(outputs)} outputs; expected as many")
    return [StdinTest(stdin=given, expected=expected) for given, expected in zip(inputs, outputs, strict=True)]


def _solutions(record: Record) -> Iterator[str]:
    """Accepted Python 3 programs, wherever the layout keeps them."""
    if "solution" in record.fields:
        yield record.text("solution")
    solutions = record.fields.get("solutions")
    if isinstance(solutions, dict):
        languages, programs = solutions.get("language", []), solutions.get("solution", [])
        yield from (code for language, code in zip(languages, programs, strict=False) if language == _PYTHON_3)
    else:
        yield from record.texts("solutions")
