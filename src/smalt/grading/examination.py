"""One program's way to its verdicts: run in a batch, confirm failures separately, audit some passes.

A batch runs all tests of a program in one process, which is several times cheaper than a process a test. A test
that fails there is run again in a process of its own, and that run decides; so nothing that one test leaves
behind fails another. A small share of passes is audited the same way. Once the two kinds of run disagree about
one test, the program's other passes are run separately too: what a batch says of this program is not trusted.

What it costs is bounded. Compile errors and time-outs are run again one by one until one is confirmed, and the
others stand on it: a program that hangs on every test costs its budget and one limit more. The re-runs of all
other failures have one budget together; those it does not reach stand as the batch saw them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from smalt.grading.judging import Judge
from smalt.grading.policy import GraderStatistics, GradingPolicy
from smalt.grading.preamble import with_preamble
from smalt.grading.results import hidden_result, input_of, public_result
from smalt.grading.running import run_with_retry
from smalt.grading.verdicts import Grade, Status
from smalt.problems.problem import Limits, Problem
from smalt.sandbox.execution import Execution, Job, Outcome, Sandbox

# A program that shows one of these on several tests shows it for one reason.
_ALIKE = (Status.COMPILE_ERROR, Status.TIMEOUT)
# Part of a limit below which a time-out was not that limit's doing.
_NEARLY = 0.9


@dataclass(frozen=True)
class _Finding:
    """What is known of one test."""

    execution: Execution
    status: Status
    is_separate: bool = False
    """Whether it ran in a process of its own."""

    @property
    def is_failure(self) -> bool:
        return self.status not in (Status.PASSED, Status.INFRA_ERROR)

    @property
    def is_open_failure(self) -> bool:
        """Whether it is a failure to be confirmed; that a program's time is up needs no confirmation."""
        return self.is_failure and not self.is_separate and not _is_out_of_budget(self.execution)

    @property
    def is_open_pass(self) -> bool:
        return self.status is Status.PASSED and not self.is_separate


class Examination:
    """Grades one program on one problem; an object serves once."""

    def __init__(self, sandbox: Sandbox, problem: Problem, program: str, limits: Limits, policy: GradingPolicy) -> None:
        """Prepare; nothing runs. `limits` are those of each test, and through the policy of the program."""
        self._sandbox = sandbox
        self._problem = problem
        self._program = program
        self._limits = limits
        self._policy = policy
        self._judge = Judge(sandbox, problem, limits)
        self._tests = (*problem.public_tests, *problem.hidden_tests)
        self._findings: list[_Finding] = []
        self._count = GraderStatistics(programs=1)

    def run(self) -> tuple[Grade, GraderStatistics]:
        """Return the grade, and what it took."""
        is_stopped = False
        while len(self._findings) < len(self._tests) and not is_stopped:
            self._run_rest()
            if self._policy.stops_at_first_failure:
                is_stopped = self._confirm_first_failure()
            else:
                self._confirm_failures()
        self._audit_passes()
        if self._policy.stops_at_first_failure:
            self._cut_after_first_failure()
        grade = self._grade()
        count = replace(
            self._count,
            tests=len(self._findings),
            infra_retries=self._count.infra_retries + self._judge.infra_retries,
            failures_unconfirmed=sum(finding.is_failure and not finding.is_separate for finding in self._findings),
            infra_errors=int(grade.is_infra_error),
            low_trust=int(grade.is_low_trust),
        )
        return grade, count

    def _run_rest(self) -> None:
        """Run the tests without a finding in one batch; it ends early where the policy stops or the budget does.

        The budget is there for programs that hang. One whose time went while no test timed out is slow on many
        tests, each within its limit: what its batch did not reach is left to the next one.
        """
        found = self._run(range(len(self._findings), len(self._tests)), is_separate=False)
        if not found:
            raise RuntimeError("the sandbox returned no execution; it must return at least one for a job with inputs")
        reached = next((place for place, finding in enumerate(found) if self._is_cut(finding.execution)), len(found))
        has_hung = any(finding.status is Status.TIMEOUT for finding in found[:reached])
        self._findings += found if has_hung or reached == 0 else found[:reached]

    def _is_cut(self, execution: Execution) -> bool:
        """Whether the program's budget ended this test, or kept it from beginning, before the test's own limits."""
        return (
            execution.outcome is Outcome.TIMEOUT
            and execution.cpu_seconds < _NEARLY * self._limits.cpu_seconds
            and execution.wall_seconds < _NEARLY * self._limits.wall_seconds
        )

    def _confirm_first_failure(self) -> bool:
        """Confirm failures in order until one stands; returns whether no further test is to be run."""
        for index, finding in enumerate(self._findings):
            if finding.is_open_failure:
                self._confirm([index])
            if self._findings[index].status is not Status.PASSED:
                del self._findings[index + 1 :]
                return True
        return False

    def _confirm_failures(self) -> None:
        if not any(finding.is_open_failure for finding in self._findings):
            return
        for status in _ALIKE:
            self._confirm_until_one_stands(status)
        self._confirm(self._places(lambda finding: finding.is_open_failure and finding.status not in _ALIKE))

    def _confirm_until_one_stands(self, status: Status) -> None:
        for index in self._places(lambda finding: finding.is_open_failure and finding.status is status):
            self._confirm([index])
            if self._findings[index].status is status:
                return

    def _audit_passes(self) -> None:
        passes = self._places(lambda finding: finding.is_open_pass)
        if not self._count.disagreements:
            audited = self._policy.audited(self._problem.id, self._program, len(self._tests))
            self._confirm([index for index in passes if index in audited])
        if self._count.disagreements:
            self._confirm(self._places(lambda finding: finding.is_open_pass))

    def _places(self, is_meant: Callable[[_Finding], bool]) -> list[int]:
        return [index for index, finding in enumerate(self._findings) if is_meant(finding)]

    def _confirm(self, indices: Sequence[int]) -> None:
        """Run tests again, each in a process of its own; what is found there replaces what was known."""
        for index, finding in zip(indices, self._run(indices, is_separate=True), strict=True):
            if _is_out_of_budget(finding.execution):
                continue
            before = self._findings[index]
            self._findings[index] = finding
            self._count += GraderStatistics(
                separate_runs=1,
                failures_overturned=int(before.is_failure and finding.status is Status.PASSED),
                passes_overturned=int(finding.is_failure and before.status is Status.PASSED),
            )

    def _run(self, indices: Sequence[int], is_separate: bool) -> list[_Finding]:
        if not indices:
            return []
        tests = [self._tests[index] for index in indices]
        job = Job(
            with_preamble(self._problem.preamble, self._program),
            tuple(input_of(test, self._problem.entry_point) for test in tests),
            self._limits,
            stop_at_first_failure=self._policy.stops_at_first_failure and not is_separate,
            is_separate=is_separate,
            cpu_seconds_total=self._policy.program_budget * self._limits.cpu_seconds,
            wall_seconds_total=self._policy.program_budget * self._limits.wall_seconds,
        )
        executions, retries = run_with_retry(self._sandbox, job)
        self._count += GraderStatistics(infra_retries=retries)
        statuses = self._judge.statuses(tests[: len(executions)], executions)
        return [
            _Finding(execution, status, is_separate) for execution, status in zip(executions, statuses, strict=True)
        ]

    def _cut_after_first_failure(self) -> None:
        failing = self._places(lambda finding: finding.status is not Status.PASSED)
        if failing:
            del self._findings[failing[0] + 1 :]

    def _grade(self) -> Grade:
        split = len(self._problem.public_tests)
        return Grade(
            public=tuple(
                public_result(test, finding.execution, finding.status, self._limits)
                for test, finding in zip(self._problem.public_tests, self._findings[:split], strict=False)
            ),
            hidden=tuple(hidden_result(finding.execution, finding.status) for finding in self._findings[split:]),
            skipped=len(self._tests) - len(self._findings),
            is_low_trust=any(finding.execution.is_low_trust for finding in self._findings),
        )


def _is_out_of_budget(execution: Execution) -> bool:
    """Whether the program's time was up before this test began."""
    return execution.outcome is Outcome.TIMEOUT and execution.cpu_seconds == execution.wall_seconds == 0
