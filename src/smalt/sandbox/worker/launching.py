"""Launches the children of one job, and is what they do until they run the program.

The server opens a child's files and connections at fixed descriptors, which it shares with the zygote, and
orders a fork; the child finds them there.

What children do is kept plain on purpose: whatever they look up or call costs the copy of a page, and members of
an enumeration, which take a dozen calls, cost many.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
import socket
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass

from smalt.sandbox.worker import candidate, child, limits, processes, streams, testdriver
from smalt.sandbox.worker.requests import Kind, Request, table_bytes
from smalt.sandbox.worker.supervision import Child
from smalt.sandbox.worker.zygote import Zygote

# The child's role, the descriptor of the inputs; the request follows.
_ORDER = struct.Struct("ii")


RUN_PROGRAM, RUN_TEST, SERVE_PROGRAM, _COMPILE = range(4)
"""Roles of children."""


def order(role: int, inputs: int, request: bytes) -> bytes:
    """Return the order for a child with this role; `inputs` is the descriptor of the inputs."""
    return _ORDER.pack(role, inputs) + request


class Launcher:
    """The server's side: makes children that run the program of one request."""

    def __init__(self, zygote: Zygote, request: bytes, inputs: int) -> None:
        """Fork from `zygote`; `inputs` is the descriptor of the inputs."""
        self._zygote = zygote
        self._request = request
        self._inputs = inputs

    def compiled(self) -> Zygote | None:
        """Return a zygote that has the program compiled; None when that takes too much or kills the compiler."""
        return self._zygote.specialize(order(_COMPILE, self._inputs, self._request))

    def launch(self, kind: Kind) -> Child:
        """Fork a child that waits for its first input. Raises OSError."""
        streams.open_child_files()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        put(theirs, streams.CHANNEL)
        launched = Child([], ours)
        try:
            if kind == Kind.SPLIT_CODE:
                self._launch_two(launched)
            else:
                launched.pids.append(self._zygote.spawn(order(RUN_PROGRAM, self._inputs, self._request)))
        except OSError:
            launched.close()
            raise
        finally:
            os.close(streams.CHANNEL)
        return launched

    def _launch_two(self, launched: Child) -> None:
        """Fork the test's process and the program's, with a connection between them."""
        for role, end in zip((RUN_TEST, SERVE_PROGRAM), socket.socketpair(), strict=True):
            put(end, streams.CONNECTION)
            try:
                launched.pids.append(self._zygote.spawn(order(role, self._inputs, self._request)))
            finally:
                os.close(streams.CONNECTION)


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
        self._compiled: child.Compiled | None = None

    def carry_out(self, order: bytes) -> None:
        """Be the child that the order asks for, to the end of its work."""
        role, inputs = _ORDER.unpack_from(order)
        request = Request.from_bytes(order[_ORDER.size :])
        program = b""
        if role != RUN_TEST:
            program = os.pread(inputs, request.program_bytes, table_bytes(request.input_count))
        if role == RUN_PROGRAM:
            self._lock(request, streams.INPUT, streams.CHANNEL)
            child.ChildRun(request, self._ready).run(program, self._compiled)
        elif role == RUN_TEST:
            self._lock(request, streams.INPUT, streams.CONNECTION)
            testdriver.TestRun(request, self._ready).run(program, testdriver.NO_PROGRAM)
        elif role == SERVE_PROGRAM:
            os.dup2(streams.STDOUT, 1)
            self._lock(request, streams.CONNECTION, streams.CONNECTION)
            candidate.serve_program(program, self._ready)
        else:
            self._compile(request, program)

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

    def _compile(self, request: Request, program: bytes) -> None:
        """Compile the program once for all children that are forked from here, of which none sees another.

        The compiler is bounded by memory and CPU time of one input.
        """
        if self._locking.dies_with_parent:
            processes.die_with_parent()
        limits.lower_soft(resource.RLIMIT_AS, request.memory_bytes)
        signal.setitimer(signal.ITIMER_PROF, request.cpu_seconds)
        # Python's warnings about the program are not for the caller's terminal, which is the server's too.
        sys.stderr = None
        self._compiled = child.compile_program(program.decode("utf-8", "surrogatepass"))
        signal.setitimer(signal.ITIMER_PROF, 0)
        limits.raise_soft(resource.RLIMIT_AS)


def put(end: socket.socket, descriptor: int) -> None:
    """Move a socket to a fixed descriptor."""
    with end:
        os.dup2(end.fileno(), descriptor)
