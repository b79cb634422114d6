"""Grading from asyncio: a bounded number of programs in flight, and callers that may be cancelled."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

from smalt.grading.grader import Grader
from smalt.grading.verdicts import Grade
from smalt.problems.problem import Problem


class AsyncGrader:
    """Grades on a `Grader` from one event loop, which is never blocked; the grader stays the caller's.

    Backpressure: at most `in_flight` programs are being graded; further callers wait for a place, and `stream`
    takes no further item. Cancellation: a cancelled caller is free at once, while the program that it waited for
    keeps its place until it ended, within its limits, so that the bound holds.
    """

    def __init__(self, grader: Grader, in_flight: int = 4) -> None:
        """Grade `in_flight` programs at a time; a few more than the sandbox has workers keep those busy."""
        if in_flight < 1:
            raise ValueError("in_flight must be at least 1")
        self._grader = grader
        self._in_flight = in_flight
        self._places = asyncio.Semaphore(in_flight)
        self._pool = ThreadPoolExecutor(in_flight, thread_name_prefix="async-grader")

    async def grade(self, problem: Problem, program: str) -> Grade:
        """Return the verdicts on `program`; waits while too many programs are in flight."""
        return await asyncio.wrap_future(await self._start(problem, program))

    async def stream(self, pairs: Iterable[tuple[Problem, str]]) -> AsyncIterator[Grade]:
        """Yield the grades in the order of `pairs`, which is read only as places become free."""
        running: deque[Future[Grade]] = deque()
        for problem, program in pairs:
            if len(running) == self._in_flight:
                yield await asyncio.wrap_future(running.popleft())
            running.append(await self._start(problem, program))
        while running:
            yield await asyncio.wrap_future(running.popleft())

    async def _start(self, problem: Problem, program: str) -> Future[Grade]:
        await self._places.acquire()
        loop = asyncio.get_running_loop()
        try:
            future = self._pool.submit(self._grader.grade, problem, program)
        except BaseException:
            self._places.release()
            raise
        future.add_done_callback(lambda _: self._free(loop))
        return future

    def _free(self, loop: asyncio.AbstractEventLoop) -> None:
        """Free a place, from the thread that graded."""
        with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody waits
            loop.call_soon_threadsafe(self._places.release)

    async def close(self) -> None:
        """Wait for the programs in flight; later calls raise RuntimeError."""
        await asyncio.to_thread(self._pool.shutdown)

    async def __aenter__(self) -> AsyncGrader:
        """Return the grader itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        await self.close()
