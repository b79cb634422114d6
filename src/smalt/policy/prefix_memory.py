"""Keys and values of prompts and completions, kept from one turn of a growth to the next.

A **segment** holds the tokens that one prompt or one completion added to an earlier segment, so that what siblings
have in common is held once. A memory lives as long as one growth and is filled by its turns in order: what it holds
depends on nothing else, and a growth that is done again finds the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

Ids = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Segment:
    """The states of tokens `begin` to `end` of a text; those before `begin` are the parent's."""

    begin: int
    states: list[tuple[Tensor, Tensor]]
    """Per layer the keys and values, `[heads, tokens, head size]`."""
    parent: Segment | None = None

    @property
    def tokens(self) -> int:
        """Tokens that it holds itself."""
        return self.states[0][0].shape[1]

    @property
    def end(self) -> int:
        """Tokens of the text up to its end."""
        return self.begin + self.tokens

    def chain(self) -> list[Segment]:
        """The segments of the whole text, first tokens first."""
        return [*(self.parent.chain() if self.parent else ()), self]


@dataclass
class PrefixMemory:
    """Segments by the text that they end, at most `budget` tokens of them, for the turns that follow.

    At the start of a turn goes whatever no request of the turn extends; then what comes is kept until the budget is
    used up. Nothing else is evicted: a token kept saves one computed, whichever it is.
    """

    budget: int
    turns_left: int
    """Turns that still follow; none after the last, for which nothing is kept."""
    _segments: dict[Ids, Segment] = field(default_factory=dict)
    _held: int = 0

    def begin_turn(self, texts: Iterable[Ids]) -> None:
        """Count a turn and forget all that is no part of `texts`."""
        self.turns_left -= 1
        ends = [segment for text in texts if (segment := self.find(text))]
        needed = {id(part) for segment in ends for part in segment.chain()}
        self._segments = {text: segment for text, segment in self._segments.items() if id(segment) in needed}
        self._held = sum(segment.tokens for segment in self._segments.values())

    def find(self, text: Ids) -> Segment | None:
        """The segment that ends this very text."""
        return self._segments.get(text)

    def wants(self, text: Ids, tokens: int) -> bool:
        """Whether to add a segment of so many tokens that ends `text`."""
        has_room = self.turns_left > 0 and self._held + tokens <= self.budget
        return has_room and tokens > 0 and text not in self._segments

    def add(self, text: Ids, segment: Segment) -> None:
        """Keep a segment; only what it `wants`."""
        self._segments[text] = segment
        self._held += segment.tokens


def fill_cache(cache: Any, priors: Sequence[Segment | None], longest: int) -> None:
    """Write each row's prior text into an empty cache of `longest` columns, from column 0 on."""
    some = next(prior for prior in priors if prior)
    for number, layer in enumerate(cache.layers):
        keys, values = (_zeros(len(priors), longest, like) for like in some.states[number])
        for row, prior in enumerate(priors):
            for part in prior.chain() if prior else ():
                keys[row, :, part.begin : part.end], values[row, :, part.begin : part.end] = part.states[number]
        layer.update(keys, values)


def _zeros(rows: int, tokens: int, like: Tensor) -> Tensor:
    heads, _, size = like.shape
    return torch.zeros(rows, heads, tokens, size, dtype=like.dtype, device=like.device)
