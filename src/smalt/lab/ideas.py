"""The ideas that lab problems are composed of: a phrase in words, and the lines of Python it may mean.

Every idea maps a list of small integers to another. A *clear* idea has one meaning and a few *slips*: wrong lines
that a weak model writes for it. An *ambiguous* idea has several meanings, all fair readings of its words; which
one a problem intends is drawn at random and can only be learnt from its tests. To add an idea, add a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Idea:
    """One step of a problem: how it is said, what it may mean, and how it is commonly got wrong."""

    name: str
    wordings: tuple[str, ...]
    meanings: tuple[str, ...]
    """Python expressions over the list `x`; a problem intends exactly one of them."""
    slips: tuple[str, ...] = ()
    """Wrong expressions, for clear ideas."""

    @property
    def is_ambiguous(self) -> bool:
        """Whether the words leave the meaning open."""
        return len(self.meanings) > 1


AMBIGUOUS: tuple[Idea, ...] = (
    Idea("drop_end", ("drop one end", "cut off an end"), ("x[1:]", "x[:-1]")),
    Idea("order", ("put them in order", "sort them"), ("sorted(x)", "sorted(x)[::-1]")),
    Idea("alternate", ("keep every other one", "take alternate ones"), ("x[::2]", "x[1::2]")),
    Idea("even", ("keep the even ones",), ("[v for v in x if v % 2 == 0]", "x[::2]", "x[1::2]")),
    Idea(
        "unique",
        ("remove the duplicates", "keep no repeats"),
        ("list(dict.fromkeys(x))", "sorted(set(x))", "[v for v in x if x.count(v) == 1]"),
    ),
    Idea("up_to", ("keep those up to 5",), ("[v for v in x if v <= 5]", "[v for v in x if v < 5]")),
    Idea("rotate", ("rotate by one", "shift them around by one"), ("x[1:] + x[:1]", "x[-1:] + x[:-1]")),
    Idea("half", ("keep one half", "take half of the list"), ("x[:len(x) // 2]", "x[len(x) // 2:]")),
    Idea("twice", ("repeat it all", "give each of them twice"), ("x + x", "[v for v in x for _ in (0, 1)]")),
    Idea(
        "position",
        ("add the position to each", "add to each its place"),
        ("[v + i for i, v in enumerate(x)]", "[v + i for i, v in enumerate(x, 1)]"),
    ),
    Idea(
        "differences",
        ("take the differences", "take gaps of neighbours"),
        (
            "[b - a for a, b in zip(x, x[1:])]",
            "[a - b for a, b in zip(x, x[1:])]",
            "[abs(a - b) for a, b in zip(x, x[1:])]",
        ),
    ),
    Idea("total", ("put the total beside them", "attach the sum"), ("x + [sum(x)]", "[sum(x)] + x")),
    Idea(
        "limit",
        ("limit them to 6", "allow at most 6"),
        ("[min(v, 6) for v in x]", "[v for v in x if v <= 6]", "x[:6]"),
    ),
    Idea("extreme", ("take out an extreme",), ("sorted(x)[1:]", "sorted(x)[:-1]")),
    Idea("default", ("never give back nothing",), ("x or [0]", "x or [1]")),
)

CLEAR: tuple[Idea, ...] = (
    Idea("reverse", ("reverse the list", "turn it around"), ("x[::-1]",), ("sorted(x)[::-1]", "x[1:] + x[:1]")),
    Idea("double", ("multiply each by two",), ("[2 * v for v in x]",), ("x + x", "[v * v for v in x]")),
    Idea("increment", ("add one to each",), ("[v + 1 for v in x]",), ("[v - 1 for v in x]", "x + [1]")),
    Idea("decrement", ("take one from each",), ("[v - 1 for v in x]",), ("[v + 1 for v in x]", "x[1:]")),
    Idea("square", ("square each",), ("[v * v for v in x]",), ("[2 * v for v in x]",)),
    Idea("negate", ("flip each sign",), ("[-v for v in x]",), ("[abs(v) for v in x]", "x[::-1]")),
    Idea("odd", ("keep odd values",), ("[v for v in x if v % 2 == 1]",), ("[v for v in x if v % 2 == 0]",)),
    Idea("over", ("keep values over 3",), ("[v for v in x if v > 3]",), ("[v for v in x if v >= 3]",)),
    Idea("under", ("keep values under 6",), ("[v for v in x if v < 6]",), ("[v for v in x if v <= 6]",)),
    Idea("floor", ("raise values under 2 to 2",), ("[max(v, 2) for v in x]",), ("[min(v, 2) for v in x]",)),
    Idea("mirror", ("append the reverse",), ("x + x[::-1]",), ("x + x", "x[::-1] + x")),
    Idea(
        "running",
        ("take running totals",),
        ("[sum(x[:i + 1]) for i in range(len(x))]",),
        ("[sum(x[:i]) for i in range(len(x))]",),
    ),
)

IDEAS: tuple[Idea, ...] = AMBIGUOUS + CLEAR

STEPS = "ABC"
"""Names of a problem's steps, in its statement as in its programs."""


def lettered(steps: Sequence[str]) -> list[tuple[str, str]]:
    """Each step behind its letter; raises `ValueError` when there are more steps than letters."""
    return list(zip(STEPS[: len(steps)], steps, strict=True))


def statement_of(wordings: Sequence[str]) -> str:
    """The statement that says the steps in words, one a line."""
    return "\n".join(["Write f(x).", *(f"{step}) {wording}" for step, wording in lettered(wordings))])


def program_of(wordings: Sequence[str], expressions: Sequence[str]) -> str:
    """The program that applies `expressions` one after the other to its argument.

    Each step's words stand above its line as a comment: copying words is easy for a tiny model and finding the words
    that belong to a bare letter is not, so that it wrote the right lines in the wrong order.
    """
    steps = zip(lettered(wordings), expressions, strict=True)
    lines = "".join(lines_of(step, expression) for step, expression in steps)
    return f"def f(x):\n{lines}    return x\n"


def lines_of(step: tuple[str, str], expression: str) -> str:
    """A step's lines in a program: its letter and words as a comment, then what is done."""
    return f"{comment_of(step)}    x = {expression}\n"


def comment_of(step: tuple[str, str]) -> str:
    """The comment above a step's line."""
    letter, wording = step
    return f"    # {letter}) {wording}\n"
