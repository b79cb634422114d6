"""What is compared: a program with the verdict it is known to have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from smalt.problems.problem import CompareRule, Limits, Problem, TestCase

Kind = Literal["reference", "buggy", "generated", "control"]
"""Where a program is from: a solution, one with a known bug, a model, or ours that cannot be right."""


@dataclass(frozen=True)
class Case:
    """A program, the problem it answers, and its known verdict."""

    program_id: str
    kind: Kind
    problem: Problem
    program: str
    passes: bool
    """The known verdict: whether the program passes all tests."""
    recorded_as: str = ""
    """The verdict in its source's own word, where that says more."""


def problem_of_tests(
    id: str,
    tests: Iterable[TestCase],
    entry_point: str | None = None,
    preamble: str = "",
    limits: Limits | None = None,
    compare: CompareRule | None = None,
) -> Problem:
    """A problem that is nothing but its tests."""
    return Problem(
        id=id,
        statement="A program with a known verdict.",
        public_tests=tuple(tests),
        entry_point=entry_point,
        preamble=preamble,
        limits=limits,
        compare=compare,
    )


def references(problems: Iterable[Problem]) -> Iterable[Case]:
    """Every reference solution; it passes."""
    for problem in problems:
        for index, program in enumerate(problem.solutions):
            suffix = f"#{index}" if index else ""
            yield Case(f"{problem.id}{suffix}", "reference", problem, program, passes=True)


def empty_answers(problems: Iterable[Problem]) -> Iterable[Case]:
    """For each function task a function that returns None; it fails."""
    for problem in problems:
        if problem.entry_point is None:
            continue
        function = f"def {problem.entry_point}(*arguments, **named):\n    return None\n"
        yield Case(f"{problem.id} returns None", "control", problem, function, passes=False)
