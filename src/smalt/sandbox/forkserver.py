"""A sandbox of warm fork servers: one process forked per program, milliseconds per job.

What it protects against is in the header of the package.
"""

from __future__ import annotations

import contextlib
import math
import queue
from types import TracebackType

from smalt.sandbox.connection import ServerConnection, ServerDiedError
from smalt.sandbox.execution import Execution, Job, Outcome
from smalt.sandbox.isolation import Isolation, IsolationSettings, Level
from smalt.sandbox.jobs import JobFiles
from smalt.sandbox.reports import execution_of, infra_error, out_of_time
from smalt.sandbox.worker.requests import State

_TRIES = 2
RUNS_PER_SERVER = 20_000
"""Inputs after which a server is replaced, whatever its state."""


class ForkServerSandbox:
    """Runs jobs on `workers` fork servers. Linux only; safe to call from several threads.

    The servers start with the sandbox and end with `close`, with the `with` block, or with this process.
    """

    def __init__(
        self, workers: int = 2, require: Level = Level.MINIMUM, settings: IsolationSettings | None = None
    ) -> None:
        """Start the servers and see to it that programs are kept in at least as `require` says.

        Raises IsolationTooWeakError, which says what is missing.
        """
        if workers < 1:
            raise ValueError("a sandbox needs at least one worker")
        self._require = Level(require)
        self._workers = [_Worker(settings, self._require) for _ in range(workers)]
        # Last in, first out: a worker that just ran has its memory in the processor's caches.
        self._idle: queue.LifoQueue[_Worker] = queue.LifoQueue()
        for worker in self._workers:
            worker.start()
            self._idle.put(worker)
        self._is_closed = False
        try:
            self.isolation.check(self._require)
        except BaseException:
            self.close()
            raise

    @property
    def isolation(self) -> Isolation:
        """The layers around the programs."""
        worker = self._idle.get()
        try:
            return worker.isolation
        finally:
            self._idle.put(worker)

    def run(self, job: Job) -> list[Execution]:
        """Run `job`; waits for a free worker. Executions are in the order of `job.inputs`.

        Raises ValueEncodingError when call arguments are not plain data, RuntimeError after `close`.
        """
        with JobFiles(job) as files:
            worker = self._idle.get()
            try:
                if self._is_closed:
                    raise RuntimeError("the sandbox is closed")
                return worker.run(job, files)
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
    """Runs one job at a time on its servers."""

    def __init__(self, settings: IsolationSettings | None, require: Level) -> None:
        self._require = require
        self._plain = ServerConnection(settings)
        # Importing numpy takes longer than a hundred small programs, having it imported makes every fork
        # dearer; so programs that name it get a server of their own, started when the first of them comes.
        self._numeric = ServerConnection(settings, preload=("numpy",))

    @property
    def servers(self) -> tuple[ServerConnection, ServerConnection]:
        return self._plain, self._numeric

    @property
    def isolation(self) -> Isolation:
        for _ in range(_TRIES):
            with contextlib.suppress(ServerDiedError):
                return self._plain.isolation()
        raise OSError("the sandbox's server does not start; what it says of the reason is on standard error")

    def start(self) -> None:
        self._plain.start()

    def stop(self) -> None:
        for server in self.servers:
            server.stop()

    def run(self, job: Job, files: JobFiles) -> list[Execution]:
        """Ask for the inputs that have no execution yet, until all have one or two servers in a row failed."""
        server = self._numeric if "numpy" in job.program else self._plain
        progress = _Progress(job)
        failures = 0
        while not progress.is_complete:
            first = len(progress.executions)
            self._ask(server, files, progress)
            progress.add(files)
            if len(progress.executions) > first:
                failures = 0
                continue
            failures += 1
            server.kill()
            if failures == _TRIES:
                progress.give_up()
        if server.runs >= RUNS_PER_SERVER:
            server.stop()
        return progress.executions

    def _ask(self, server: ServerConnection, files: JobFiles, progress: _Progress) -> None:
        """Have the missing inputs run; when the server dies some of them still miss their records."""
        first = len(progress.executions)
        with contextlib.suppress(ServerDiedError):
            server.isolation().check(self._require)
            server.ask(files.request(first, progress.cpu_left, progress.wall_left), files.inputs, files.results)


class _Progress:
    """The executions so far, and what is left to do."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.executions: list[Execution] = []
        self._is_stopped = False

    @property
    def cpu_left(self) -> float:
        total = self._job.cpu_seconds_total
        return math.inf if total is None else total - sum(execution.cpu_seconds for execution in self.executions)

    @property
    def wall_left(self) -> float:
        total = self._job.wall_seconds_total
        return math.inf if total is None else total - sum(execution.wall_seconds for execution in self.executions)

    @property
    def is_complete(self) -> bool:
        return self._is_stopped or len(self.executions) == len(self._job.inputs)

    def add(self, files: JobFiles) -> None:
        """Take over the new records, up to the failure that was to be the last."""
        for record in files.new_records():
            if record.head.state == State.NOT_STARTED or self._is_stopped:
                continue
            item = self._job.inputs[len(self.executions)]
            self.executions.append(execution_of(record, self._job, item))
            is_failed = self.executions[-1].outcome is not Outcome.OK
            self._is_stopped = is_failed and self._job.stop_at_first_failure
        if not self._is_stopped and min(self.cpu_left, self.wall_left) <= 0:
            self._fill(out_of_time())

    def give_up(self) -> None:
        """The sandbox failed on the next input; those after it are not tried."""
        self._fill(infra_error("the worker failed twice"))

    def _fill(self, execution: Execution) -> None:
        self.executions += [execution] * (len(self._job.inputs) - len(self.executions))
