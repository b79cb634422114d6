"""Forks the children of one job: straight from the server, or from a process that has the program compiled."""

from __future__ import annotations

import gc
import os
import resource
import signal
import socket
from collections.abc import Callable
from typing import NoReturn

from smalt.sandbox.worker import candidate, child, limits, processes, streams, testdriver
from smalt.sandbox.worker.confinement import Confinement
from smalt.sandbox.worker.layers.names import Layer
from smalt.sandbox.worker.requests import Kind, Request, table_bytes
from smalt.sandbox.worker.supervision import Child

_FAILED_STATUS = 70


class Launcher:
    """Makes children that run the program of one request."""

    def __init__(
        self, request: Request, inputs: int, confinement: Confinement, null: int, ready: streams.Streams
    ) -> None:
        """`inputs` and `null` are descriptors; `ready` are streams made before the fork."""
        self._request = request
        self._inputs = inputs
        self._confinement = confinement
        self._null = null
        self._ready = ready
        self._compiled: child.Compiled | None = None

    def launch(self, kind: Kind) -> Child:
        """Fork a child that waits for its first input. Raises OSError."""
        files = streams.open_child_files()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        launched = Child([], ours, files)
        try:
            with theirs:
                if kind == Kind.SPLIT_CODE:
                    self._fork_two(launched, theirs)
                else:
                    launched.pids.append(self._fork(lambda: self._run_program(files, theirs)))
        except OSError:
            launched.close()
            raise
        return launched

    def _fork_two(self, launched: Child, channel: socket.socket) -> None:
        """Fork the test's process and the program's, with a connection between them."""
        for_test, for_program = socket.socketpair()
        with for_test, for_program:
            launched.pids.append(self._fork(lambda: self._run_test(launched.files, channel, for_test)))
            launched.pids.append(self._fork(lambda: self._serve_program(launched.files, for_program)))

    def _fork(self, be_child: Callable[[], None]) -> int:
        pid = processes.fork()
        if pid == 0:
            try:
                be_child()
            finally:
                os._exit(_FAILED_STATUS)
        return pid

    def _run_program(self, files: streams.ChildFiles, channel: socket.socket) -> None:
        program = self._read_program()
        high = streams.move_up(channel.fileno())
        self._lock({files.input, files.stdout, files.report, high})
        child.ChildRun(self._request, files, high, self._ready).run(program, self._compiled)

    def _run_test(self, files: streams.ChildFiles, channel: socket.socket, connection: socket.socket) -> None:
        high, connection = streams.move_up(channel.fileno()), _moved_up(connection)
        self._lock({files.input, files.stdout, files.report, high, connection.fileno()})
        run = testdriver.TestRun(self._request, files, high, self._ready, connection)
        run.run(b"", testdriver.NO_PROGRAM)

    def _serve_program(self, files: streams.ChildFiles, connection: socket.socket) -> None:
        program = self._read_program()
        connection = _moved_up(connection)
        self._lock({files.stdout, connection.fileno()})
        limits.lower_soft(resource.RLIMIT_FSIZE, self._request.output_bytes + 1)
        candidate.serve_program(connection, files.stdout, program, self._ready)

    def _lock(self, kept: set[int]) -> None:
        """Give up everything that a program must not have; nothing of it has been read so far."""
        if not self._confinement.has(Layer.NAMESPACES):
            processes.die_with_parent()
        os.dup2(self._null, 2)
        os.chdir(self._confinement.scratch)
        limits.set_limits(self._request, self._confinement.max_tasks)
        self._confinement.lock_child()
        gc.enable()
        # After the lock, which uses a descriptor of its own.
        streams.close_others(kept)

    def _read_program(self) -> bytes:
        return os.pread(self._inputs, self._request.program_bytes, table_bytes(self._request.count))

    def run_compiled(self, work: Callable[[], None]) -> bool:
        """Do `work` in a child that has the program compiled, so that its own children need not.

        The child compiles under the limits and runs no line of the program. Returns whether it succeeded: a
        program may crash the compiler.
        """
        pid = processes.fork()
        if pid == 0:
            self._be_compiler(work)
        return os.waitpid(pid, 0)[1] == 0

    def _be_compiler(self, work: Callable[[], None]) -> NoReturn:
        status = _FAILED_STATUS
        try:
            if not self._confinement.has(Layer.NAMESPACES):
                processes.die_with_parent()
            # Python's warnings about the program are not for the caller's terminal.
            os.dup2(self._null, 2)
            limits.lower_soft(resource.RLIMIT_AS, self._request.memory_bytes)
            signal.setitimer(signal.ITIMER_PROF, self._request.cpu_seconds)
            self._compiled = child.compile_program(self._read_program().decode("utf-8", "surrogatepass"))
            signal.setitimer(signal.ITIMER_PROF, 0)
            limits.raise_soft(resource.RLIMIT_AS)
            work()
            status = 0
        finally:
            os._exit(status)


def _moved_up(channel: socket.socket) -> socket.socket:
    return socket.socket(fileno=streams.move_up(channel.detach()))
