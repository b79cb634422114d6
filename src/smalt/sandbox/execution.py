"""The sandbox's words: a job (one program and its inputs) goes in, one execution per input comes out.

The sandbox knows nothing of expected outputs, problems or rewards: whatever it is given, the program may see.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from smalt.problems.problem import Limits


class Outcome(StrEnum):
    """How one run of a program ended. `INFRA_ERROR` is the sandbox's own failure, never the program's."""

    OK = "ok"
    RUNTIME_ERROR = "runtime_error"
    TIMEOUT = "timeout"
    MEMORY_LIMIT = "memory_limit"
    OUTPUT_LIMIT = "output_limit"
    COMPILE_ERROR = "compile_error"
    INFRA_ERROR = "infra_error"


@dataclass(frozen=True)
class StdinInput:
    """Run the program as a script with this standard input."""

    stdin: str


@dataclass(frozen=True)
class CallInput:
    """Run the program, then call `entry_point(*args)`; the value comes back as plain data."""

    entry_point: str
    args: tuple[Any, ...]


@dataclass(frozen=True)
class CodeInput:
    """Run the program, then `code`, which sees the program's names.

    With an `entry_point` the two run in processes of their own where that can be done: `code` reaches the
    program through calls, so the program cannot decide how the test ends.
    """

    code: str
    entry_point: str | None = None


ProgramInput = StdinInput | CallInput | CodeInput


@dataclass(frozen=True)
class Job:
    """One program and the inputs it is run on, each run starting from a fresh namespace."""

    program: str
    inputs: tuple[ProgramInput, ...]
    limits: Limits
    stop_at_first_failure: bool = False
    """Skip the inputs after the first whose outcome is not OK (their executions are missing)."""
    is_separate: bool = False
    """Run every input in a process of its own, so that no run sees anything of another."""
    cpu_seconds_total: float | None = None
    """CPU time for all inputs together; those not begun when it is spent end as TIMEOUT."""
    wall_seconds_total: float | None = None
    """The same of wall time, for programs that sleep on every input."""


@dataclass(frozen=True)
class Execution:
    """What one run of a program left behind."""

    outcome: Outcome
    stdout: str = ""
    value: Any = None
    """Returned value of a `CallInput`, rebuilt from its encoding; None otherwise."""
    error: str = ""
    """Last lines of the traceback as a person would want them; empty when OK."""
    error_type: str = ""
    """Name of the exception class, e.g. "ZeroDivisionError"."""
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    peak_memory_bytes: int = 0
    """Most memory in use so far by the process that ran it, the interpreter's included; 0 when unknown."""
    is_low_trust: bool = False
    """Whether the program shared a process with the code that judged it, and so could have forged the end."""


class Sandbox(Protocol):
    """Runs untrusted programs. Safe to call from several threads; each call blocks until its job ended."""

    def run(self, job: Job) -> Sequence[Execution]:
        """Run `job`; executions are in the order of `job.inputs`."""
        ...

    def close(self) -> None:
        """Stop all workers; no process is left behind."""
        ...
