"""Runs the inputs of one job in children, hands inputs over one by one, watches the clocks, keeps the results.

The supervisor never reads what a program or a test wrote: inputs and outputs move from file to file inside
the kernel, and a child's messages are single bytes. So nothing of one program is in the memory that the next
one inherits, and a child has only its own input: later ones are handed over when their runs begin, earlier
results have left its reach.
"""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from smalt.sandbox.worker import processes, streams
from smalt.sandbox.worker.messages import FAILED, PASSED, READY, UNSPLIT, WORN, receive
from smalt.sandbox.worker.requests import (
    BREACH_STATUS,
    HEAD_BYTES,
    MAX_REPORTS_BYTES,
    MAX_VALUE_BYTES,
    Kind,
    RecordHead,
    Request,
    Row,
    State,
    head_bytes,
)

_TICK_SECONDS = 0.05
_START_SECONDS = 30.0
_ENDING_SECONDS = 0.2
_REPORT_FILE_BYTES = MAX_VALUE_BYTES + (1 << 20)


@dataclass
class Child:
    """One forked child: a process, or two where test code and program run apart."""

    pids: list[int]
    """The process on the channel first, the program's last."""
    channel: socket.socket

    def cpu_seconds(self) -> float:
        """CPU time used so far."""
        return sum(map(processes.cpu_seconds, self.pids))

    def end(self) -> tuple[int, int]:
        """Kill and reap what is left; returns wait status and peak memory of the program's process."""
        ends = [processes.kill_and_reap(pid) for pid in self.pids]
        self.pids = []
        return ends[-1] if ends else (0, 0)

    def close(self) -> None:
        """Leave nothing of the child."""
        self.end()
        self.channel.close()
        streams.close_child_files()


class _Seen(Enum):
    REPORT = 1
    END = 2
    OVER_TIME = 3
    BREACH = 4


_STATES = {
    _Seen.REPORT: State.REPORTED,
    _Seen.END: State.ENDED,
    _Seen.OVER_TIME: State.OVER_TIME,
    _Seen.BREACH: State.BROKE_OFF,
}


@dataclass(frozen=True)
class _Run:
    """One run as seen from outside."""

    seen: _Seen
    message: bytes
    cpu_seconds: float
    wall_seconds: float
    peak_bytes: int


class Supervisor:
    """Works through a request. Every finished run is in the results file before the next one begins."""

    def __init__(
        self,
        request: Request,
        table: list[Row],
        inputs: int,
        results: int,
        launch: Callable[[bool], Child],
        clean_up: Callable[[], None],
    ) -> None:
        """`inputs` and `results` are descriptors; `launch` forks (two processes for split test code).

        `clean_up` follows the end of each child.
        """
        self._request = request
        self._table = table
        self._inputs = inputs
        self._results = results
        self._launch = launch
        self._clean_up = clean_up
        self._cpu_left = request.cpu_seconds_total
        self._wall_left = request.wall_seconds_total
        self._room = MAX_REPORTS_BYTES + request.input_count * request.output_bytes
        self._next = request.first
        self._is_stopped = False

    def run(self) -> None:
        """Run child after child until every input has its record or none may follow.

        Raises OSError when the sandbox itself fails; the records so far stay.
        """
        while not self._is_over():
            try:
                child = self._launch(self._table[self._next].kind == Kind.SPLIT_CODE)
            except OSError:
                self._is_stopped = True
                self._keep_failure()
                return
            try:
                self._feed(child)
            finally:
                child.close()
                self._clean_up()

    def _is_over(self) -> bool:
        is_spent = self._cpu_left <= 0 or self._wall_left <= 0
        return self._is_stopped or is_spent or self._next >= self._request.input_count

    def _feed(self, child: Child) -> None:
        """Give the child inputs as long as it can take them."""
        if not self._is_ready(child):
            self._is_stopped = True
            self._keep_failure()
            return
        first = self._next
        is_split = self._table[first].kind == Kind.SPLIT_CODE
        while not self._is_over():
            row = self._table[self._next]
            if self._next > first and (self._request.is_separate or (row.kind == Kind.SPLIT_CODE) != is_split):
                return
            try:
                self._hand_over(child, row)
            except OSError:
                if self._next == first:
                    raise
                # The program before meddled with its files or its channel.
                return
            if not self._follow(child):
                return

    def _is_ready(self, child: Child) -> bool:
        poll = select.poll()
        poll.register(child.channel, select.POLLIN)
        return bool(poll.poll(_START_SECONDS * 1000)) and receive(child.channel)[0] == READY

    def _hand_over(self, child: Child, row: Row) -> None:
        for descriptor in (streams.INPUT, streams.STDOUT, streams.REPORT):
            os.ftruncate(descriptor, 0)
        # Positions are the child's too; reports do not use theirs.
        for descriptor in (streams.INPUT, streams.STDOUT):
            os.lseek(descriptor, 0, os.SEEK_SET)
        _copy(self._inputs, row.offset, row.length, streams.INPUT)
        os.lseek(streams.INPUT, 0, os.SEEK_SET)
        child.channel.send(bytes([row.kind]))

    def _follow(self, child: Child) -> bool:
        """Watch one run and keep its record; returns whether the child can take another input."""
        run = self._watch(child)
        self._cpu_left -= run.cpu_seconds
        self._wall_left -= run.wall_seconds
        row = self._table[self._next]
        if run.message == UNSPLIT and row.kind == Kind.SPLIT_CODE:
            self._table[self._next] = row._replace(kind=Kind.CODE)
            return False
        can_go_on = run.message in (PASSED, FAILED)
        is_breach = run.message == WORN and row.kind == Kind.SPLIT_CODE and _is_breach(child.pids[-1])
        status, peak = (0, run.peak_bytes) if can_go_on else child.end()
        if is_breach:
            status = BREACH_STATUS
        size = os.fstat(streams.STDOUT).st_size
        state = _STATES[run.seen]
        if run.message == PASSED and os.fstat(streams.REPORT).st_size == 0:
            state = State.PASSED
        self._keep(RecordHead(state, Kind(row.kind), status, run.cpu_seconds, run.wall_seconds, peak, size))
        if run.message not in (PASSED, WORN) and self._request.stop_at_first_failure:
            self._is_stopped = True
        return can_go_on

    def _watch(self, child: Child) -> _Run:
        request = self._request
        poll = select.poll()
        poll.register(child.channel, select.POLLIN)
        start_cpu, start_wall = child.cpu_seconds(), time.monotonic()
        cpu_limit = min(request.cpu_seconds, self._cpu_left)
        wall_limit = min(request.wall_seconds, self._wall_left)
        while True:
            has_news = bool(poll.poll(_TICK_SECONDS * 1000))
            message, peak = receive(child.channel) if has_news else (b"", 0)
            cpu, wall = child.cpu_seconds() - start_cpu, time.monotonic() - start_wall
            if cpu > cpu_limit or (wall > wall_limit and not message):
                return _Run(_Seen.OVER_TIME, b"", cpu, wall, peak)
            if message:
                return _Run(_Seen.REPORT, message, cpu, wall, peak)
            # Without the layers that forbid it, something else may hold the channel open.
            if has_news or processes.has_ended(child.pids[0]):
                seen = _Seen.BREACH if _is_breach(child.pids[0]) else _Seen.END
                return _Run(seen, b"", cpu, wall, peak)

    def _keep_failure(self) -> None:
        """Record that the sandbox could not start the next run."""
        self._keep(RecordHead(State.NOT_STARTED, Kind.STDIN, 0, 0.0, 0.0, 0, 0))

    def _keep(self, head: RecordHead) -> None:
        """Append a record to the results."""
        start = os.lseek(self._results, 0, os.SEEK_END)
        os.lseek(self._results, start + HEAD_BYTES, os.SEEK_SET)
        stdout_kept = report_kept = 0
        if head.state != State.NOT_STARTED:
            wanted = min(head.stdout_bytes, self._request.output_bytes)
            report_size = min(os.fstat(streams.REPORT).st_size, _REPORT_FILE_BYTES)
            if wanted + report_size > self._room:
                head = replace(head, state=State.FLOODED)
            else:
                stdout_kept = _copy(streams.STDOUT, 0, wanted, self._results)
                report_kept = _copy(streams.REPORT, 0, report_size, self._results)
                self._room -= stdout_kept + report_kept
        # Last, so that a record is complete or not there; and with what was really copied.
        os.pwrite(self._results, head_bytes(head, stdout_kept, report_kept), start)
        self._next += 1


def _is_breach(pid: int) -> bool:
    """Whether a process whose connection closed lives on; one that is ending closes it a moment earlier."""
    deadline = time.monotonic() + _ENDING_SECONDS
    while not processes.has_ended(pid):
        if time.monotonic() > deadline:
            return True
        time.sleep(0.001)
    return False


def _copy(source: int, offset: int, length: int, target: int) -> int:
    """Append a part of one file to another without reading it; returns how much there was of it."""
    copied = 0
    while copied < length:
        step = os.sendfile(target, source, offset + copied, length - copied)
        if step == 0:
            break
        copied += step
    return copied
