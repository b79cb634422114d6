"""Which comparisons one run of the benchmark makes, and how large they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.grader import designs
from benchmarks.grader.hosted import Design, Load

FORMS = ("stdin", "call", "assert")


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    programs: int
    """In each comparison; a third of them at more than ten tests."""
    tests: tuple[int, ...]
    ballast_bytes: int
    """Held by the calling process in the comparisons that stand for a trainer; 0 leaves them out."""
    pool_programs: int
    """Graded at once by pools of one and of two workers."""
    repeats: int
    """Of everything that is timed by the wall."""

    @property
    def main_tests(self) -> int:
        """Tests a program in comparisons that are made at one number of tests only."""
        return 10 if 10 in self.tests else self.tests[-1]


FULL = Size(programs=40, tests=(1, 10, 50), ballast_bytes=2 << 30, pool_programs=200, repeats=7)
SMOKE = Size(programs=2, tests=(2,), ballast_bytes=16 << 20, pool_programs=4, repeats=1)


@dataclass(frozen=True)
class Group:
    """Designs that run side by side, and what they are compared on."""

    designs: Sequence[Design]
    loads: tuple[tuple[str, Load], ...]
    """With titles."""
    ballast_bytes: int = 0


def groups(size: Size, peers: Sequence[Design]) -> Iterator[Group]:
    """Everything one run compares."""
    ours = designs.own_designs()
    main = [design for design in ours if design.name in (designs.BATCH, designs.SEPARATE)]
    yield Group([*ours, *designs.floor_designs(), *peers], tuple(_all_forms(size)))
    stdin, call = (Load(form, size.main_tests, size.programs) for form in ("stdin", "call"))
    yield Group([*main, *designs.numpy_designs()], (("numpy", stdin),))
    if size.ballast_bytes:
        yield Group([*main, *peers], (("stdin, large parent", stdin), ("call, large parent", call)), size.ballast_bytes)


def _all_forms(size: Size) -> Iterator[tuple[str, Load]]:
    for form in FORMS:
        for tests in size.tests:
            programs = size.programs if tests <= size.main_tests else max(1, size.programs // 3)
            yield f"{form}, {tests} tests", Load(form, tests, programs)
