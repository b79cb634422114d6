"""The prompts that rows are decoded from, each held once, however many rows go on from it.

Decoding reads every key and value of every row for every token: with one copy of the prompt a row, that is most of its
work. Here a prompt lies on a **shelf** with others of about its length, so that attention takes a few calls for all
prompts and reads little padding. A prompt goes when its last row has.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from itertools import chain

import torch
from torch import Tensor

from smalt.policy.prefill import PrefilledPrompt

# A shelf's columns are a multiple of this, or of a quarter of the power of two below where that is more.
_LEAST_STEP = 32

Places = list[int]


@dataclass(frozen=True)
class ShelfStates:
    """What attention needs of a shelf: queries come as `[prompts, heads, most_rows, size]`."""

    states: Sequence[tuple[Tensor, Tensor]]
    """Per layer the keys and values, `[prompts, heads, columns, head size]`."""
    mask: Tensor
    """0 where a prompt has tokens and -inf behind them, `[prompts, 1, 1, columns]`."""
    most_rows: int
    """Rows of the prompt that has most; others have places that stand for no row."""

    @property
    def places(self) -> int:
        """Of all its prompts' rows together."""
        return len(self.mask) * self.most_rows


@dataclass(frozen=True)
class PromptStates:
    """What attention needs of all prompts, for rows in the order of the cache."""

    shelves: Sequence[ShelfStates]
    rows: Tensor
    """The row whose query goes to each place, shelf by shelf, `[places]`; some row where none does."""
    places: Tensor
    """The place of each row's query, `[rows]`."""


@dataclass(eq=False)
class _Held:
    """A prompt on its shelf."""

    shelf: _Shelf
    place: int
    length: int
    rows: list[int] = field(default_factory=list)


class SharedPrompts:
    """Prompts with their rows; rows are numbered as in the cache that holds what the rows have drawn."""

    def __init__(self) -> None:
        """No prompts yet."""
        self._shelves: dict[int, _Shelf] = {}
        self._of_rows: list[_Held] = []
        self._states: PromptStates | None = None

    @property
    def tokens(self) -> int:
        """Tokens that there is room for on the shelves' used places."""
        return sum(shelf.columns * len(shelf.prompts) for shelf in self._shelves.values())

    def length_of(self, row: int) -> int:
        """Tokens of the row's prompt."""
        return self._of_rows[row].length

    def add(self, prompts: Sequence[tuple[PrefilledPrompt, int]]) -> None:
        """Append so many rows of each prompt."""
        for prompt, count in prompts:
            columns = shelf_columns(prompt.length)
            shelf = self._shelves.setdefault(columns, _Shelf(columns))
            self._of_rows += [shelf.add(prompt)] * count
        self._states = None

    def move(self, holes: Places, tails: Places, rows: int) -> None:
        """Let rows `tails` stand at the places of rows `holes`, then end after `rows` rows."""
        for hole, tail in zip(holes, tails, strict=True):
            self._of_rows[hole] = self._of_rows[tail]
        del self._of_rows[rows:]
        used = set(self._of_rows)
        for columns, shelf in [*self._shelves.items()]:
            shelf.keep(used)
            if not shelf.prompts:
                del self._shelves[columns]
        self._states = None

    def states_of(self, row: int, begin: int) -> list[tuple[Tensor, Tensor]]:
        """Per layer the keys and values of the row's prompt from token `begin` on, `[heads, tokens, head size]`."""
        held = self._of_rows[row]
        tokens = slice(min(begin, held.length), held.length)
        return [(keys[held.place, :, tokens], values[held.place, :, tokens]) for keys, values in held.shelf.buffers]

    def states(self) -> PromptStates:
        """What attention needs; made anew only when rows have come or gone."""
        if self._states is None:
            self._states = self._gathered()
        return self._states

    def _gathered(self) -> PromptStates:
        for held in set(self._of_rows):
            held.rows = []
        for row, held in enumerate(self._of_rows):
            held.rows.append(row)
        shelves = [shelf.states() for shelf in self._shelves.values()]
        filled = [
            prompt.rows + prompt.rows[:1] * (states.most_rows - len(prompt.rows))
            for shelf, states in zip(self._shelves.values(), shelves, strict=True)
            for prompt in shelf.prompts
        ]
        rows = list(chain.from_iterable(filled))
        places = {row: place for place, row in reversed([*enumerate(rows)])}
        device = shelves[0].mask.device
        return PromptStates(
            shelves,
            torch.tensor(rows, device=device),
            torch.tensor([places[row] for row in range(len(self._of_rows))], device=device),
        )


class _Shelf:
    """Prompts of at most `columns` tokens; buffers are `[places, heads, columns, head size]`, the first ones used."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.prompts: list[_Held] = []
        self.buffers: list[tuple[Tensor, Tensor]] = []

    def add(self, prompt: PrefilledPrompt) -> _Held:
        """Copy a prompt's states behind the others."""
        held = _Held(self, len(self.prompts), prompt.length)
        self.prompts.append(held)
        if not self.buffers:
            self.buffers = [(self._room(layer.keys), self._room(layer.values)) for layer in prompt.layers]
        elif len(self.prompts) > len(self.buffers[0][0]):
            self.buffers = [(_doubled(keys), _doubled(values)) for keys, values in self.buffers]
        for (keys, values), layer in zip(self.buffers, prompt.layers, strict=True):
            for columns, places in prompt.pieces():
                keys[held.place, :, columns] = layer.keys[prompt.row, :, places]
                values[held.place, :, columns] = layer.values[prompt.row, :, places]
        return held

    def keep(self, kept: Set[_Held]) -> None:
        """Let the other prompts go; the last ones move to their places."""
        for prompt in [prompt for prompt in self.prompts if prompt not in kept]:
            last = self.prompts.pop()
            if last is not prompt:
                for buffer in chain.from_iterable(self.buffers):
                    buffer[prompt.place] = buffer[last.place]
                self.prompts[prompt.place], last.place = last, prompt.place

    def states(self) -> ShelfStates:
        """The used places; every prompt has its rows by now."""
        used = len(self.prompts)
        keys = self.buffers[0][0]
        lengths = torch.tensor([prompt.length for prompt in self.prompts], device=keys.device)
        is_behind = torch.arange(self.columns, device=keys.device) >= lengths[:, None]
        mask = keys.new_zeros(used, self.columns).masked_fill_(is_behind, -torch.inf)
        states = [(keys[:used], values[:used]) for keys, values in self.buffers]
        return ShelfStates(states, mask[:, None, None], max(len(prompt.rows) for prompt in self.prompts))

    def _room(self, like: Tensor) -> Tensor:
        """One place; zeros, as what is masked is still multiplied by 0."""
        return like.new_zeros(1, like.shape[1], self.columns, like.shape[3])


def shelf_columns(length: int) -> int:
    """Columns of the shelf on which a prompt of so many tokens lies."""
    step = max(_LEAST_STEP, 1 << max(0, length.bit_length() - 3))
    return -(-length // step) * step


def _doubled(buffer: Tensor) -> Tensor:
    return torch.cat([buffer, torch.zeros_like(buffer)])
