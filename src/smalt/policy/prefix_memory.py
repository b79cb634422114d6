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

    At the start of a turn goes whatever no text of the turn begins with; then what comes is kept until the budget is
    used up. Nothing else is evicted: a token kept saves one computed, whichever it is.
    """

    budget: int
    turns_left: int
    """Turns that still follow; none after the last, for which nothing is kept."""
    _segments: dict[Ids, Segment] = field(default_factory=dict)
    _ends: dict[Segment | None, list[int]] = field(default_factory=dict)
    """Where the segments behind a segment end; behind None those that begin a text."""
    _held: int = 0

    def begin_turn(self, texts: Iterable[tuple[Ids, int]]) -> None:
        """Count a turn and forget all that its texts do not begin with; the numbers as in `longest`."""
        self.turns_left -= 1
        found = [self.longest(text, likely_end) for text, likely_end in texts]
        needed = {part for segment in found if segment for part in segment.chain()}
        remembered = [(text, segment) for text, segment in self._segments.items() if segment in needed]
        self._segments, self._ends, self._held = {}, {}, 0
        for text, segment in remembered:
            self.add(text, segment)

    def find(self, text: Ids) -> Segment | None:
        """The segment that ends this very text."""
        return self._segments.get(text)

    def longest(self, text: Ids, likely_end: int) -> Segment | None:
        """The segments from the text's start on, as far as they go, but short of its last token.

        `likely_end` is where one of them should end; if none does, they are followed from the first.
        """
        found = self.find(text[:likely_end]) if likely_end < len(text) else None
        following = found or self._following(text, None)
        while following:
            found, following = following, self._following(text, following)
        return found

    def _following(self, text: Ids, segment: Segment | None) -> Segment | None:
        for end in sorted(set(self._ends.get(segment, ())), reverse=True):
            if end < len(text) and (found := self.find(text[:end])) and found.parent is segment:
                return found
        return None

    def wants(self, text: Ids, tokens: int) -> bool:
        """Whether to add a segment of so many tokens that ends `text`."""
        has_room = self.turns_left > 0 and self._held + tokens <= self.budget
        return has_room and tokens > 0 and text not in self._segments

    def add(self, text: Ids, segment: Segment) -> None:
        """Keep a segment; only what it `wants`."""
        self._segments[text] = segment
        self._ends.setdefault(segment.parent, []).append(segment.end)
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
