"""What the caller asks of a worker: one child that runs a program's inputs from `first` on."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

MAX_REQUEST_BYTES = 1 << 30
MAX_REPORT_BYTES = 64 << 20
"""A child's report is cut here; a child stops and asks for a successor well before (`CHILD_REPORT_BYTES`)."""
CHILD_REPORT_BYTES = 16 << 20
FAILED_CHILD_STATUS = 70
"""Exit status of a child that failed by itself; with an empty report no line of the program has run."""
MAX_VALUE_BYTES = 16 << 20
"""Encoded size of one returned value; more is an output_limit."""


@dataclass(frozen=True)
class ChildRequest:
    """Limits of one child. The program and its inputs travel beside it, as bytes the server never parses."""

    first: int
    """Index of the first input to run."""
    count: int
    """Inputs of the job, those before `first` included."""
    stop_at_first_failure: bool
    cpu_seconds: float
    wall_seconds: float
    memory_bytes: int
    output_bytes: int

    def to_bytes(self) -> bytes:
        """Return the request as JSON."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> ChildRequest:
        """Read what `to_bytes` wrote."""
        return cls(**json.loads(data))


@dataclass(frozen=True)
class ChildEnd:
    """How a child ended, as its server saw it from outside."""

    wait_status: int
    """As of `os.waitpid`; -1 when no child could be started."""
    is_over_time: bool
    """Whether the server killed it for its CPU or wall limit."""
    cpu_seconds: float
    """CPU time since the last finished input."""
    wall_seconds: float
    stdout_bytes: int
    """Size of the unfinished input's output, which may exceed what is sent back of it."""

    def to_bytes(self) -> bytes:
        """Return the end as JSON."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> ChildEnd:
        """Read what `to_bytes` wrote."""
        return cls(**json.loads(data))
