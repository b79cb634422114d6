"""From a test to what the sandbox runs, and from an execution to a result of its kind."""

from __future__ import annotations

from smalt.grading.verdicts import HiddenResult, PublicResult, Status
from smalt.problems.problem import CallTest, CodeTest, Limits, StdinTest, TestCase
from smalt.problems.values import value_text
from smalt.sandbox.execution import CallInput, CodeInput, Execution, Outcome, ProgramInput, StdinInput

MAX_OUTPUT_CHARACTERS = 10_000
"""Length at which the output of a public result is cut."""


def input_of(test: TestCase, entry_point: str | None) -> ProgramInput:
    """Return what a program may know of a test: never what is expected."""
    match test:
        case StdinTest(stdin=stdin):
            return StdinInput(stdin)
        case CallTest(args=args):
            assert entry_point is not None  # Problem sees to it
            return CallInput(entry_point, args)
        case CodeTest(code=code):
            return CodeInput(code, entry_point)


def hidden_result(execution: Execution, status: Status) -> HiddenResult:
    """Return the verdict on a hidden test."""
    return HiddenResult(status, execution.cpu_seconds, execution.wall_seconds, execution.peak_memory_bytes)


def public_result(test: TestCase, execution: Execution, status: Status, limits: Limits) -> PublicResult:
    """Return the verdict on a public test, with what the program showed."""
    is_value = isinstance(test, CallTest) and execution.outcome is Outcome.OK
    return PublicResult(
        test=test,
        status=status,
        output=_cut(value_text(execution.value) if is_value else execution.stdout),
        error=execution.error,
        time_limit=limits.cpu_seconds,
        error_type=execution.error_type,
        cpu_seconds=execution.cpu_seconds,
        wall_seconds=execution.wall_seconds,
        peak_memory_bytes=execution.peak_memory_bytes,
    )


def _cut(text: str) -> str:
    if len(text) <= MAX_OUTPUT_CHARACTERS:
        return text
    return f"{text[:MAX_OUTPUT_CHARACTERS]}\n... (cut, {len(text)} characters in all)"
