"""Does in the server, with programs of our own, what children will do, so that they find it warm in memory.

The interpreter writes into code that it runs often and keeps what it has looked up; each child would do that to
pages of its own, a third of all that it copies. Nothing of what a child cannot undo is done: layers, closing.
"""

from __future__ import annotations

import contextlib
import marshal
import math
import os
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from smalt.sandbox.worker import crossing, launching, streams, tracebacks
from smalt.sandbox.worker.requests import Kind, Request, table_bytes

# The interpreter adapts a function after eight calls.
_TIMES = 12
_PROGRAM = b"""
import sys
def add(x): return x + 1
def same(x):
    if x == "wrong": raise ValueError(x)
    return x
if __name__ == "__main__":
    numbers = [int(word) for word in input().split()]
    table = {}
    for n in numbers: table[n] = table.get(n, 0) + add(n)
    print(f"{sum(numbers)} {max(table)}")
"""
_TEST = "assert same([1, 'a']) == [1, 'a']\nassert same(2) == 2"
_ARGUMENT = [1, "a", (2.5, {}), None]
# What the test hears from the program, and the program from the test.
_ANSWERS: list[list[Any]] = [["ok", ["add", "same"]], ["ok", [1, "a"], []], ["ok", 2, []]]
_CALLS: list[list[Any]] = [["start_over"], *(["call", "same", [value], {"d": []}] for value in ([1, "a"], 2))]
_REQUEST = Request(
    first=0,
    input_count=1,
    program_bytes=len(_PROGRAM),
    is_separate=False,
    stop_at_first_failure=False,
    cpu_seconds=1e9,
    cpu_seconds_total=math.inf,
    wall_seconds=1.0,
    wall_seconds_total=math.inf,
    memory_bytes=1 << 60,
    output_bytes=1 << 60,
)
"""Its limits are no limits, as this process has to live under them."""


def rehearse(put_layers: Callable[[], None], null: int) -> None:
    """Play every role of a child; `put_layers` is all that can be done of it, `null` the null device, open."""
    work = launching.ChildWork(
        launching.Locking(put_layers, _close_none, dies_with_parent=False, max_tasks=None, null=2)
    )
    before = sys.modules["__main__"], sys.stdin, sys.stdout, sys.stderr
    inputs = os.memfd_create("rehearsal")
    os.pwrite(inputs, _PROGRAM, table_bytes(_REQUEST.input_count))
    streams.open_child_files()
    calls = [marshal.dumps(("same", (value,))) for value in (_ARGUMENT, "wrong")]
    for _ in range(_TIMES):
        _play(work, launching.RUN_PROGRAM, inputs, Kind.STDIN, b"1 2 3\n")
        _play(work, launching.COMPILE, inputs, Kind.STDIN, b"")
        # Its code is in the report now.
        _play(work, launching.RUN_PROGRAM, inputs, Kind.STDIN, b"1 2 3\n", code=streams.REPORT)
        for call in calls:
            _play(work, launching.RUN_PROGRAM, inputs, Kind.CALL, call)
        _play(work, launching.RUN_TEST, inputs, Kind.SPLIT_CODE, marshal.dumps((_TEST, "same")), _ANSWERS)
        _play(work, launching.SERVE_PROGRAM, inputs, Kind.SPLIT_CODE, b"", _CALLS)
    streams.close_child_files()
    os.close(inputs)
    for descriptor in (0, 1):
        os.dup2(null, descriptor)
    sys.modules.pop("solution", None)
    tracebacks.forget_sources()
    sys.modules["__main__"], sys.stdin, sys.stdout, sys.stderr = before


def _close_none(first_kept: int, last_kept: int) -> None:
    streams.close_others(streams.FIRST_DESCRIPTOR, streams.LAST_DESCRIPTOR)


def _play(
    work: launching.ChildWork,
    role: int,
    inputs: int,
    kind: Kind,
    payload: bytes,
    heard: Sequence[list[Any]] = (),
    **descriptors: int,
) -> None:
    """Have `work` do one run, with what it needs at the descriptors of a child."""
    os.ftruncate(streams.INPUT, 0)
    streams.write_all(streams.INPUT, payload)
    os.lseek(streams.INPUT, 0, os.SEEK_SET)
    with _at(streams.CHANNEL, socket.SOCK_SEQPACKET) as server, _at(streams.CONNECTION, socket.SOCK_STREAM) as other:
        server.send(bytes([kind]))
        for message in heard:
            crossing.send(other.fileno(), message)
        # It finds the end of both after that, and returns.
        for end in (server, other):
            end.shutdown(socket.SHUT_WR)
        work.carry_out(launching.order(role, inputs, _REQUEST.to_bytes(), **descriptors))


@contextlib.contextmanager
def _at(descriptor: int, kind: int) -> Iterator[socket.socket]:
    """Open one end of a connection at this descriptor, and yield the other."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
    launching.put(theirs, descriptor)
    with ours:
        yield ours
    os.close(descriptor)
