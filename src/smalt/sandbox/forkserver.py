"""A sandbox of warm fork servers: one process forked per program, milliseconds per job.

What it protects against: endless loops and sleepers (also such that swallow signals and exceptions), memory
and output floods, crashes of the interpreter, processes left behind, leftovers in the working folder, and
results of finished inputs lost with a later crash. The caller's environment is out of reach, and what comes
back is decoded as plain data only.

What it does not protect against yet: the program runs as the same user without a filter on files, network and
system calls, so it can read and write what that user can (files, and the memory of the user's processes where
the kernel allows it), and signal the user's processes, its server included. It also shares its process with
the code that reports results: a program that looks for the report's descriptor can forge its own results. It
is never given expected outputs, but it can forge that a `CodeInput` ended well. The number of processes a
program starts is not bounded, only their life.
"""

from __future__ import annotations

import queue
from types import TracebackType

from smalt.sandbox.connection import ChildAnswer, ServerConnection, ServerDiedError
from smalt.sandbox.execution import Execution, Job, Outcome
from smalt.sandbox.reports import child_request, encode_job, executions_of, infra_error
from smalt.sandbox.worker.requests import ChildRequest

_TRIES = 2


class ForkServerSandbox:
    """Runs jobs on `workers` fork servers. Linux only; safe to call from several threads.

    The servers start with the sandbox and end with `close`, with the `with` block, or with this process.
    """

    def __init__(self, workers: int = 2) -> None:
        """Start the servers without waiting for them."""
        if workers < 1:
            raise ValueError("a sandbox needs at least one worker")
        self._workers = [_Worker() for _ in range(workers)]
        # Last in, first out: a worker that just ran has its memory in the processor's caches.
        self._idle: queue.LifoQueue[_Worker] = queue.LifoQueue()
        for worker in self._workers:
            worker.start()
            self._idle.put(worker)
        self._is_closed = False

    def run(self, job: Job) -> list[Execution]:
        """Run `job`; waits for a free worker. Executions are in the order of `job.inputs`.

        Raises ValueEncodingError when call arguments are not plain data, RuntimeError after `close`.
        """
        payload = encode_job(job)
        worker = self._idle.get()
        try:
            if self._is_closed:
                raise RuntimeError("the sandbox is closed")
            return worker.run(job, payload)
        finally:
            self._idle.put(worker)

    def close(self) -> None:
        """Stop all workers after the jobs they are running; no process is left behind."""
        self._is_closed = True
        for _ in self._workers:
            self._idle.get().stop()
        for worker in self._workers:
            self._idle.put(worker)

    def __enter__(self) -> ForkServerSandbox:
        """Return the sandbox itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the sandbox."""
        self.close()


class _Worker:
    """Runs one job at a time on its server."""

    def __init__(self) -> None:
        self._plain = ServerConnection()
        # Importing numpy takes longer than a hundred small programs, having it imported makes every fork
        # dearer; so programs that name it get a server of their own, started when the first of them comes.
        self._numeric = ServerConnection(preload=("numpy",))

    @property
    def servers(self) -> tuple[ServerConnection, ServerConnection]:
        return self._plain, self._numeric

    def start(self) -> None:
        self._plain.start()

    def stop(self) -> None:
        for server in self.servers:
            server.stop()

    def run(self, job: Job, payload: bytes) -> list[Execution]:
        """Run child after child until every input has its execution."""
        server = self._numeric if "numpy" in job.program else self._plain
        executions: list[Execution] = []
        while len(executions) < len(job.inputs):
            first = len(executions)
            answer = _ask(server, child_request(job, first), payload)
            if answer is None:
                missing = len(job.inputs) - first
                return executions + [infra_error("the worker died twice")] * missing
            executions += executions_of(answer, job, first)
            if job.stop_at_first_failure and executions[-1].outcome is not Outcome.OK:
                break
        return executions


def _ask(server: ServerConnection, request: ChildRequest, payload: bytes) -> ChildAnswer | None:
    """Ask the server, a restarted one if it dies; None when that dies as well."""
    for _ in range(_TRIES):
        try:
            return server.ask(request, payload)
        except ServerDiedError:
            continue
    return None
