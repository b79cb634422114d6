"""From a job to what a worker's child reads, and from what the child left to executions.

Everything in a report is taken as written by the program itself: types are checked, values are decoded with
bounds, and a report that breaks off or makes no sense is the program's failure, not the sandbox's.
"""

from __future__ import annotations

import json
import marshal
import os
import signal
from dataclasses import replace
from typing import Any

from smalt.sandbox.connection import ChildAnswer
from smalt.sandbox.execution import CallInput, CodeInput, Execution, Job, Outcome, ProgramInput, StdinInput
from smalt.sandbox.worker import values
from smalt.sandbox.worker.frames import split_frames
from smalt.sandbox.worker.requests import FAILED_CHILD_STATUS, ChildRequest

_MIB = 1 << 20
_TIMER_SIGNALS = (signal.SIGPROF, signal.SIGXCPU)
_REPORTED_OUTCOMES = frozenset(Outcome) - {Outcome.INFRA_ERROR, Outcome.TIMEOUT}
_MAX_ERROR_CHARACTERS = 10_000


def encode_job(job: Job) -> bytes:
    """Return program and inputs as the child reads them.

    In this direction the data is trusted, and marshal keeps all plain types. Raises ValueEncodingError for
    call arguments of other types.
    """
    try:
        inputs = [_encode_input(item) for item in job.inputs]
        return marshal.dumps({"program": job.program, "inputs": inputs})
    except ValueError as error:
        raise values.ValueEncodingError(f"call arguments must be plain data: {error}") from None


def _encode_input(item: ProgramInput) -> dict[str, Any]:
    match item:
        case StdinInput(stdin):
            return {"kind": "stdin", "stdin": stdin}
        case CallInput(entry_point, args):
            # Each input's arguments by themselves: in one piece, equal objects would become one shared object.
            return {"kind": "call", "entry_point": entry_point, "args": marshal.dumps(args)}
        case CodeInput(code):
            return {"kind": "code", "code": code}


def child_request(job: Job, first: int) -> ChildRequest:
    """Return the request for a child that starts at input `first`."""
    return ChildRequest(
        first=first,
        count=len(job.inputs),
        stop_at_first_failure=job.stop_at_first_failure,
        cpu_seconds=job.limits.cpu_seconds,
        wall_seconds=job.limits.wall_seconds,
        memory_bytes=job.limits.memory_mb * _MIB,
        output_bytes=job.limits.output_bytes,
    )


def executions_of(answer: ChildAnswer, job: Job, first: int) -> list[Execution]:
    """Return the executions of the inputs that the child began, at least one.

    The last one may be of an input that the child did not survive. One INFRA_ERROR when no child came to run
    any of the program.
    """
    if _never_ran(answer):
        return [infra_error("the worker could not start the program")]
    executions: list[Execution] = []
    for number, data in enumerate(split_frames(answer.report)):
        event = _read_event(data)
        if event.get("event") == "begin" and number == 0:
            continue
        if event.get("event") == "end" and executions:
            return executions
        if len(executions) < len(job.inputs) - first:
            executions.append(_read_execution(event, job.limits.output_bytes))
    index = first + len(executions)
    if index < len(job.inputs):
        executions.append(_unfinished(answer, job.inputs[index], job.limits.output_bytes))
    return executions


def infra_error(reason: str) -> Execution:
    """Return the execution of an input that the sandbox failed to run."""
    return Execution(Outcome.INFRA_ERROR, error=reason)


def _never_ran(answer: ChildAnswer) -> bool:
    status = answer.end.wait_status
    is_failed = os.WIFEXITED(status) and os.WEXITSTATUS(status) == FAILED_CHILD_STATUS
    return status == -1 or (is_failed and not answer.report)


def _read_event(data: bytes) -> dict[str, Any]:
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}


def _read_execution(event: dict[str, Any], output_bytes: int) -> Execution:
    try:
        outcome = Outcome(event["outcome"])
        if outcome not in _REPORTED_OUTCOMES:
            raise ValueError(outcome)
        return Execution(
            outcome=outcome,
            stdout=_text(event.get("stdout", ""), output_bytes),
            value=values.decode(event.get("value")),
            error=_text(event.get("error", ""), _MAX_ERROR_CHARACTERS),
            error_type=_text(event.get("error_type", ""), 200),
            cpu_seconds=float(event["cpu"]),
            wall_seconds=float(event["wall"]),
        )
    except (KeyError, TypeError, ValueError, values.ValueEncodingError) as error:
        reason = f"the result of this run could not be read: {error}"
        return Execution(Outcome.RUNTIME_ERROR, error=reason[:_MAX_ERROR_CHARACTERS], error_type="BrokenReport")


def _text(value: object, max_length: int) -> str:
    if not isinstance(value, str):
        raise TypeError("a text is missing")
    return value[:max_length]


def _unfinished(answer: ChildAnswer, item: ProgramInput, output_bytes: int) -> Execution:
    """Return the execution of the input during which the child ended."""
    end = answer.end
    base = Execution(
        Outcome.RUNTIME_ERROR,
        stdout=answer.unfinished_output[:output_bytes].decode("utf-8", "replace"),
        cpu_seconds=end.cpu_seconds,
        wall_seconds=end.wall_seconds,
    )
    if end.stdout_bytes > output_bytes:
        return replace(base, outcome=Outcome.OUTPUT_LIMIT, error="too much output")
    if os.WIFSIGNALED(end.wait_status):
        return _killed(base, end.is_over_time, os.WTERMSIG(end.wait_status))
    code = os.WEXITSTATUS(end.wait_status)
    if code == 0 and isinstance(item, StdinInput):
        return replace(base, outcome=Outcome.OK)
    return replace(base, error=f"the process exited with status {code} before its end", error_type="SystemExit")


def _killed(base: Execution, is_over_time: bool, number: int) -> Execution:
    if is_over_time or number in _TIMER_SIGNALS:
        return replace(base, outcome=Outcome.TIMEOUT, error="time limit exceeded")
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    if number == signal.SIGKILL:
        # Not ours, so the kernel's, which was out of memory; a program that kills itself so gains nothing.
        return replace(base, outcome=Outcome.MEMORY_LIMIT, error="killed by SIGKILL, most likely for its memory")
    return replace(base, error=f"the process was killed by {name}", error_type=name)
