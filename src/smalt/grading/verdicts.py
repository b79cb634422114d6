"""Verdicts, with public and hidden results as two types.

A `PublicResult` carries input, output and expected output: feedback is written from it. A `HiddenResult` is
the bare status of a test with what it cost. Functions that write to the policy take `PublicResult` only; there
is no way from a `HiddenResult` to a text.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from smalt.problems.problem import TestCase


class Status(StrEnum):
    """Verdict on one test."""

    PASSED = "passed"
    WRONG_ANSWER = "wrong_answer"
    RUNTIME_ERROR = "runtime_error"
    TIMEOUT = "timeout"
    MEMORY_LIMIT = "memory_limit"
    OUTPUT_LIMIT = "output_limit"
    COMPILE_ERROR = "compile_error"
    INFRA_ERROR = "infra_error"


@dataclass(frozen=True)
class PublicResult:
    """Verdict on a public test with everything that may be shown to the policy."""

    test: TestCase
    status: Status
    output: str
    """What the program printed, or repr() of what it returned."""
    error: str = ""
    """Error text of a crash; empty otherwise."""
    time_limit: float = 0.0
    """The CPU limit the test ran under, in seconds (named in the feedback of a time-out)."""
    error_type: str = ""
    """Name of the exception of a crash, e.g. "ZeroDivisionError"; empty otherwise."""
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    peak_memory_bytes: int = 0
    """0 when the sandbox did not measure it."""

    @property
    def passed(self) -> bool:
        """Whether the test passed."""
        return self.status is Status.PASSED


@dataclass(frozen=True)
class HiddenResult:
    """Verdict on a hidden test: its status, its cost, and nothing that could be told."""

    status: Status
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    peak_memory_bytes: int = 0
    """0 when the sandbox did not measure it."""

    @property
    def passed(self) -> bool:
        """Whether the test passed."""
        return self.status is Status.PASSED


@dataclass(frozen=True)
class Grade:
    """All verdicts on one program."""

    public: tuple[PublicResult, ...]
    hidden: tuple[HiddenResult, ...]
    skipped: int = 0
    """Tests after the first failure that were not run, under a policy that stops there; they have no result."""
    is_low_trust: bool = False
    """Whether some verdict rests on test code that shared its interpreter with the program."""

    @property
    def results(self) -> tuple[PublicResult | HiddenResult, ...]:
        """All results, the public ones first."""
        return (*self.public, *self.hidden)

    @property
    def status(self) -> Status:
        """The program in one word: passed, or the status of the first failing test; infra_error wins."""
        if self.is_infra_error:
            return Status.INFRA_ERROR
        return next((result.status for result in self.results if not result.passed), Status.PASSED)

    @property
    def is_infra_error(self) -> bool:
        """Whether the grader itself failed on some test: such a program is neither right nor wrong."""
        return any(result.status is Status.INFRA_ERROR for result in self.results)

    @property
    def pass_rate(self) -> float:
        """Share of all tests, public and hidden together, that passed (Cobalt's measure of a program).

        Skipped tests count as not passed.
        """
        return sum(result.passed for result in self.results) / (len(self.results) + self.skipped)

    @property
    def passes_public(self) -> bool:
        """Whether every public test passed (true when there are none)."""
        return all(result.passed for result in self.public)

    @property
    def passes_hidden(self) -> bool:
        """Whether every hidden test passed; with no hidden tests, every public one."""
        # Hidden tests that were skipped behind a failing public one: the public ones answer for them.
        return all(result.passed for result in (self.hidden or self.public))

    @property
    def passes_all(self) -> bool:
        """Whether every test passed."""
        return self.passes_public and self.passes_hidden

    @property
    def cpu_seconds(self) -> float:
        """CPU time of the runs that the verdicts rest on."""
        return sum(result.cpu_seconds for result in self.results)

    @property
    def wall_seconds(self) -> float:
        """Wall time of the runs that the verdicts rest on."""
        return sum(result.wall_seconds for result in self.results)

    @property
    def peak_memory_bytes(self) -> int:
        """Largest peak over the tests; 0 when the sandbox measured none."""
        return max((result.peak_memory_bytes for result in self.results), default=0)
