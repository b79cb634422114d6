"""MBPP (Austin et al. 2021, arXiv 2108.07732): the full file and the sanitized one.

The first assert is public and shown in the statement, as the data set's prompt does, because name and
signature of the function are given nowhere else. The other asserts and the challenge tests are hidden.
"""

from __future__ import annotations

import ast
import builtins
from pathlib import Path

from smalt.problems.asserts import asserted_rule, call_test, called_names
from smalt.problems.problem import CodeTest, Problem, TestCase
from smalt.problems.records import Record, read_records, unique_ids

# Inclusive ranges of task_id, section 2.1 of the paper.
_SPLITS = {"prompt": (1, 10), "test": (11, 510), "validation": (511, 600), "train": (601, 974)}


def read_mbpp(path: str | Path) -> list[Problem]:
    """Read `mbpp.jsonl` or `sanitized-mbpp.json`; `metadata["split"]` is the split by task_id.

    Raises:
        ProblemFileError: a field is missing, or a test is no assert that calls a function of the solution.
    """
    return unique_ids((record, problem_from_record(record)) for record in read_records(path))


def problem_from_record(record: Record) -> Problem:
    """One problem from a record of the file."""
    number = _task_number(record)
    solution = _unix_lines(record.text("code"))
    asserts = [_unix_lines(test) for test in record.texts("test_list")]
    if not asserts:
        raise record.error("test_list", "is empty; expected a list of assert statements")
    entry_point = _entry_point(record, asserts[0], solution)
    setup = _setup(record)
    challenge = [_unix_lines(test) for test in record.texts("challenge_test_list")]
    hidden = dict.fromkeys([*asserts[1:], *challenge])  # a challenge may repeat a test
    public_tests = [_test(record, asserts[0], entry_point, setup)]
    hidden_tests = [_test(record, test, entry_point, setup) for test in hidden if test != asserts[0]]
    text = record.text("text" if "text" in record.fields else "prompt")
    return record.problem(
        id=f"mbpp/{number}",
        statement=f"{_unix_lines(text).strip()}\nYour code should pass this test:\n{asserts[0]}",
        public_tests=public_tests,
        hidden_tests=hidden_tests,
        entry_point=entry_point,
        compare=asserted_rule(public_tests, hidden_tests),
        solutions=[solution],
        metadata={"source": "mbpp", "split": _split(number)},
    )


def _task_number(record: Record) -> int:
    value = record.fields.get("task_id")
    if isinstance(value, str):
        value = value.removeprefix("Mbpp/")
    try:
        return int(value)  # type: ignore[arg-type]  # what is no number raises
    except (TypeError, ValueError):
        raise record.error("task_id", f"{value!r}; expected a number such as 11") from None


def _split(number: int) -> str:
    return next((name for name, (low, high) in _SPLITS.items() if low <= number <= high), "other")


def _unix_lines(text: str) -> str:
    # The files hold \r\n inside code.
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _setup(record: Record) -> str:
    setup = _unix_lines(record.text("test_setup_code", default="")).strip()
    return "\n".join([*record.texts("test_imports"), *([setup] if setup else [])])


def _entry_point(record: Record, test: str, solution: str) -> str:
    """The function that the first assert is about: the one it calls and the solution defines."""
    names = called_names(_parse(record, test))
    defined = _defined_names(solution)
    candidates = [name for name in names if name in defined]
    candidates += [name for name in names if not hasattr(builtins, name)]
    if not candidates:
        raise record.error("test_list[0]", f"calls no function: {test!r}; expected assert name(...) == value")
    return candidates[0]


def _defined_names(solution: str) -> set[str]:
    try:
        tree = ast.parse(solution)
    except SyntaxError:
        return set()
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def _parse(record: Record, test: str) -> ast.Module:
    try:
        return ast.parse(test)
    except SyntaxError:
        raise record.error("test_list", f"{test!r} is not Python code; expected an assert statement") from None


def _test(record: Record, test: str, entry_point: str, setup: str) -> TestCase:
    statements = _parse(record, test).body
    call = call_test(statements[0], entry_point) if len(statements) == 1 else None
    return call or CodeTest(code=f"{setup}\n{test}" if setup else test)
