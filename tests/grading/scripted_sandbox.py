"""A sandbox that says what it is told, for tests of what is asked of it and what is made of its answers."""

from __future__ import annotations

import threading
from collections.abc import Callable

from smalt.problems.problem import Limits, Problem, StdinTest
from smalt.sandbox.execution import Execution, Job, Outcome, StdinInput

RIGHT = Execution(Outcome.OK, stdout="right", cpu_seconds=0.1, wall_seconds=0.2)
WRONG = Execution(Outcome.OK, stdout="wrong", cpu_seconds=0.1, wall_seconds=0.2)
CRASH = Execution(Outcome.RUNTIME_ERROR, error_type="ValueError", cpu_seconds=0.1, wall_seconds=0.2)
SLOW = Execution(Outcome.TIMEOUT, cpu_seconds=1.0, wall_seconds=1.0)
OUT_OF_BUDGET = Execution(Outcome.TIMEOUT)
BROKEN = Execution(Outcome.COMPILE_ERROR, error_type="SyntaxError")
INFRA = Execution(Outcome.INFRA_ERROR)

Answer = Callable[[Job, int], Execution]
"""The execution of the test with this number, in this job."""


class ScriptedSandbox:
    """Answers by the number that a test has as its stdin."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._lock = threading.Lock()
        self.jobs: list[Job] = []

    def run(self, job: Job) -> list[Execution]:
        with self._lock:
            self.jobs.append(job)
        executions = []
        for number in numbers(job):
            executions.append(self._answer(job, number))
            if job.stop_at_first_failure and executions[-1].outcome is not Outcome.OK:
                break
        return executions

    def close(self) -> None:
        pass

    @property
    def asked(self) -> list[tuple[str, list[int]]]:
        """The tests of each job, as "batch" or "separate"."""
        return [("separate" if job.is_separate else "batch", numbers(job)) for job in self.jobs]


def numbers(job: Job) -> list[int]:
    return [int(item.stdin) for item in job.inputs if isinstance(item, StdinInput)]


def scripted(batch: list[Execution], separate: list[Execution] | None = None) -> ScriptedSandbox:
    """A sandbox with one answer a test in the batch, and one (the same, by default) separately."""
    return ScriptedSandbox(lambda job, number: ((separate or batch) if job.is_separate else batch)[number])


def numbered_problem(tests: int, public: int = 0) -> Problem:
    """A problem whose tests have their number as stdin and want "right"."""
    cases = tuple(StdinTest(stdin=str(number), expected="right") for number in range(tests))
    return Problem(
        id="numbered",
        statement="Print right.",
        public_tests=cases[:public],
        hidden_tests=cases[public:],
        limits=Limits(cpu_seconds=1.0),
    )
