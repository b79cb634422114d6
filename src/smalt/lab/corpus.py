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
from smalt.lab.ideas import IDEAS, comment_of, lettered, lines_of
from smalt.problems.problem import CallTest

MOST_TURNS = 10
_OLD, _NEW = "Not\n", "but\n"
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
    slips: float = 0.16
    """Chance, per clear phrase, that a first or guessed program has a slip in it."""


STUCK = Author(repeats=0.92, solves=0.04)
WANDERING = Author(repeats=0.15, solves=0.15)
READING = Author(repeats=0.05, solves=0.9)
_MOST_GUESSES = 8
_LINES = tuple(dict.fromkeys(line for idea in IDEAS for line in (*idea.meanings, *idea.slips)))
_AUTHORS = (STUCK, WANDERING, READING)


@dataclass(frozen=True)
class Period:
    """A time of the model's upbringing."""

    shares: tuple[float, float, float]
    """Of stuck, wandering and reading authors."""
    turns: tuple[int, ...]
    """Lengths of dialogues, drawn evenly."""
    failing_starts: float = 0.0
    """Share of dialogues whose first program is made to fail, where one can; the others start as they happen to."""
    strays: float = 0.0
    """Chance, per phrase of a first program, of a line that belongs to another idea. Nothing in the words leads to
    such a line: only by copying can a model repeat it, and only by comparing lines with words can it blame it."""


SCHOOL = Period(shares=(0.05, 0.05, 0.9), turns=(2, 3), failing_starts=0.8, strays=0.15)
HABIT = Period(shares=(0.75, 0.1, 0.15), turns=(2, 3, 4, 6, MOST_TURNS))


def reply_of(program: str, remark: str = "") -> str:
    """A reply that holds `program`, behind a remark if there is one."""
    return f"{remark}```python\n{program}```"


def diagnosis(wordings: Sequence[str], program: Sequence[str], better: Sequence[str]) -> str:
    """The steps in which `better` differs from `program`, as a patch: for each the old lines, then the new ones.

    The lines stand as they do in programs. A tiny model copies what last followed the same words, so a patch that it
    wrote ends up in its next program; from a bare "Wrong: B." it repaired one program in four.
    """
    pairs = zip(lettered(wordings), program, better, strict=True)
    changes = [(step, old, new) for step, old, new in pairs if old != new]
    return "".join(f"{_OLD}{lines_of(step, old)}{_NEW}{lines_of(step, new)}" for step, old, new in changes)


def remark_opening(wordings: Sequence[str], step: int) -> str:
    """The beginning of a diagnosis that names the step at place `step`."""
    return f"{_OLD}{comment_of(lettered(wordings)[step])}"


def write_dialogue(made: LabProblem, period: Period, rng: random.Random) -> list[str]:
    """Messages of one dialogue, user and author in turn, ending with a program."""
    author = rng.choices(_AUTHORS, period.shares)[0]
    turns = rng.choice(period.turns)
    messages = [task_message(made.problem, LAB_WORDING)]
    program, remark = _first(made, author, period, rng), ""
    for turn in range(turns):
        messages.append(reply_of(made.program(program), remark))
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


def _first(made: LabProblem, author: Author, period: Period, rng: random.Random) -> tuple[str, ...]:
    """The first program. Lessons on feedback need failures, and half of all guesses are right."""
    must_fail = rng.random() < period.failing_starts
    for _ in range(_MOST_GUESSES):
        guess = _guess(made, author, rng)
        program = tuple(rng.choice(_LINES) if rng.random() < period.strays else line for line in guess)
        if not must_fail or not all(result.passed for result in public_results(made, program)):
            break
    return program


def _next(
    made: LabProblem, author: Author, last: tuple[str, ...], has_passed: bool, rng: random.Random
) -> tuple[tuple[str, ...], str]:
    """The program after `last` and its feedback, and the remark before it. What passes is left as it is."""
    draw = rng.random()
    if has_passed or draw < author.repeats:
        return last, ""
    if draw < author.repeats + author.solves:
        return made.intended, diagnosis(made.wordings, last, made.intended)
    return _guess(made, author, rng), ""


def _guess(made: LabProblem, author: Author, rng: random.Random) -> tuple[str, ...]:
    """A fair reading of the statement, with a slip now and then."""
    reading = rng.choice(readings(made.ideas))
    return tuple(
        rng.choice(idea.slips) if idea.slips and rng.random() < author.slips else meaning
        for idea, meaning in zip(made.ideas, reading, strict=True)
    )
