"""The goals that were set for the grader's speed, and whether a run reached them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.grader import designs
from benchmarks.grader.interleaved import Comparison
from benchmarks.grader.results import Results

_TESTS = 10
"""Tests a program for which goals were set."""


@dataclass(frozen=True)
class Goal:
    """One goal and what was measured."""

    text: str
    bound: float
    unit: str
    value: float | None
    """None: not measured."""
    is_upper_bound: bool = False

    @property
    def verdict(self) -> str:
        """One word or two for the page."""
        if self.value is None:
            return "not measured"
        is_reached = self.value <= self.bound if self.is_upper_bound else self.value >= self.bound
        return "reached" if is_reached else "**missed**"


def goals(results: Results) -> list[Goal]:
    """Every goal, in the order they were set."""
    return [*_rates(results), *_against_others(results), *_overhead(results), *_pool(results)]


def _rates(results: Results) -> Iterator[Goal]:
    comparison = results.find("stdin", _TESTS)
    for design, bound in ((designs.BATCH, 2500), (designs.SEPARATE, 550)):
        yield Goal(f"{design}, stdin", bound, "tests/s/core", _tests_a_second(comparison, design))
    asserts = results.find("assert", _TESTS)
    found = asserts.of(designs.BATCH) if asserts else None
    milliseconds = found.typical_seconds * 1e3 if found else None
    yield Goal("assert style", 7, "ms/program", milliseconds, is_upper_bound=True)


def _tests_a_second(comparison: Comparison | None, design: str) -> float | None:
    found = comparison.of(design) if comparison else None
    return comparison.load.tests / found.typical_seconds if comparison and found else None


def _against_others(results: Results) -> Iterator[Goal]:
    wanted = (
        (designs.SUBPROCESS, "stdin", False, 25.0),
        (designs.SUBPROCESS, "call", False, 25.0),
        (designs.SUBPROCESS_QUICK, "stdin", False, 25.0),
        (designs.LIVECODEBENCH, "stdin", False, 8.0),
        (designs.PRIME_CODE, "stdin", False, 8.0),
        (designs.LIVECODEBENCH, "call", False, 5.0),
        (designs.PRIME_CODE, "call", False, 5.0),
        (designs.EVALPLUS, "call", False, 1.5),
        (designs.LIVECODEBENCH, "stdin", True, 30.0),
        (designs.PRIME_CODE, "stdin", True, 30.0),
        (designs.EVALPLUS, "call", True, 15.0),
    )
    for design, form, has_ballast, bound in wanted:
        comparison = results.find(form, _TESTS, has_ballast)
        ratio = comparison.ratio(design, designs.BATCH) if comparison else None
        parent = ", from a large parent" if has_ballast else ""
        yield Goal(f"CPU time of {design} over ours, {form}{parent}", bound, "times", ratio)


def _overhead(results: Results) -> Iterator[Goal]:
    pairs = ((designs.BATCH, designs.BARE_BATCH), (designs.SEPARATE, designs.BARE_SEPARATE))
    for form in ("stdin", "call"):
        comparison = results.find(form, _TESTS)
        for design, bare in pairs:
            ratio = comparison.ratio(design, bare) if comparison else None
            value = None if ratio is None else 100 * (ratio - 1)
            yield Goal(f"cost of isolation: {design}, {form}", 10, "%", value, is_upper_bound=True)


def _pool(results: Results) -> Iterator[Goal]:
    pool = results.pool
    yield Goal("2 workers over 1, wall time", 1.8, "times", pool.scaling)
    for workers, seconds in pool.start_seconds.items():
        yield Goal(f"start of a pool of {workers}", 0.5, "s", seconds, is_upper_bound=True)
    for throughput in pool.throughput:
        text = f"the caller's part of a core, a worker, pool of {throughput.workers}"
        yield Goal(text, 15, "%", 100 * throughput.caller_share, is_upper_bound=True)
