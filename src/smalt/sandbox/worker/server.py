"""The server loop of a worker: for each request fork a child, watch it, clean up, send what it left.

The server parses nothing that a program wrote. It forwards the child's report as bytes; the caller decodes
it. It ends when the caller closes the connection or dies.
"""

from __future__ import annotations

import gc
import importlib
import os
import select
import shutil
import site
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from smalt.sandbox.worker import processes, streams
from smalt.sandbox.worker.child import ChildRun, prepare_state
from smalt.sandbox.worker.frames import receive_frame, send_frame
from smalt.sandbox.worker.requests import (
    FAILED_CHILD_STATUS,
    MAX_REPORT_BYTES,
    MAX_REQUEST_BYTES,
    ChildEnd,
    ChildRequest,
)

READY = b"ready"
_TICK_SECONDS = 0.05
_IDLE_TICK_SECONDS = 1.0
# The child's own timer should win, so that a killed child means the same in every run.
_CPU_GRACE_SECONDS = 0.1

# Imported before the first fork: what short programs use.
_PRELOADED = (
    *("array", "bisect", "cmath", "collections", "contextlib", "copy", "dataclasses", "datetime", "decimal"),
    *("enum", "fractions", "functools", "heapq", "io", "itertools", "json", "linecache", "math", "operator"),
    *("queue", "random", "re", "statistics", "string", "struct", "textwrap", "threading", "time"),
    *("traceback", "typing"),
)

_WARM_UP = """
import sys
def add(x): return x + 1
numbers = [int(word) for word in "1 2 3".split()]
table = {}
for n in numbers: table[n] = table.get(n, 0) + add(n)
text = f"{sum(numbers)} {max(table)}"
"""


class CallerGoneError(Exception):
    """The caller closed the connection or died."""


class Server:
    """One server process; `caller` is the process id it must not outlive."""

    def __init__(self, connection: socket.socket, scratch_root: Path, caller: int) -> None:
        """Take the connected socket and the folder to make working folders in."""
        self._connection = connection
        self._scratch_root = scratch_root
        self._caller = caller
        self._jobs = 0
        self._null = os.open(os.devnull, os.O_RDWR)
        self._poll = select.poll()
        self._poll.register(connection, select.POLLIN)

    def serve(self, preload: Sequence[str]) -> None:
        """Answer requests until the caller is gone."""
        processes.adopt_orphans()
        self._prepare(preload)
        try:
            send_frame(self._connection, READY)
            while True:
                self._serve_one()
        except (CallerGoneError, ConnectionError):
            return
        finally:
            # A caller that was killed cannot do it.
            shutil.rmtree(self._scratch_root, ignore_errors=True)

    def _prepare(self, preload: Sequence[str]) -> None:
        """Import and touch everything a child will need, then freeze it out of the children's collections."""
        for name in (*_PRELOADED, *preload):
            importlib.import_module(name)
        prepare_state()
        site.setquit()
        site.sethelper()
        for descriptor in (0, 1):
            os.dup2(self._null, descriptor)
        for _ in range(3):
            exec(compile(_WARM_UP, "warm", "exec"), {"__name__": "__warm__"})
        # The child's first streams; making them before the fork keeps their cost out of it.
        self._streams = streams.make_streams()
        gc.collect()
        gc.freeze()
        gc.disable()

    def _serve_one(self) -> None:
        while not self._poll.poll(_IDLE_TICK_SECONDS * 1000):
            self._check_caller()
        head = receive_frame(self._connection, MAX_REQUEST_BYTES)
        payload = receive_frame(self._connection, MAX_REQUEST_BYTES)
        if head is None or payload is None:
            raise CallerGoneError
        for part in self._run_child(ChildRequest.from_bytes(head), payload):
            send_frame(self._connection, part)

    def _run_child(self, request: ChildRequest, payload: bytes) -> tuple[bytes, bytes, bytes]:
        """Run one child; returns its end, its report and the output of the input it did not finish."""
        files = streams.open_child_files()
        self._jobs += 1
        scratch = self._scratch_root / str(self._jobs)
        scratch.mkdir()
        try:
            end = self._fork_and_watch(request, payload, files, scratch)
            report = os.pread(files.report, MAX_REPORT_BYTES, 0)
            unfinished = os.pread(files.stdout, request.output_bytes, 0)
            return end.to_bytes(), report, unfinished
        finally:
            streams.close_child_files(files)
            _remove(scratch)

    def _fork_and_watch(
        self, request: ChildRequest, payload: bytes, files: streams.ChildFiles, scratch: Path
    ) -> ChildEnd:
        try:
            pid = processes.fork()
        except OSError:
            return ChildEnd(-1, False, 0.0, 0.0, 0)
        if pid == 0:
            self._be_child(request, payload, files, scratch)
        is_over_time, cpu, wall = self._watch(pid, request, files)
        # Its group first, while the unreaped child keeps the id from being given to another process.
        processes.kill_group(pid)
        _, status = os.waitpid(pid, 0)
        processes.kill_descendants()
        return ChildEnd(status, is_over_time, cpu, wall, os.fstat(files.stdout).st_size)

    def _be_child(self, request: ChildRequest, payload: bytes, files: streams.ChildFiles, scratch: Path) -> NoReturn:
        try:
            processes.die_with_parent()
            os.setsid()
            self._connection.close()
            os.dup2(self._null, 2)
            os.close(self._null)
            os.chdir(scratch)
            gc.enable()
            ChildRun(request, files, self._streams).run(payload)
        finally:
            os._exit(FAILED_CHILD_STATUS)

    def _watch(self, pid: int, request: ChildRequest, files: streams.ChildFiles) -> tuple[bool, float, float]:
        """Wait for the child; returns whether it was over time, and CPU and wall time since its last report.

        A growing report means another input was begun. A program that forges reports wins no time: its child
        is bounded by the limits of all its inputs together.
        """
        descriptor = os.pidfd_open(pid)
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        begun = start_wall = time.monotonic()
        start_cpu, seen = 0.0, 0
        inputs = request.count - request.first
        try:
            while True:
                is_ended = bool(poll.poll(_TICK_SECONDS * 1000))
                now, cpu = time.monotonic(), processes.cpu_seconds(pid)
                if is_ended:
                    return False, cpu - start_cpu, now - start_wall
                self._check_caller(pid)
                size = os.fstat(files.report).st_size
                if size != seen:
                    seen, start_cpu, start_wall = size, cpu, now
                if (
                    cpu - start_cpu > request.cpu_seconds + _CPU_GRACE_SECONDS
                    or now - start_wall > request.wall_seconds
                    or cpu > (request.cpu_seconds + _CPU_GRACE_SECONDS) * inputs + 1
                    or now - begun > request.wall_seconds * inputs + 1
                ):
                    return True, cpu - start_cpu, now - start_wall
        finally:
            os.close(descriptor)

    def _check_caller(self, child: int | None = None) -> None:
        """Raise CallerGoneError, after killing `child`, when the caller died or hung up."""
        # The parent's id, not PR_SET_PDEATHSIG: that fires when the thread that made this process ends.
        is_gone = os.getppid() != self._caller
        if not is_gone and child is not None:
            is_gone = any(event & select.POLLHUP for _, event in self._poll.poll(0))
        if is_gone:
            if child is not None:
                processes.kill_group(child)
                processes.kill_descendants()
            raise CallerGoneError


def _remove(scratch: Path) -> None:
    try:
        scratch.rmdir()
    except OSError:
        shutil.rmtree(scratch, ignore_errors=True)


def main(connection: int, scratch_root: str, caller: int, preload: Sequence[str]) -> None:
    """Serve on the inherited socket `connection`."""
    sys.argv = ["solution.py"]
    Server(socket.socket(fileno=connection), Path(scratch_root), caller).serve(preload)
