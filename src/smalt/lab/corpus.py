"""What the lab's base model is brought up on: dialogues, first of able authors, then of ordinary ones.

Each dialogue has one author. A *stuck* author repeats the last program almost always, a *wandering* one guesses
another reading, a *reading* one mostly says which step is wrong and writes the right program. At school most
authors read, so the model learns what feedback means; afterwards most are stuck, and that becomes its habit. The
result behaves like the base models of the papers: it improves for a turn or two, then mostly repeats itself,
although it has the ability that reinforcement learning is to bring out.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from smalt.dialogue.feedback import feedback_message
from smalt.dialogue.wording import Wording, task_message
from smalt.grading.verdicts import PublicResult, Status
from smalt.lab.generator import LabProblem, readings, run_trusted
from smalt.lab.ideas import STEPS, program_of
from smalt.problems.problem import CallTest

MOST_TURNS = 8
LAB_WORDING = Wording(
    system="",
    task="{statement}",
    fix="{feedback}",
    reconsider="All tests pass. Check it again.",
    no_code="No program found.",
)


@dataclass(frozen=True)
class Author:
    """How a dialogue's author writes. Probabilities of each next program after a failure; the rest is a guess."""

    repeats: float
    solves: float
    slips: float = 0.22
    """Chance, per clear phrase, that a first or guessed program has a slip in it."""
    spoils: float = 0.08
    """Chance that a program that passes its public tests is changed all the same."""


STUCK = Author(repeats=0.92, solves=0.04)
WANDERING = Author(repeats=0.15, solves=0.15)
READING = Author(repeats=0.05, solves=0.9)
_AUTHORS = (STUCK, WANDERING, READING)


@dataclass(frozen=True)
class Period:
    """A time of the model's upbringing."""

    shares: tuple[float, float, float]
    """Of stuck, wandering and reading authors."""
    turns: tuple[int, ...]
    """Lengths of dialogues, drawn evenly."""


SCHOOL = Period(shares=(0.05, 0.05, 0.9), turns=(2, 2, 3))
HABIT = Period(shares=(0.6, 0.15, 0.25), turns=(2, 3, 4, 6, MOST_TURNS))


def reply_of(program: str, remark: str = "") -> str:
    """A reply that holds `program`, behind a remark if there is one."""
    return f"{remark}\n```python\n{program}```" if remark else f"```python\n{program}```"


def diagnosis(program: tuple[str, ...], intended: tuple[str, ...]) -> str:
    """Which steps of `program` are not as intended, in words."""
    pairs = zip(STEPS, program, intended, strict=False)
    wrong = [step for step, written, meant in pairs if written != meant]
    return f"Wrong: {' and '.join(wrong)}." if wrong else ""


def write_dialogue(made: LabProblem, period: Period, rng: random.Random) -> list[str]:
    """Messages of one dialogue, user and author in turn, ending with a program."""
    author = rng.choices(_AUTHORS, period.shares)[0]
    turns = rng.choice(period.turns)
    messages = [task_message(made.problem, LAB_WORDING)]
    program, remark = _guess(made, author, rng), ""
    for turn in range(turns):
        messages.append(reply_of(program_of(program), remark))
        if turn + 1 < turns:
            results = public_results(made, program)
            messages.append(feedback_message(results, LAB_WORDING, entry_point=made.problem.entry_point))
            program, remark = _next(made, author, program, all(r.passed for r in results), rng)
    return messages


def public_results(made: LabProblem, program: tuple[str, ...]) -> list[PublicResult]:
    """Verdicts of our own program on the public tests, without a sandbox."""
    results = []
    for test in made.problem.public_tests:
        assert isinstance(test, CallTest)
        output = run_trusted(program, test.args[0])
        status = Status.PASSED if output == test.expected else Status.WRONG_ANSWER
        results.append(PublicResult(test, status, repr(output)))
    return results


def dialogues(problems: Sequence[LabProblem], period: Period, seed: int) -> Iterator[list[str]]:
    """Endless dialogues over `problems`, in random order."""
    rng = random.Random(f"smalt-lab-corpus/{seed}")
    while True:
        yield write_dialogue(rng.choice(problems), period, rng)


def _next(
    made: LabProblem, author: Author, last: tuple[str, ...], has_passed: bool, rng: random.Random
) -> tuple[tuple[str, ...], str]:
    """The program after `last` and its feedback, and the remark before it."""
    if has_passed:
        return (_guess(made, author, rng) if rng.random() < author.spoils else last), ""
    draw = rng.random()
    if draw < author.repeats:
        return last, ""
    if draw < author.repeats + author.solves:
        return made.intended, diagnosis(last, made.intended)
    return _guess(made, author, rng), ""


def _guess(made: LabProblem, author: Author, rng: random.Random) -> tuple[str, ...]:
    """A fair reading of the statement, with a slip now and then."""
    reading = rng.choice(readings(made.ideas))
    return tuple(
        rng.choice(idea.slips) if idea.slips and rng.random() < author.slips else meaning
        for idea, meaning in zip(made.ideas, reading, strict=True)
    )
