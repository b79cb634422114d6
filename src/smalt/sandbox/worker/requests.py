"""What passes between the caller and a server: the request, the file of inputs, the file of results.

The two files live in memory and are passed by descriptor. A server copies inputs from one and outputs to the
other inside the kernel: what it never reads, no later program can find in its memory.

Inputs file: a table of (kind, offset, length), one row for each input, then the program, then the inputs.
Results file: records, each a fixed head and then standard output and report.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

MAX_REQUEST_BYTES = 1 << 16
DONE = b"done"
"""A server's answer to a request."""
MAX_VALUE_BYTES = 8 << 20
"""Encoded size of one returned value; more is an output_limit."""
MAX_REPORTS_BYTES = 32 << 20
"""Size of all reports of one job; the runs after get an output_limit."""


ENDED = "ended"
"""An outcome that only test code reports: the program's process ended, and its wait status says how."""


BREACH_STATUS = -1
"""In place of a wait status: the program's process lived on, cut off by itself from the one that asks it."""


class Kind(IntEnum):
    """Kinds of inputs."""

    STDIN = 0
    CALL = 1
    CODE = 2
    SPLIT_CODE = 3
    """Test code in a process of its own, which reaches the program through calls only."""


class State(IntEnum):
    """How one run ended, as the server saw it from outside."""

    REPORTED = 1
    """The child says how; its word counts for its own run only."""
    ENDED = 2
    """The child ended without a report; the wait status says how."""
    OVER_TIME = 3
    NOT_STARTED = 4
    """The sandbox failed: no line of the program has run."""
    FLOODED = 5
    """The job's results are too large; this one was not kept."""
    PASSED = 6
    """The child says that the run ended well and left nothing but its output."""
    BROKE_OFF = 7
    """The child lives, but closed its channel or wrote nonsense on it; it was killed for that."""


class Row(NamedTuple):
    """One input's place in the inputs file."""

    kind: int
    offset: int
    length: int


_ROW = struct.Struct("<BQQ")


def row_bytes(row: Row) -> bytes:
    """Return the row as it stands in the table."""
    return _ROW.pack(*row)


def table_bytes(count: int) -> int:
    """Size of a table of `count` rows, which is where the program begins."""
    return count * _ROW.size


def read_table(descriptor: int, count: int) -> list[Row]:
    """Read the table of an inputs file."""
    return [Row(*fields) for fields in _ROW.iter_unpack(os.pread(descriptor, table_bytes(count), 0))]


class Request(NamedTuple):
    """Run the inputs from `first` on. The limits are per input where nothing else is said."""

    first: int
    input_count: int
    """Inputs of the job, those before `first` included."""
    program_bytes: int
    is_separate: bool
    stop_at_first_failure: bool
    cpu_seconds: float
    cpu_seconds_total: float
    """CPU time of all inputs from `first` on together; may be infinite."""
    wall_seconds: float
    wall_seconds_total: float
    memory_bytes: int
    output_bytes: int

    def to_bytes(self) -> bytes:
        """Return the request as it goes to a server and to each of its children."""
        return _REQUEST.pack(*self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Request:
        """Read what `to_bytes` wrote."""
        return cls._make(_REQUEST.unpack(data))


_REQUEST = struct.Struct("<QQQ??ddddQQ")


@dataclass(frozen=True)
class RecordHead:
    """The fixed part of a record."""

    state: State
    kind: Kind
    """The kind that was run: test code may have had to run with its program after all."""
    wait_status: int
    """As of `os.waitpid`, where the child has ended; of split test code, the program's process."""
    cpu_seconds: float
    wall_seconds: float
    peak_bytes: int
    """The most memory that the child had in use so far, in its own words while it lives; 0 when unknown."""
    stdout_bytes: int
    """Size of the output, of which less may be kept."""


@dataclass(frozen=True)
class Record:
    """What is left of one run."""

    head: RecordHead
    stdout: bytes
    report: bytes


_HEAD = struct.Struct("<BBiddQQQQ")
HEAD_BYTES = _HEAD.size


def head_bytes(head: RecordHead, stdout_kept: int, report_kept: int) -> bytes:
    """Return the head of a record with the sizes of the two parts that follow it."""
    return _HEAD.pack(
        head.state,
        head.kind,
        head.wait_status,
        head.cpu_seconds,
        head.wall_seconds,
        head.peak_bytes,
        head.stdout_bytes,
        stdout_kept,
        report_kept,
    )


def read_records(data: bytes) -> Iterator[Record]:
    """Yield the complete records; one that its server did not finish is left out."""
    position = 0
    while position + HEAD_BYTES <= len(data):
        state, kind, status, cpu, wall, peak, size, stdout_kept, report_kept = _HEAD.unpack_from(data, position)
        middle = position + HEAD_BYTES + stdout_kept
        end = middle + report_kept
        # The head is written last: of an incomplete record it is missing.
        if state == 0 or end > len(data):
            return
        head = RecordHead(State(state), Kind(kind), status, cpu, wall, peak, size)
        yield Record(head, data[position + HEAD_BYTES : middle], data[middle:end])
        position = end
