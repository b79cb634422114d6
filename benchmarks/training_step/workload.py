"""Rows to train on, of random ids: a group, a MURPHY tree, and contexts of one dialogue that extend each other."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from smalt.policy.layouts import Row
from smalt.policy.trie import distinct_tokens


@dataclass(frozen=True)
class Case:
    """Rows with an advantage each."""

    name: str
    rows: tuple[Row, ...]
    advantages: tuple[float, ...]

    @property
    def distinct(self) -> int:
        """Tokens that have to be computed."""
        return distinct_tokens([row.input_ids for row in self.rows])

    @property
    def total(self) -> int:
        """Tokens of all rows by themselves."""
        return sum(len(row.input_ids) for row in self.rows)

    @property
    def scored(self) -> int:
        """Completion tokens."""
        return sum(len(row.completion_ids) for row in self.rows)


@dataclass
class Author:
    """Writes random ids below `vocabulary`; the same seed writes the same."""

    vocabulary: int
    seed: int = 0

    def __post_init__(self) -> None:
        """Begin."""
        self._random = random.Random(self.seed)

    def ids(self, length: int) -> tuple[int, ...]:
        """Tokens of a prompt, a reply, a feedback."""
        return tuple(self._random.choices(range(self.vocabulary // 2), k=length))

    def case(self, name: str, rows: Iterator[Row]) -> Case:
        """Rows with normal advantages."""
        made = tuple(rows)
        return Case(name, made, tuple(self._random.gauss(0, 1) for _ in made))

    def group(self, size: int, prompt: int, completion: int) -> Case:
        """`size` completions of one prompt."""
        stem = self.ids(prompt)
        return self.case(f"group-{prompt}", (Row(stem, self.ids(completion)) for _ in range(size)))

    def murphy(self, size: int, turns: int, prompt: int, completion: int) -> Case:
        """Every completion is revised `size` times behind feedback of half a completion, but those of the last turn."""
        return self.case("murphy", self._revised(self.ids(prompt), size, turns, completion))

    def cobalt(self, size: int, turns: int, prompt: int, completion: int) -> Case:
        """Groups at `turns` contexts of one dialogue, each context the one before with a reply and its feedback."""
        return self.case("cobalt", self._nested(self.ids(prompt), size, turns, completion))

    def _revised(self, stem: tuple[int, ...], size: int, turns: int, completion: int) -> Iterator[Row]:
        for _ in range(size):
            reply = self.ids(completion)
            yield Row(stem, reply)
            if turns > 1:
                yield from self._revised((*stem, *reply, *self.ids(completion // 2)), size, turns - 1, completion)

    def _nested(self, stem: tuple[int, ...], size: int, turns: int, completion: int) -> Iterator[Row]:
        for _ in range(turns):
            yield from (Row(stem, self.ids(completion)) for _ in range(size))
            stem = (*stem, *self.ids(completion), *self.ids(completion // 2))


def floor_of(case: Case, author: Author) -> Case:
    """As many tokens as are distinct in `case`, as many of them scored, in rows that share nothing.

    Each row is as long as the mean row of the case, so that attention looks back about as far.
    """
    length = case.total / len(case.rows)
    rows = max(1, round(case.distinct / length))
    prompt = round((case.distinct - case.scored) / rows) + 1
    completion = max(1, round(case.scored / rows))
    return author.case(f"{case.name} floor", (Row(author.ids(prompt), author.ids(completion)) for _ in range(rows)))
