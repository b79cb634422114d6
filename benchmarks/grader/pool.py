"""What a pool of workers costs: its start, its memory, its wall time with two workers, the caller's own share."""

from __future__ import annotations

import contextlib
import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.grader import ours, workload
from benchmarks.grader.cpu_clock import descendants
from smalt.grading.grader import Grader
from smalt.problems.problem import Limits, Problem
from smalt.sandbox.execution import Job, StdinInput
from smalt.sandbox.forkserver import ForkServerSandbox

_MIB = 1 << 20


@dataclass(frozen=True)
class Throughput:
    """A pool of so many workers, kept busy."""

    workers: int
    wall_seconds: float
    """Median over repeats."""
    programs: int
    tests: int
    caller_share: float
    """CPU time of the calling process over wall time and workers: the part of a core that a worker costs it."""


@dataclass(frozen=True)
class Memory:
    """Memory of one worker, all its processes together, in MiB."""

    resident: float
    proportional: float
    """Shared pages count for their share only; zero where the kernel does not say."""


@dataclass(frozen=True)
class PoolCosts:
    """All of it."""

    start_seconds: dict[int, float]
    """By workers: from nothing until each has graded a program, median."""
    memory: dict[str, Memory]
    """By moment."""
    throughput: tuple[Throughput, ...]

    @property
    def scaling(self) -> float:
        """How many times faster the largest pool is than the smallest."""
        return self.throughput[0].wall_seconds / self.throughput[-1].wall_seconds


def measure(programs: int, tests: int, repeats: int) -> PoolCosts:
    """Measure pools of one and two workers."""
    return PoolCosts(
        start_seconds={workers: _median_start(workers, repeats) for workers in (1, 2)},
        memory=_memory(programs, tests),
        throughput=_throughput((1, 2), programs, tests, repeats),
    )


def _median_start(workers: int, repeats: int) -> float:
    return statistics.median(_start(workers) for _ in range(repeats))


def _start(workers: int) -> float:
    """Seconds until every worker of a new pool has run a program."""
    job = Job("print(1)", (StdinInput(""),), Limits())
    begin = time.perf_counter()
    with ours.sandbox_of({}, workers) as sandbox, ThreadPoolExecutor(workers) as callers:
        # All at once: a sandbox hands out every worker before it makes anyone wait.
        ran = [caller.result() for caller in [callers.submit(sandbox.run, job) for _ in range(workers)]]
        seconds = time.perf_counter() - begin
    if any(executions[0].stdout.strip() != "1" for executions in ran):
        raise RuntimeError(f"a new pool ran print(1) and returned {ran}")
    return seconds


def _memory(programs: int, tests: int) -> dict[str, Memory]:
    """Memory of the one worker of a pool: new, after work, and after programs that use numpy."""
    found = {}
    before = set(descendants(os.getpid()))
    with ours.sandbox_of({}) as sandbox:
        job = Job("print(1)", (StdinInput(""),), Limits())
        sandbox.run(job)
        found["after one program"] = _memory_of(before)
        _grade(sandbox, _pairs(programs, tests))
        found[f"after {programs} programs"] = _memory_of(before)
        sandbox.run(Job("import numpy\nprint(1)", job.inputs, Limits()))
        found["with the server for numpy programs"] = _memory_of(before)
    return found


def _memory_of(others: set[int]) -> Memory:
    resident = proportional = 0.0
    for pid in set(descendants(os.getpid())) - others:
        with contextlib.suppress(OSError):
            resident += _sum_of(f"/proc/{pid}/status", "VmRSS:")
            proportional += _sum_of(f"/proc/{pid}/smaps_rollup", "Pss:")
    return Memory(resident / _MIB, proportional / _MIB)


def _sum_of(path: str, field: str) -> int:
    """Bytes in the lines of a /proc file that start with `field`."""
    lines = Path(path).read_text().splitlines()
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(field))


def _throughput(pools: tuple[int, ...], programs: int, tests: int, repeats: int) -> tuple[Throughput, ...]:
    """Grade the same programs on pools of different size, by turns."""
    pairs = _pairs(programs, tests)
    walls: dict[int, list[float]] = {workers: [] for workers in pools}
    shares: dict[int, list[float]] = {workers: [] for workers in pools}
    with contextlib.ExitStack() as stack:
        sandboxes = {workers: stack.enter_context(ours.sandbox_of({}, workers)) for workers in pools}
        for sandbox in sandboxes.values():
            _grade(sandbox, pairs)
        for _ in range(repeats):
            for workers, sandbox in sandboxes.items():
                wall, own = _grade(sandbox, pairs, workers)
                walls[workers].append(wall)
                shares[workers].append(own / wall / workers)
    return tuple(
        Throughput(workers, statistics.median(walls[workers]), programs, tests, statistics.median(shares[workers]))
        for workers in pools
    )


def _pairs(programs: int, tests: int) -> list[tuple[Problem, str]]:
    return [(ours.problem_of(task, "stdin"), task.script) for task in workload.tasks(programs, tests)]


def _grade(sandbox: ForkServerSandbox, pairs: list[tuple[Problem, str]], workers: int = 2) -> tuple[float, float]:
    """Grade all; returns wall seconds and CPU seconds of this process. Raises RuntimeError on a wrong verdict."""
    grader = Grader(sandbox, workers=workers, cache_size=0)
    wall, own = time.perf_counter(), time.process_time()
    grades = grader.grade_many(pairs)
    spent = time.perf_counter() - wall, time.process_time() - own
    if not all(grade.passes_all for grade in grades):
        raise RuntimeError("the grader rejects programs of the workload, which are all right")
    return spent
