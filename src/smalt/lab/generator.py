"""Lab problems: two or three ideas in a row, said in words that often leave the meaning open.

Splits are by composition: the ordered tuple of idea names decides whether a problem belongs to training,
validation or evaluation, so a held-out problem is always a combination never trained on. Tests are made by running
the intended program, which is our own trusted text; the policy's programs only ever run in the sandbox.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import CodeType
from typing import Literal

from smalt.lab.ideas import AMBIGUOUS, CLEAR, Idea, program_of, statement_of
from smalt.problems.problem import CallTest, Limits, Problem, TestCase

Split = Literal["train", "validation", "test"]

PUBLIC_TESTS = 2
HIDDEN_TESTS = 6
_CANDIDATE_INPUTS = 24
_MOST_FRUITLESS = 20_000
"""Draws in a row without a new problem after which a split counts as exhausted."""
_LONGEST_OUTPUT = 12
_LARGEST_VALUE = 99
_LIMITS = Limits(cpu_seconds=1.0, wall_seconds=5.0, memory_mb=512, output_bytes=1 << 16)


@dataclass(frozen=True)
class LabProblem:
    """A lab problem with what only its maker knows: the ideas and the meaning intended."""

    ideas: tuple[Idea, ...]
    wordings: tuple[str, ...]
    """How the statement says each idea."""
    intended: tuple[str, ...]
    problem: Problem

    @property
    def ambiguity(self) -> int:
        """Number of fair readings of the statement."""
        return len(readings(self.ideas))

    def program(self, expressions: Sequence[str]) -> str:
        """A program for this statement that reads it as `expressions`."""
        return program_of(self.wordings, expressions)


def readings(ideas: Sequence[Idea]) -> list[tuple[str, ...]]:
    """Every way to read the words: one meaning per idea."""
    return list(itertools.product(*(idea.meanings for idea in ideas)))


def split_of(ideas: Sequence[Idea]) -> Split:
    """The split a composition belongs to: about 70 % train, 10 % validation, 20 % test, by hash of its names."""
    digest = hashlib.sha256("+".join(idea.name for idea in ideas).encode()).digest()
    bucket = digest[0] % 10
    return "train" if bucket < 7 else "validation" if bucket == 7 else "test"


def run_trusted(expressions: Sequence[str], argument: list[int]) -> list[int]:
    """Apply our own expressions to a list, in this process."""
    x = list(argument)
    for expression in expressions:
        x = eval(_compiled(expression), {"x": x})
    return x


@functools.cache
def _compiled(expression: str) -> CodeType:
    """Lab expressions are few and run often."""
    return compile(expression, "<lab>", "eval")


def generate(split: Split, count: int, seed: int) -> list[LabProblem]:
    """`count` different problems of a split; the same seed gives the same problems.

    An ambiguous statement comes as twins: the same words, two meanings. A policy can therefore not learn by heart
    which meaning a statement has; only feedback tells. Raises `ValueError` when the split has fewer problems.
    """
    rng = random.Random(f"smalt-lab/{split}/{seed}")
    found: dict[tuple[str, ...], LabProblem] = {}
    fruitless = 0
    while len(found) < count and fruitless < _MOST_FRUITLESS:
        known = len(found)
        ideas = _draw_ideas(rng)
        if split_of(ideas) == split:
            wordings = tuple(rng.choice(idea.wordings) for idea in ideas)
            for made in _twins(ideas, wordings, rng):
                name = f"lab/{split}/{seed}/{len(found)}"
                named = replace(made, problem=made.problem.model_copy(update={"id": name}))
                found.setdefault((*wordings, *made.intended), named)
        fruitless = 0 if len(found) > known else fruitless + 1
    if len(found) < count:
        raise ValueError(f"the lab has about {len(found)} {split} problems, {count} were asked for: lower the limit")
    return list(found.values())[:count]


def _draw_ideas(rng: random.Random) -> tuple[Idea, ...]:
    """Two or three different ideas, at most one of them open."""
    length = rng.choice((2, 3))
    open_phrases = rng.choice((0, 1, 1))
    chosen = rng.sample(AMBIGUOUS, open_phrases) + rng.sample(CLEAR, length - open_phrases)
    rng.shuffle(chosen)
    return tuple(chosen)


def _twins(ideas: tuple[Idea, ...], wordings: tuple[str, ...], rng: random.Random) -> list[LabProblem]:
    """A clear problem, two problems of one ambiguous statement, or none where the words say nothing.

    The public tests of each twin refute the other's meaning, so that the feedback to a program that reads the
    statement in the other way is never empty.
    """
    fair = readings(ideas)
    intended = rng.sample(fair, min(2, len(fair)))
    made = [_make_problem(ideas, wordings, meaning, rng) for meaning in intended]
    problems = [problem for problem in made if problem is not None]
    if len(problems) < len(intended):
        return []
    told = all(_refutes(one, other.intended) for one, other in itertools.permutations(problems, 2))
    return problems if told else []


def _refutes(made: LabProblem, program: tuple[str, ...]) -> bool:
    """Whether a public test tells `program` from the intended one."""
    return any(run_trusted(program, test.args[0]) != test.expected for test in _call_tests(made.problem.public_tests))


def _call_tests(tests: Sequence[TestCase]) -> list[CallTest]:
    """The tests of a lab problem, which are all calls."""
    return [test for test in tests if isinstance(test, CallTest)]


def _make_problem(
    ideas: tuple[Idea, ...], wordings: tuple[str, ...], intended: tuple[str, ...], rng: random.Random
) -> LabProblem | None:
    """A problem with tests that tell its readings apart, or None when the composition says nothing."""
    candidates = [_draw_list(rng) for _ in range(_CANDIDATE_INPUTS)]
    answers = [run_trusted(intended, candidate) for candidate in candidates]
    if not _is_telling(candidates, answers):
        return None
    pairs = list(zip(candidates, answers, strict=True))
    public = _most_telling(pairs, rivals(ideas, intended))
    hidden = [pair for pair in pairs if pair not in public][:HIDDEN_TESTS]
    problem = Problem(
        id="unnamed",
        statement=statement_of(wordings),
        entry_point="f",
        public_tests=tuple(CallTest(args=(given,), expected=answer) for given, answer in public),
        hidden_tests=tuple(CallTest(args=(given,), expected=answer) for given, answer in hidden),
        solutions=(program_of(wordings, intended),),
        limits=_LIMITS,
        metadata={"ideas": [idea.name for idea in ideas], "readings": len(readings(ideas))},
    )
    return LabProblem(ideas, wordings, intended, problem)


def _draw_list(rng: random.Random) -> list[int]:
    """Mostly four to seven digits; now and then the empty list, the case that statements forget."""
    length = 0 if rng.random() < 0.06 else rng.randint(4, 7)
    return [rng.randint(0, 9) for _ in range(length)]


def _is_telling(inputs: list[list[int]], answers: list[list[int]]) -> bool:
    """Whether outputs are short lists of small numbers, mostly not empty and mostly not the input itself."""
    fits = all(len(a) <= _LONGEST_OUTPUT and all(abs(v) <= _LARGEST_VALUE for v in a) for a in answers)
    said = sum(bool(answer) and answer != given for given, answer in zip(inputs, answers, strict=True))
    return fits and said >= len(answers) * 0.6


def rivals(ideas: Sequence[Idea], intended: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The other readings, and the intended one with a single slip."""
    others = [reading for reading in readings(ideas) if reading != intended]
    for place, idea in enumerate(ideas):
        others += [(*intended[:place], slip, *intended[place + 1 :]) for slip in idea.slips]
    return others


def _most_telling(
    pairs: list[tuple[list[int], list[int]]], others: list[tuple[str, ...]]
) -> list[tuple[list[int], list[int]]]:
    """The public tests: greedily those that refute the most rivals not yet refuted."""
    chosen: list[tuple[list[int], list[int]]] = []
    left = others
    for _ in range(PUBLIC_TESTS):
        rest = [pair for pair in pairs if pair not in chosen]
        best = max(rest, key=lambda pair: sum(run_trusted(other, pair[0]) != pair[1] for other in left))
        chosen.append(best)
        left = [other for other in left if run_trusted(other, best[0]) == best[1]]
    return chosen
