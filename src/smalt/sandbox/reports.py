"""From the record of a run to its execution.

The head of a record is the server's and trusted. The rest is taken as written by the program itself: types
are checked, values are decoded with bounds, and a report that breaks off or makes no sense is the program's
failure, not the sandbox's.
"""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from typing import Any

from smalt.sandbox.execution import CallInput, Execution, Job, Outcome, ProgramInput, StdinInput
from smalt.sandbox.worker import values
from smalt.sandbox.worker.requests import BREACH_STATUS, ENDED, Kind, Record, State

_REPORTED_OUTCOMES = frozenset(Outcome) - {Outcome.INFRA_ERROR, Outcome.TIMEOUT}
_MAX_ERROR_CHARACTERS = 10_000
# Of lists and objects, and of such signs in texts: parsing millions of empty lists takes seconds and gigabytes.
_MAX_OPENINGS = 1_000_000


def execution_of(record: Record, job: Job, item: ProgramInput) -> Execution:
    """Return the execution of a run of `item` that was begun."""
    head = record.head
    base = Execution(
        Outcome.OK,
        is_low_trust=head.kind == Kind.CODE,
        stdout=record.stdout[: job.limits.output_bytes].decode("utf-8", "replace"),
        cpu_seconds=head.cpu_seconds,
        wall_seconds=head.wall_seconds,
        peak_memory_bytes=head.peak_bytes,
    )
    if head.stdout_bytes > job.limits.output_bytes or head.state == State.FLOODED:
        return replace(base, outcome=Outcome.OUTPUT_LIMIT, error="too much output")
    if head.state == State.OVER_TIME:
        return replace(base, outcome=Outcome.TIMEOUT, error="time limit exceeded")
    if head.state == State.BROKE_OFF:
        return _broke_off(base)
    if head.state == State.PASSED and not isinstance(item, CallInput):
        return base
    if head.state in (State.REPORTED, State.PASSED):
        return _split(base, record, item) if head.kind == Kind.SPLIT_CODE else _reported(base, record.report)
    return _ended(base, head.wait_status, item)


def infra_error(reason: str) -> Execution:
    """Return the execution of an input that the sandbox failed to run."""
    return Execution(Outcome.INFRA_ERROR, error=reason)


def out_of_time() -> Execution:
    """Return the execution of an input that was not begun because the job's time was spent."""
    return Execution(Outcome.TIMEOUT, error="the time for all tests together was spent before this one")


def _split(base: Execution, record: Record, item: ProgramInput) -> Execution:
    """Return the execution of test code that ran apart from the program, whose report can be trusted."""
    try:
        said = json.loads(record.report)
        is_ended, is_low_trust = said["outcome"] == ENDED, bool(said["is_low_trust"])
    except (KeyError, TypeError, ValueError):
        return _failed(base, "the test's process left no report", "BrokenReport")
    if is_ended:
        return _ended(base, record.head.wait_status, item)
    return replace(_reported(base, record.report), is_low_trust=is_low_trust)


def _reported(base: Execution, report: bytes) -> Execution:
    if report.count(b"[") + report.count(b"{") > _MAX_OPENINGS:
        return replace(base, outcome=Outcome.OUTPUT_LIMIT, error="the returned value has too many parts")
    try:
        said = json.loads(report)
        outcome = Outcome(said["outcome"])
        if outcome not in _REPORTED_OUTCOMES:
            raise ValueError(outcome)
        return replace(
            base,
            outcome=outcome,
            value=values.decode(said.get("value")),
            error=_text(said.get("error", ""), _MAX_ERROR_CHARACTERS),
            error_type=_text(said.get("error_type", ""), 200),
        )
    except (KeyError, TypeError, ValueError, RecursionError, AttributeError, values.ValueEncodingError) as error:
        reason = f"the result of this run could not be read: {error}"
        return _failed(base, reason[:_MAX_ERROR_CHARACTERS], "BrokenReport")


def _text(value: Any, max_length: int) -> str:
    if not isinstance(value, str):
        raise TypeError("a text is missing")
    return value[:max_length]


def _failed(base: Execution, error: str, error_type: str) -> Execution:
    return replace(base, outcome=Outcome.RUNTIME_ERROR, error=error, error_type=error_type)


def _broke_off(base: Execution) -> Execution:
    return _failed(base, "the program closed or filled descriptors that are not its own", "BrokenReport")


def _ended(base: Execution, status: int, item: ProgramInput) -> Execution:
    """Return the execution of a run in which the process ended without a report."""
    if status == BREACH_STATUS:
        return _broke_off(base)
    if os.WIFSIGNALED(status):
        return _killed(base, os.WTERMSIG(status))
    code = os.WEXITSTATUS(status)
    if code == 0 and isinstance(item, StdinInput):
        return base
    return _failed(base, f"the process exited with status {code} before its end", "SystemExit")


def _killed(base: Execution, number: int) -> Execution:
    if number == signal.SIGXCPU:
        return replace(base, outcome=Outcome.TIMEOUT, error="time limit exceeded")
    if number == signal.SIGKILL:
        # Not for its time, so the kernel's, which was out of memory; a program that kills itself gains nothing.
        return replace(base, outcome=Outcome.MEMORY_LIMIT, error="killed by SIGKILL, most likely for its memory")
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    return _failed(base, f"the process was killed by {name}", name)
