"""Measure designs side by side: each program goes to every design before the next one does.

A machine's speed drifts by more than the differences that matter; side by side, all designs meet the same drift, and
ratios of the same program are free of it. A program's cost runs from its question to the design's next question, so
that what is cleaned up after the answer counts too.
"""

from __future__ import annotations

import contextlib
import itertools
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from benchmarks.grader.hosted import Design, Host, Load

_SETTLE_SECONDS = 0.1
# A clock of ticks can stand still through a whole comparison.
_LEAST_SECONDS = 1e-6


class MemoryShortError(RuntimeError):
    """The hosts' ballast does not fit into the machine's memory."""


@dataclass(frozen=True)
class Measurement:
    """One design's costs in one comparison."""

    design: str
    cpu_seconds: tuple[float, ...]
    """Of each program, in the order of the workload."""
    passed: int
    """Programs it called right. All are: the rest are its errors, and it may have been quick about them."""

    @property
    def typical_seconds(self) -> float:
        """Median CPU time of a program; the mean where the clock is too coarse to see each."""
        if min(self.cpu_seconds) > 0:
            return statistics.median(self.cpu_seconds)
        return max(statistics.mean(self.cpu_seconds), _LEAST_SECONDS)


@dataclass(frozen=True)
class Comparison:
    """All designs on the same programs."""

    title: str
    load: Load
    ballast_bytes: int
    """Memory that the grading process held."""
    measurements: tuple[Measurement, ...]
    clock_source: str

    def of(self, design: str) -> Measurement | None:
        """The measurement of `design`, if it took part."""
        return next((found for found in self.measurements if found.design == design), None)

    def ratio(self, design: str, base: str) -> float | None:
        """How many times the CPU time of `base` the design takes: median over programs of each one's ratio."""
        above, below = self.of(design), self.of(base)
        if above is None or below is None:
            return None
        if min(below.cpu_seconds) <= 0:
            return above.typical_seconds / below.typical_seconds
        return statistics.median(a / b for a, b in zip(above.cpu_seconds, below.cpu_seconds, strict=True))


@contextlib.contextmanager
def running(designs: Sequence[Design], ballast_bytes: int = 0) -> Iterator[list[Host]]:
    """Run a host for each design, each holding so much memory; raises HostError, MemoryShortError."""
    _require_memory(ballast_bytes * len(designs))
    with contextlib.ExitStack() as stack:
        hosts = []
        for design in designs:
            hosts.append(Host(design, ballast_bytes))
            stack.callback(hosts[-1].close)
        for host in hosts:
            host.wait()
        yield hosts


def compare(title: str, load: Load, hosts: Sequence[Host], ballast_bytes: int = 0) -> Comparison:
    """Measure the hosts whose designs know the load's form; raises HostError."""
    hosts = [host for host in hosts if load.form in host.design.forms]
    _warm_up(hosts, load)
    passed = [0] * len(hosts)
    readings: list[list[float]] = [[] for _ in hosts]
    for program in range(load.programs):
        for number in _shuffled(len(hosts), program):
            readings[number].append(hosts[number].cpu_seconds())
            passed[number] += hosts[number].check(program)
    time.sleep(_SETTLE_SECONDS)
    measurements = []
    for host, values, right in zip(hosts, readings, passed, strict=True):
        values.append(host.cpu_seconds())
        costs = tuple(end - begin for begin, end in itertools.pairwise(values))
        measurements.append(Measurement(host.design.name, costs, right))
    return Comparison(title, load, ballast_bytes, tuple(measurements), hosts[0].clock_source)


def _warm_up(hosts: Sequence[Host], load: Load) -> None:
    """Let servers start and caches fill."""
    for host in hosts:
        host.prepare(load)
        host.check(0)
    time.sleep(_SETTLE_SECONDS)


def _shuffled(count: int, seed: int) -> list[int]:
    """An order of the hosts; nobody always runs after the same neighbour."""
    order = list(range(count))
    Random(seed).shuffle(order)
    return order


def _require_memory(wanted: int) -> None:
    lines = Path("/proc/meminfo").read_text().splitlines()
    free = next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable"))
    if wanted * 1.2 > free:
        raise MemoryShortError(
            f"the ballast of all hosts takes {wanted / 2**30:.1f} GiB and {free / 2**30:.1f} GiB are free: "
            "give a smaller --ballast-gib, fewer peers, or 0 to leave these comparisons out"
        )
