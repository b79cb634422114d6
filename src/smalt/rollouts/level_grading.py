"""Grading the programs of one level, if the grader can while others of it are still being written.

Verdicts do not depend on when a program is graded, so neither does anything that is learnt from them: the gain is
time only. What grading costs on top of sampling is therefore what is waited for once the last program is written.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from smalt.grading.grader import Submit
from smalt.grading.verdicts import Grade
from smalt.problems.problem import Problem
from smalt.rollouts.tree import Node


class Grader(Protocol):
    """Gives verdicts on programs; see `smalt.grading.grader`."""

    def grade_many(self, pairs: Sequence[tuple[Problem, str]]) -> list[Grade]:
        """Grade `(problem, program)` pairs, in order."""
        ...


@runtime_checkable
class StreamingGrader(Protocol):
    """A grader that takes programs one by one. Nobody has to be one."""

    def stream(self) -> AbstractContextManager[Submit]:
        """Within the block programs can be handed in, which never waits; equal ones for a problem run once."""
        ...


@dataclass
class GradingTime:
    """Wall time of grading so far; whoever reports it may set it back."""

    waited: float = 0.0
    """Seconds after a level's last program was written until its last verdict was there."""
    overlapped: float = 0.0
    """Seconds in which programs were graded while others of their level were written: time of sampling too."""


@dataclass
class LevelGrading:
    """The grading of one level."""

    grader: Grader
    time: GradingTime
    submit: Submit | None
    """Takes programs before the level is complete; None where they are graded together at its end."""
    _begun: dict[Node, Future[Grade]] = field(default_factory=dict)
    _spans: dict[Future[Grade], list[float]] = field(default_factory=dict)
    """When each program was handed in and, once it is graded, when that was."""

    def begin(self, node: Node) -> None:
        """Have a node's program graded at once, if that can be."""
        if self.submit is None or node.program is None:
            return
        begun = time.perf_counter()
        future = self._begun[node] = self.submit(node.problem, node.program)
        if future not in self._spans:
            span = self._spans[future] = [begun]
            future.add_done_callback(lambda _: span.append(time.perf_counter()))

    def finish(self, nodes: Sequence[Node]) -> None:
        """Wait for the verdicts on all of the level's nodes, and write them into the nodes; all were begun."""
        written = time.perf_counter()
        self.time.overlapped += covered((span[0], min([*span[1:], written])) for span in self._spans.values())
        if self.submit is None:
            graded = [(node, node.program) for node in nodes if node.program is not None]
            grades = self.grader.grade_many([(node.problem, program) for node, program in graded])
            for (node, _), grade in zip(graded, grades, strict=True):
                node.grade = grade
        for node, future in self._begun.items():
            node.grade = future.result()
        self.time.waited += time.perf_counter() - written


@contextmanager
def level_grading(grader: Grader, spent: GradingTime, begins_early: bool) -> Iterator[LevelGrading]:
    """Grading of a level that begins with its first program, if that is wanted and the grader can."""
    if not begins_early or not isinstance(grader, StreamingGrader):
        yield LevelGrading(grader, spent, None)
        return
    with grader.stream() as submit:
        yield LevelGrading(grader, spent, submit)


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """Length of what spans `(start, end)` cover together."""
    total, reached = 0.0, -math.inf
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total
