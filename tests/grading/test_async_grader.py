import asyncio
import threading
import time
from collections.abc import Iterator

import pytest

from smalt.grading.async_grader import AsyncGrader
from smalt.grading.grader import Grader
from smalt.problems.problem import Problem
from tests.grading.scripted_sandbox import RIGHT, ScriptedSandbox, numbered_problem


class Gate:
    """A sandbox whose jobs wait until they are let through; counts those that are inside."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.inside = self.most_inside = 0
        self._lock = threading.Lock()
        self.sandbox = ScriptedSandbox(self._answer)

    def _answer(self, job: object, number: int) -> object:
        with self._lock:
            self.inside += 1
            self.most_inside = max(self.most_inside, self.inside)
        assert self.open.wait(20)
        with self._lock:
            self.inside -= 1
        return RIGHT


PROBLEM = numbered_problem(1)


async def until(condition: object) -> None:
    begin = time.monotonic()
    while not condition():
        assert time.monotonic() - begin < 20
        await asyncio.sleep(0.005)


def test_grades_come_back_and_the_loop_is_not_blocked() -> None:
    gate = Gate()

    async def main() -> bool:
        async with AsyncGrader(Grader(gate.sandbox), in_flight=2) as grader:
            waiting = asyncio.create_task(grader.grade(PROBLEM, "a"))
            await until(lambda: gate.inside == 1)
            gate.open.set()
            return (await waiting).passes_all

    assert asyncio.run(main())


def test_no_more_than_the_bound_are_in_flight() -> None:
    gate = Gate()

    async def main() -> None:
        async with AsyncGrader(Grader(gate.sandbox), in_flight=3) as grader:
            tasks = [asyncio.create_task(grader.grade(PROBLEM, str(number))) for number in range(12)]
            await until(lambda: gate.inside == 3)
            await asyncio.sleep(0.05)
            gate.open.set()
            assert all(grade.passes_all for grade in await asyncio.gather(*tasks))

    asyncio.run(main())
    assert gate.most_inside == 3


def test_a_cancelled_caller_is_free_and_its_place_is_not() -> None:
    gate = Gate()

    async def main() -> None:
        async with AsyncGrader(Grader(gate.sandbox), in_flight=1) as grader:
            first = asyncio.create_task(grader.grade(PROBLEM, "first"))
            second = asyncio.create_task(grader.grade(PROBLEM, "second"))
            third = asyncio.create_task(grader.grade(PROBLEM, "third"))
            await until(lambda: gate.inside == 1)
            for task in (first, second):
                task.cancel()
            for task in (first, second):
                with pytest.raises(asyncio.CancelledError):
                    await task
            await asyncio.sleep(0.05)
            assert gate.inside == 1 and not third.done()
            gate.open.set()
            assert (await third).passes_all

    asyncio.run(main())
    assert gate.most_inside == 1
    assert [job.program for job in gate.sandbox.jobs] == ["first", "third"]


def test_a_stream_reads_no_further_than_it_has_places() -> None:
    gate = Gate()
    read: list[str] = []

    def pairs() -> Iterator[tuple[Problem, str]]:
        for number in range(10):
            read.append(str(number))
            yield PROBLEM, str(number)

    async def main() -> int:
        async with AsyncGrader(Grader(gate.sandbox), in_flight=2) as grader:
            grades = grader.stream(pairs())
            first = asyncio.ensure_future(anext(grades))
            await until(lambda: gate.inside == 2)
            await asyncio.sleep(0.05)
            assert len(read) == 3
            gate.open.set()
            await first
            return 1 + len([grade async for grade in grades])

    assert asyncio.run(main()) == 10
    assert gate.most_inside == 2
    assert [job.program for job in sorted(gate.sandbox.jobs, key=lambda job: int(job.program))] == read


def test_a_stream_keeps_the_order() -> None:
    def answer(job: object, number: int) -> object:
        time.sleep(0.02 if job.program in ("0", "3") else 0)
        return RIGHT.__class__(RIGHT.outcome, stdout=job.program)

    async def main() -> list[str]:
        problem = numbered_problem(1, public=1)
        async with AsyncGrader(Grader(ScriptedSandbox(answer)), in_flight=3) as grader:
            return [grade.public[0].output async for grade in grader.stream((problem, str(n)) for n in range(8))]

    assert asyncio.run(main()) == [str(number) for number in range(8)]


def test_an_error_reaches_its_caller_and_frees_the_place() -> None:
    sandbox = ScriptedSandbox(lambda job, number: 1 / 0)

    async def main() -> None:
        async with AsyncGrader(Grader(sandbox), in_flight=1) as grader:
            for _ in range(3):
                with pytest.raises(ZeroDivisionError):
                    await grader.grade(PROBLEM, "a")
        with pytest.raises(RuntimeError):
            await grader.grade(PROBLEM, "a")

    asyncio.run(main())


def test_a_bound_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="in_flight"):
        AsyncGrader(Grader(ScriptedSandbox(lambda job, number: RIGHT)), in_flight=0)
