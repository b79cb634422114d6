from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smalt.grading.examination import Examination
from smalt.grading.policy import GraderStatistics, GradingPolicy
from smalt.grading.verdicts import Grade, Status
from smalt.problems.problem import CodeTest, Limits, Problem
from smalt.sandbox.execution import CodeInput, Execution, Outcome
from tests.grading.scripted_sandbox import (
    BROKEN,
    CRASH,
    INFRA,
    OUT_OF_BUDGET,
    RIGHT,
    SLOW,
    WRONG,
    ScriptedSandbox,
    numbered_problem,
    numbers,
    scripted,
)

NO_AUDIT = GradingPolicy(audit_share=0)
STOPPING = GradingPolicy(audit_share=0, stops_at_first_failure=True)


def examined(
    sandbox: ScriptedSandbox, tests: int, policy: GradingPolicy = NO_AUDIT, public: int = 0
) -> tuple[Grade, GraderStatistics]:
    problem = numbered_problem(tests, public)
    return Examination(sandbox, problem, "program", Limits(cpu_seconds=1.0), policy).run()


def statuses(grade: Grade) -> list[str]:
    return [result.status.value for result in grade.results]


def test_passes_take_one_batch() -> None:
    sandbox = scripted([RIGHT] * 3)
    grade, count = examined(sandbox, 3)
    assert grade.status is Status.PASSED
    assert sandbox.asked == [("batch", [0, 1, 2])]
    assert count == GraderStatistics(programs=1, tests=3)


def test_a_failure_is_run_separately_before_it_counts() -> None:
    sandbox = scripted([RIGHT, WRONG, CRASH])
    grade, count = examined(sandbox, 3)
    assert statuses(grade) == ["passed", "wrong_answer", "runtime_error"]
    assert sandbox.asked == [("batch", [0, 1, 2]), ("separate", [1, 2])]
    assert (count.separate_runs, count.disagreements, count.failures_unconfirmed) == (2, 0, 0)


def test_the_separate_run_decides_and_the_other_passes_are_checked() -> None:
    sandbox = scripted([RIGHT, WRONG, RIGHT], [WRONG, RIGHT, RIGHT])
    grade, count = examined(sandbox, 3)
    assert statuses(grade) == ["wrong_answer", "passed", "passed"]
    assert sandbox.asked == [("batch", [0, 1, 2]), ("separate", [1]), ("separate", [0, 2])]
    assert (count.failures_overturned, count.passes_overturned, count.disagreements) == (1, 1, 2)


def test_another_failure_separately_is_what_is_reported_but_no_disagreement() -> None:
    grade, count = examined(scripted([WRONG], [CRASH]), 1)
    assert statuses(grade) == ["runtime_error"]
    assert count.disagreements == 0


def test_an_audited_pass_that_fails_brings_all_passes_to_the_test() -> None:
    policy = GradingPolicy(audit_share=0.3)
    audited = sorted(policy.audited("numbered", "program", 20))
    assert 0 < len(audited) < 20
    sandbox = scripted([RIGHT] * 20, [WRONG] * 20)
    grade, count = examined(sandbox, 20, policy)
    assert sandbox.asked[1] == ("separate", audited)
    assert sandbox.asked[2] == ("separate", [number for number in range(20) if number not in audited])
    assert count.passes_overturned == 20
    assert grade.pass_rate == 0


def test_audited_passes_that_pass_are_left_alone() -> None:
    sandbox = scripted([RIGHT] * 20)
    grade, count = examined(sandbox, 20, GradingPolicy(audit_share=0.3))
    assert grade.passes_all
    assert len(sandbox.jobs) == 2
    assert count.separate_runs == len(sandbox.asked[1][1])


@pytest.mark.parametrize(("answer", "status"), [(SLOW, "timeout"), (BROKEN, "compile_error")])
def test_of_failures_that_are_alike_one_is_confirmed(answer: Execution, status: str) -> None:
    sandbox = scripted([RIGHT, answer, answer, answer])
    grade, count = examined(sandbox, 4)
    assert statuses(grade) == ["passed", status, status, status]
    assert sandbox.asked == [("batch", [0, 1, 2, 3]), ("separate", [1])]
    assert count.failures_unconfirmed == 2


def test_time_outs_are_run_again_until_one_stands() -> None:
    sandbox = scripted([SLOW] * 4, [RIGHT, RIGHT, SLOW, RIGHT])
    grade, count = examined(sandbox, 4)
    assert statuses(grade) == ["passed", "passed", "timeout", "timeout"]
    assert sandbox.asked[1:] == [("separate", [0]), ("separate", [1]), ("separate", [2])]
    assert count.failures_overturned == 2


def test_a_program_whose_time_is_up_gets_no_more() -> None:
    sandbox = scripted([SLOW, SLOW, OUT_OF_BUDGET, OUT_OF_BUDGET], [RIGHT] * 4)
    grade, _ = examined(sandbox, 4, GradingPolicy(audit_share=0, program_budget=2))
    assert statuses(grade) == ["passed", "passed", "timeout", "timeout"]
    assert [job.cpu_seconds_total for job in sandbox.jobs] == [2.0] * 3
    assert [job.wall_seconds_total for job in sandbox.jobs] == [2 * Limits().wall_seconds] * 3


def test_a_program_that_is_slow_on_many_tests_but_never_hangs_gets_its_time() -> None:
    # Seen on a reference solution that builds a table when it is imported: 116 tests of 0.4 s each.
    def answer(job: Any, number: int) -> Execution:
        begun = number - numbers(job)[0]
        if begun < 2:
            return RIGHT
        return replace(SLOW, cpu_seconds=0.4, wall_seconds=0.4) if begun == 2 else OUT_OF_BUDGET

    sandbox = ScriptedSandbox(answer)
    grade, count = examined(sandbox, 5)
    assert grade.passes_all
    assert sandbox.asked == [("batch", [0, 1, 2, 3, 4]), ("batch", [2, 3, 4]), ("batch", [4])]
    assert (count.tests, count.disagreements, count.separate_runs) == (5, 0, 0)


def test_failures_that_the_budget_for_reruns_does_not_reach_stand() -> None:
    sandbox = scripted([WRONG] * 3, [WRONG, RIGHT, OUT_OF_BUDGET])
    grade, count = examined(sandbox, 3)
    assert statuses(grade) == ["wrong_answer", "passed", "wrong_answer"]
    assert (count.separate_runs, count.failures_unconfirmed) == (2, 1)


def test_an_infra_error_is_run_once_more() -> None:
    first: dict[Any, int] = {}

    def answer(job: Any, number: int) -> Execution:
        first[number] = first.get(number, 0) + 1
        return INFRA if number in (1, 2) and first[number] == 1 else RIGHT

    sandbox = ScriptedSandbox(answer)
    grade, count = examined(sandbox, 3)
    assert grade.passes_all
    assert sandbox.asked == [("batch", [0, 1, 2]), ("batch", [1, 2])]
    assert (count.infra_retries, count.infra_errors) == (2, 0)


def test_an_infra_error_twice_is_the_verdict() -> None:
    grade, count = examined(scripted([WRONG, INFRA, RIGHT]), 3)
    assert grade.status is Status.INFRA_ERROR
    assert (count.infra_errors, count.disagreements) == (1, 0)


def test_a_failure_that_cannot_be_confirmed_is_an_infra_error() -> None:
    grade, _ = examined(scripted([WRONG], [INFRA]), 1)
    assert grade.status is Status.INFRA_ERROR


def test_stopping_at_the_first_failure() -> None:
    sandbox = scripted([RIGHT, WRONG, CRASH, RIGHT])
    grade, count = examined(sandbox, 4, STOPPING, public=1)
    assert statuses(grade) == ["passed", "wrong_answer"]
    assert (grade.skipped, grade.pass_rate, grade.status) == (2, 0.25, Status.WRONG_ANSWER)
    assert (grade.passes_public, grade.passes_hidden) == (True, False)
    # The sandbox sees only the crash; the wrong answer before it is the one that counts.
    assert sandbox.asked == [("batch", [0, 1, 2, 3]), ("separate", [1])]
    assert count.tests == 2


def test_stopping_in_the_public_tests_fails_the_hidden_ones() -> None:
    grade, _ = examined(scripted([CRASH, RIGHT, RIGHT]), 3, STOPPING, public=2)
    assert (len(grade.public), len(grade.hidden), grade.skipped) == (1, 0, 2)
    assert not grade.passes_public and not grade.passes_hidden and not grade.passes_all


def test_an_overturned_failure_does_not_stop() -> None:
    sandbox = scripted([CRASH, RIGHT, WRONG, RIGHT], [RIGHT, RIGHT, WRONG, RIGHT])
    grade, count = examined(sandbox, 4, STOPPING)
    assert statuses(grade) == ["passed", "passed", "wrong_answer"]
    assert grade.skipped == 1
    assert sandbox.asked == [
        ("batch", [0, 1, 2, 3]),
        ("separate", [0]),
        ("batch", [1, 2, 3]),
        ("separate", [2]),
        ("separate", [1]),
    ]
    assert count.failures_overturned == 1


def test_a_sandbox_that_returns_nothing_is_an_error() -> None:
    sandbox = ScriptedSandbox(lambda job, number: RIGHT)
    sandbox.run = lambda job: []  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="no execution"):
        examined(sandbox, 1)


def test_costs_and_trust_are_those_of_the_deciding_runs() -> None:
    cheap = Execution(Outcome.OK, stdout="right", cpu_seconds=0.25, wall_seconds=0.5, peak_memory_bytes=7)
    dear = Execution(Outcome.OK, stdout="wrong", cpu_seconds=9, wall_seconds=9, peak_memory_bytes=9, is_low_trust=True)
    grade, count = examined(scripted([cheap, dear], [cheap, cheap]), 2, public=1)
    assert (grade.cpu_seconds, grade.wall_seconds, grade.peak_memory_bytes) == (0.5, 1.0, 7)
    assert grade.public[0].cpu_seconds == grade.hidden[0].cpu_seconds == 0.25
    assert not grade.is_low_trust
    low, count = examined(scripted([dear]), 1)
    assert low.is_low_trust and count.low_trust == 1


def test_error_types_are_told_of_public_tests_only() -> None:
    grade, _ = examined(scripted([CRASH, CRASH]), 2, public=1)
    assert grade.public[0].error_type == "ValueError"
    assert vars(grade.hidden[0]).keys() == {"status", "cpu_seconds", "wall_seconds", "peak_memory_bytes"}


def test_code_tests_name_the_entry_point() -> None:
    sandbox = ScriptedSandbox(lambda job, number: RIGHT)
    jobs: list[Any] = []
    sandbox.run = lambda job: [jobs.append(job), RIGHT][1:]  # type: ignore[method-assign]
    problem = Problem(id="a", statement="b", entry_point="f", hidden_tests=(CodeTest(code="assert f()"),))
    Examination(sandbox, problem, "", Limits(), NO_AUDIT).run()
    assert jobs[0].inputs == (CodeInput("assert f()", "f"),)


answers = st.lists(st.sampled_from([RIGHT, WRONG, CRASH, SLOW, BROKEN, INFRA]), min_size=1, max_size=6)


@given(answers, st.data(), st.sampled_from([0.0, 0.5, 1.0]), st.booleans())
@settings(max_examples=150, deadline=None)
def test_no_failure_stands_that_passes_separately(
    batch: list[Execution], data: Any, audit_share: float, stops: bool
) -> None:
    separate = data.draw(st.lists(st.sampled_from([RIGHT, WRONG, SLOW]), min_size=len(batch), max_size=len(batch)))
    policy = GradingPolicy(audit_share=audit_share, stops_at_first_failure=stops)
    sandbox = scripted(batch, separate)
    grade, count = examined(sandbox, len(batch), policy)
    assert len(grade.results) + grade.skipped == len(batch)
    first = next((place for place, result in enumerate(grade.results) if not result.passed), None)
    if first is not None and not grade.is_infra_error:
        assert separate[first].stdout != "right"
    if audit_share == 1 and not grade.is_infra_error and not grade.skipped:
        assert [result.passed for result in grade.results if result.status is not Status.TIMEOUT] == [
            execution is RIGHT
            for execution, result in zip(separate, grade.results, strict=True)
            if result.status is not Status.TIMEOUT
        ]
    runs = [number for kind, numbers in sandbox.asked if kind == "separate" for number in numbers]
    assert len(runs) == len(set(runs)) == count.separate_runs
