from collections.abc import Iterator
from typing import Any

import pytest

from smalt.grading.judging import Judge
from smalt.grading.verdicts import Status
from smalt.problems.problem import CallTest, CheckerRule, Limits, Problem, StdinTest
from smalt.sandbox.execution import CallInput, Execution, Job, Outcome
from smalt.sandbox.forkserver import ForkServerSandbox
from smalt.sandbox.worker.values import Opaque

FACTORS = """
def check(input, output, expected):
    factors = [int(word) for word in output.split()]
    product = 1
    for factor in factors:
        product *= factor
    return product == int(input) and len(factors) > 1
"""
LIMITS = Limits(cpu_seconds=0.5, wall_seconds=2.0)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[ForkServerSandbox]:
    with ForkServerSandbox(1) as opened:
        yield opened


def checked(program: str, *tests: Any, **limits: Any) -> Problem:
    rule = CheckerRule(rule="checker", program=program, **limits)
    return Problem(id="a", statement="b", entry_point="f", hidden_tests=tests, compare=rule)


def printed(text: str) -> Execution:
    return Execution(Outcome.OK, stdout=text)


def judged(sandbox: Any, problem: Problem, *executions: Execution) -> list[Status]:
    return Judge(sandbox, problem, LIMITS).statuses(problem.hidden_tests, executions)


@pytest.mark.parametrize(
    ("output", "status"),
    [
        ("3 4", Status.PASSED),
        ("2 6\n", Status.PASSED),
        ("2 5", Status.WRONG_ANSWER),
        ("12", Status.WRONG_ANSWER),
        ("many", Status.WRONG_ANSWER),
        ("\ud800\0", Status.WRONG_ANSWER),
        ("1" * 5000, Status.WRONG_ANSWER),
        ("", Status.WRONG_ANSWER),
    ],
)
def test_a_checker_decides_among_several_right_answers(sandbox: ForkServerSandbox, output: str, status: Status) -> None:
    problem = checked(FACTORS, StdinTest(stdin="12", expected="2 6"))
    assert judged(sandbox, problem, printed(output)) == [status]


def test_a_checker_gets_input_output_and_expected_of_each_test(sandbox: ForkServerSandbox) -> None:
    program = "def check(input, output, expected): return (input, output, expected) == ('i', 'o', 'e')"
    problem = checked(program, *[StdinTest(stdin="i", expected="e")] * 2)
    assert judged(sandbox, problem, printed("o"), printed("x")) == [Status.PASSED, Status.WRONG_ANSWER]


def test_a_checker_judges_values(sandbox: ForkServerSandbox) -> None:
    program = "def check(input, output, expected): return input == [(1, 2)] and sorted(output) == list(expected)"
    problem = checked(program, CallTest(args=((1, 2),), expected=(1, 2)))
    assert judged(sandbox, problem, Execution(Outcome.OK, value=[2, 1])) == [Status.PASSED]
    assert judged(sandbox, problem, Execution(Outcome.OK, value=[3])) == [Status.WRONG_ANSWER]
    assert judged(sandbox, problem, Execution(Outcome.OK, value=None)) == [Status.WRONG_ANSWER]
    opaque = Execution(Outcome.OK, value=[Opaque("A", "a")])
    assert judged(sandbox, problem, opaque) == [Status.WRONG_ANSWER]


@pytest.mark.parametrize(
    "program",
    [
        "def check(input, output, expected): return 1",
        "def check(input, output, expected): return None",
        "def check(input, output, expected): return 1 / 0",
        "def check(input, output): return True",
        "def check(input, output, expected):\n    while True: pass",
        "import missing_module\ndef check(input, output, expected): return True",
        "import os\ndef check(input, output, expected): os._exit(0)",
        "def check(input, output, expected): return output == '2'",
    ],
)
def test_a_broken_checker_is_the_graders_failure(sandbox: ForkServerSandbox, program: str) -> None:
    problem = checked(program, StdinTest(stdin="1", expected="crash"), limits=LIMITS)
    expects_crash = "output == '2'" in program
    assert judged(sandbox, problem, printed("1")) == [Status.WRONG_ANSWER if expects_crash else Status.INFRA_ERROR]


def test_a_checker_does_not_see_failed_runs(sandbox: ForkServerSandbox) -> None:
    problem = checked("def check(i, o, e): return True", *[StdinTest(stdin="", expected="")] * 2)
    assert judged(sandbox, problem, Execution(Outcome.TIMEOUT), printed("")) == [Status.TIMEOUT, Status.PASSED]


class CheckingSandbox:
    """Records the jobs; answers each input with the next of `executions`."""

    def __init__(self, *executions: Execution) -> None:
        self._executions = list(executions)
        self.jobs: list[Job] = []

    def run(self, job: Job) -> list[Execution]:
        self.jobs.append(job)
        return [self._executions.pop(0) for _ in job.inputs]


def test_all_outputs_are_checked_in_one_job_under_the_checkers_limits() -> None:
    sandbox = CheckingSandbox(Execution(Outcome.OK, value=True), Execution(Outcome.OK, value=False))
    limits = Limits(cpu_seconds=7)
    tests = [StdinTest(stdin=text, expected="e") for text in "ab"]
    problem = checked("def check(i, o, e): return True", *tests, limits=limits)
    assert judged(sandbox, problem, printed("x"), printed("y")) == [Status.PASSED, Status.WRONG_ANSWER]
    [job] = sandbox.jobs
    assert job.inputs == (CallInput("check", ("a", "x", "e")), CallInput("check", ("b", "y", "e")))
    assert job.limits == limits


def test_a_checker_is_run_once_more_when_the_sandbox_fails() -> None:
    infra, good = Execution(Outcome.INFRA_ERROR), Execution(Outcome.OK, value=True)
    problem = checked("def check(i, o, e): return True", StdinTest(stdin="", expected=""))
    judge = Judge(CheckingSandbox(infra, good), problem, LIMITS)
    assert judge.statuses(problem.hidden_tests, [printed("")]) == [Status.PASSED]
    assert judge.infra_retries == 1
    assert judged(CheckingSandbox(infra, infra), problem, printed("")) == [Status.INFRA_ERROR]
