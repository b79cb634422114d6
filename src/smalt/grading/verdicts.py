"""Verdicts, with public and hidden results as two types.

A `PublicResult` carries input, output and expected output: feedback is written from it. A `HiddenResult` is
the bare status of a test. Functions that write to the policy take `PublicResult` only; there is no way from a
`HiddenResult` to a text.
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

    @property
    def passed(self) -> bool:
        """Whether the test passed."""
        return self.status is Status.PASSED


@dataclass(frozen=True)
class HiddenResult:
    """Verdict on a hidden test: its status and nothing else."""

    status: Status

    @property
    def passed(self) -> bool:
        """Whether the test passed."""
        return self.status is Status.PASSED


@dataclass(frozen=True)
class Grade:
    """All verdicts on one program."""

    public: tuple[PublicResult, ...]
    hidden: tuple[HiddenResult, ...]
    cpu_seconds: float = 0.0

    @property
    def results(self) -> tuple[PublicResult | HiddenResult, ...]:
        """All results, the public ones first."""
        return (*self.public, *self.hidden)

    @property
    def is_infra_error(self) -> bool:
        """Whether the grader itself failed on some test: such a program is neither right nor wrong."""
        return any(result.status is Status.INFRA_ERROR for result in self.results)

    @property
    def pass_rate(self) -> float:
        """Share of all tests, public and hidden together, that passed (Cobalt's measure of a program)."""
        return sum(result.passed for result in self.results) / len(self.results)

    @property
    def passes_public(self) -> bool:
        """Whether every public test passed (true when there are none)."""
        return all(result.passed for result in self.public)

    @property
    def passes_hidden(self) -> bool:
        """Whether every hidden test passed; with no hidden tests, every public one."""
        return all(result.passed for result in (self.hidden or self.public))

    @property
    def passes_all(self) -> bool:
        """Whether every test passed."""
        return self.passes_public and self.passes_hidden
