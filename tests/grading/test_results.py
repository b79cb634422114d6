from itertools import count
from typing import Any

import pytest

from smalt.grading.results import MAX_OUTPUT_CHARACTERS, public_result
from smalt.grading.verdicts import Status
from smalt.problems.problem import CallTest, Limits, StdinTest
from smalt.sandbox.execution import Execution, Outcome

CALL = CallTest(args=(), expected=1)


def nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a", "'a'"),
        (None, "None"),
        ((1, {2}), "(1, {2})"),
        (10**5000, "<a value with an integer too long to print>"),
        (nested(100_000), "<a value nested too deep to print>"),
    ],
    ids=count(),
)
def test_values_are_shown(value: Any, shown: str) -> None:
    assert public_result(CALL, Execution(Outcome.OK, value=value), Status.PASSED, Limits()).output == shown


def test_of_a_call_that_failed_its_printing_is_shown() -> None:
    execution = Execution(Outcome.RUNTIME_ERROR, stdout="here", error="E: e", error_type="E", peak_memory_bytes=5)
    result = public_result(CALL, execution, Status.RUNTIME_ERROR, Limits(cpu_seconds=3))
    assert (result.output, result.error, result.error_type) == ("here", "E: e", "E")
    assert (result.time_limit, result.peak_memory_bytes) == (3, 5)


def test_long_outputs_are_cut() -> None:
    text = "x" * (MAX_OUTPUT_CHARACTERS + 1)
    execution = Execution(Outcome.OK, stdout=text)
    output = public_result(StdinTest(stdin="", expected=""), execution, Status.WRONG_ANSWER, Limits()).output
    assert output == f"{text[:-1]}\n... (cut, {len(text)} characters in all)"
