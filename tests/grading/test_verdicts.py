from typing import Any

import pytest

from smalt.grading.verdicts import Grade, HiddenResult, PublicResult, Status
from smalt.problems.problem import StdinTest

PASSED, WRONG, CRASH, INFRA = Status.PASSED, Status.WRONG_ANSWER, Status.RUNTIME_ERROR, Status.INFRA_ERROR


def grade(public: list[Status], hidden: list[Status], **fields: Any) -> Grade:
    test = StdinTest(stdin="", expected="")
    return Grade(
        tuple(PublicResult(test, status, "") for status in public),
        tuple(HiddenResult(status) for status in hidden),
        **fields,
    )


@pytest.mark.parametrize(
    ("public", "hidden", "status"),
    [
        ([PASSED], [PASSED], PASSED),
        ([], [], PASSED),
        ([PASSED], [CRASH, WRONG], CRASH),
        ([WRONG], [CRASH], WRONG),
        ([WRONG], [PASSED, INFRA], INFRA),
    ],
)
def test_the_program_in_one_word(public: list[Status], hidden: list[Status], status: Status) -> None:
    assert grade(public, hidden).status is status


def test_skipped_tests_have_not_passed() -> None:
    result = grade([PASSED], [PASSED, WRONG], skipped=1)
    assert (result.pass_rate, result.passes_public, result.passes_hidden, result.passes_all) == (
        0.5,
        True,
        False,
        False,
    )


def test_a_hidden_result_holds_nothing_that_could_be_told() -> None:
    assert all(not isinstance(value, str) or value in set(Status) for value in vars(HiddenResult(WRONG)).values())


def test_costs_add_up() -> None:
    costs = Grade((), (HiddenResult(PASSED, 1.0, 2.0, 30), HiddenResult(WRONG, 0.5, 1.0, 20)))
    assert (costs.cpu_seconds, costs.wall_seconds, costs.peak_memory_bytes) == (1.5, 3.0, 30)
    assert Grade((), ()).peak_memory_bytes == 0
