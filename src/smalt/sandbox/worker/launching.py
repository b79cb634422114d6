"""Launches the children of one job, and is what they do until they run the program.

The server opens a child's files and connections at fixed descriptors, which it shares with the zygote, and
orders a fork; the child finds them there.

What children do is kept plain on purpose: whatever they look up or call costs the copy of a page, and members of
an enumeration, which take a dozen calls, cost many.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass

from smalt.sandbox.worker import candidate, child, compiling, limits, processes, streams, testdriver
from smalt.sandbox.worker.messages import PASSED, receive
from smalt.sandbox.worker.requests import Request, table_bytes
from smalt.sandbox.worker.supervision import Child
from smalt.sandbox.worker.zygote import Zygote

# The child's role, the descriptors of the inputs and of the program's code; the request follows.
_ORDER = struct.Struct("iii")
_NO_CODE = -1
_TICK_SECONDS = 0.05

RUN_PROGRAM, RUN_TEST, SERVE_PROGRAM, COMPILE = range(4)
"""Roles of children."""


def order(role: int, inputs: int, request: bytes, code: int = _NO_CODE) -> bytes:
    """Return the order for a child with this role; `inputs` and `code` are descriptors."""
    return _ORDER.pack(role, inputs, code) + request


class Launcher:
    """The server's side: makes children that run the program of one request; to be used in a `with` block."""

    def __init__(self, zygote: Zygote, request: bytes, inputs: int) -> None:
        """Fork from `zygote`; `inputs` is the descriptor of the inputs."""
        self._zygote = zygote
        self._request = request
        self._inputs = inputs
        self._code = _NO_CODE

    def __enter__(self) -> Launcher:
        """Return the launcher itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of the program's code."""
        if self._code != _NO_CODE:
            os.close(self._code)

    def compile_once(self) -> None:
        """Have one child compile for all that follow, with the limits of one run.

        Where that fails, each of them compiles for itself and tells how it ends.
        """
        with contextlib.suppress(OSError):
            compiler = self._launch((COMPILE,))
            try:
                if _has_passed(compiler, Request.from_bytes(self._request)):
                    self._code = os.dup(streams.REPORT)
            finally:
                compiler.close()

    def launch(self, is_split: bool) -> Child:
        """Fork a child that waits for its first input; `is_split`: test code, in a process of its own.

        Raises OSError.
        """
        return self._launch((RUN_TEST, SERVE_PROGRAM) if is_split else (RUN_PROGRAM,))

    def _launch(self, roles: tuple[int, ...]) -> Child:
        streams.open_child_files()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        put(theirs, streams.CHANNEL)
        launched = Child([], ours)
        try:
            if len(roles) == 1:
                self._spawn(roles[0], launched)
            else:
                self._spawn_connected(roles, launched)
        except OSError:
            launched.close()
            raise
        finally:
            os.close(streams.CHANNEL)
        return launched

    def _spawn(self, role: int, launched: Child) -> None:
        launched.pids.append(self._zygote.spawn(order(role, self._inputs, self._request, self._code)))

    def _spawn_connected(self, roles: tuple[int, ...], launched: Child) -> None:
        """Fork the test's process and the program's, with a connection between them."""
        for role, end in zip(roles, socket.socketpair(), strict=True):
            put(end, streams.CONNECTION)
            try:
                self._spawn(role, launched)
            finally:
                os.close(streams.CONNECTION)


def _has_passed(child: Child, request: Request) -> bool:
    """Wait, for the time of one run, until a child that needs no input says how it went; whether it went well."""
    poll = select.poll()
    poll.register(child.channel, select.POLLIN)
    deadline = time.monotonic() + request.wall_seconds
    while not poll.poll(_TICK_SECONDS * 1000):
        if child.cpu_seconds() > request.cpu_seconds or time.monotonic() > deadline:
            return False
    return receive(child.channel)[0] == PASSED


@dataclass(frozen=True)
class Locking:
    """What a child does before it looks at the program and cannot undo."""

    put_layers: Callable[[], None]
    close_others: Callable[[int, int], None]
    dies_with_parent: bool
    max_tasks: int | None
    """Processes and threads of the child's user; None where the kernel does not count."""
    null: int
    """The null device, open: the program's standard error."""


class ChildWork:
    """The children's side: carries out orders."""

    def __init__(self, locking: Locking) -> None:
        """Make the streams of a first run now; after the fork they would cost more."""
        self._locking = locking
        self._ready = streams.make_streams()

    def carry_out(self, order: bytes) -> None:
        """Be the child that the order asks for, to the end of its work."""
        role, inputs, code_file = _ORDER.unpack_from(order)
        request = Request.from_bytes(order[_ORDER.size :])
        program = b""
        if role != RUN_TEST:
            program = os.pread(inputs, request.program_bytes, table_bytes(request.input_count))
        if role == RUN_PROGRAM:
            # Bytes only, here as above: what is in them is looked at behind the lock.
            code = b"" if code_file == _NO_CODE else os.pread(code_file, os.fstat(code_file).st_size, 0)
            self._lock(request, streams.INPUT, streams.CHANNEL)
            child.ChildRun(request, self._ready).run(program, code)
        elif role == RUN_TEST:
            self._lock(request, streams.INPUT, streams.CONNECTION)
            testdriver.TestRun(request, self._ready).run(program, testdriver.NO_PROGRAM)
        elif role == SERVE_PROGRAM:
            os.dup2(streams.STDOUT, 1)
            self._lock(request, streams.CONNECTION, streams.CONNECTION)
            candidate.serve_program(program, self._ready)
        else:
            self._lock(request, streams.INPUT, streams.CHANNEL)
            compiling.leave_code(program)

    def _lock(self, request: Request, first_kept: int, last_kept: int) -> None:
        """Give up everything that a program must not have; nothing of the program has run so far."""
        locking = self._locking
        if locking.dies_with_parent:
            processes.die_with_parent()
        os.dup2(locking.null, 2)
        limits.set_limits(request)
        limits.limit_tasks(locking.max_tasks)
        locking.put_layers()
        gc.enable()
        # After the layers, which use a descriptor of their own.
        locking.close_others(first_kept, last_kept)


def put(end: socket.socket, descriptor: int) -> None:
    """Move a socket to a fixed descriptor."""
    with end:
        os.dup2(end.fileno(), descriptor)
