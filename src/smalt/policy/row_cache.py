"""A key-value cache whose rows come and go: each row has its own length and starts at column 0.

A new token is written behind its row's last one, so that rows of different lengths decode together, a row that comes
shifts no other, and a row that ends makes room by moving one row. The mask hides what is behind a row's end. Only for
decoding one token a row, without gradient, on layers that attend to everything before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import Cache, DynamicCache
from transformers.cache_utils import DynamicLayer

from smalt.policy.prefill import PrefilledPrompt
from smalt.policy.prefix_memory import Segment

# Columns added at a time: each time copies all there is.
_BLOCK = 64


@dataclass(eq=False)
class _Table:
    """What all layers have in common."""

    lengths: Tensor
    """Tokens of each row, `[rows]`."""
    width: int = 0
    """Tokens of the longest row."""

    @property
    def rows(self) -> int:
        return len(self.lengths)


class RowCache(Cache):  # type: ignore[misc]
    """The states of the rows being decoded."""

    def __init__(self, config: Any, device: torch.device) -> None:
        """An empty cache for a model of this config."""
        self.table = _Table(torch.zeros(0, dtype=torch.long, device=device))
        super().__init__(layers=[_RowLayer(self.table) for _ in DynamicCache(config=config).layers])

    @property
    def lengths(self) -> Tensor:
        """Tokens of each row, `[rows]`."""
        return self.table.lengths

    @property
    def width(self) -> int:
        """Tokens of the longest row."""
        return self.table.width

    def mask(self) -> Tensor:
        """The attention mask of the next token of each row, itself included, `[rows, width + 1]`."""
        return (torch.arange(self.width + 1, device=self.lengths.device) <= self.lengths[:, None]).long()

    def place(self, prompts: Sequence[tuple[PrefilledPrompt, int]]) -> None:
        """Add the states of prompts, each as so many new rows."""
        first = self.table.rows
        new = [prompt.length for prompt, count in prompts for _ in range(count)]
        self.table.lengths = torch.cat([self.lengths, torch.tensor(new, device=self.lengths.device)])
        self.table.width = max(self.width, *new)
        for number, layer in enumerate(self.layers):
            row = first
            for prompt, count in prompts:
                source = prompt.layers[number]
                layer.reserve(source.keys, source.values, first)
                for columns, places in prompt.pieces():
                    layer.key_buffer[row : row + count, :, columns] = source.keys[prompt.row, :, places]
                    layer.value_buffer[row : row + count, :, columns] = source.values[prompt.row, :, places]
                row += count

    def advance(self) -> None:
        """Count the token that a forward pass has written to each row."""
        self.table.lengths = self.lengths + 1
        self.table.width += 1

    def segment(self, row: int, begin: int, end: int, parent: Segment) -> Segment:
        """A copy of a row's states from token `begin` to `end`."""
        columns = slice(begin, end)
        states = [
            (layer.key_buffer[row, :, columns].clone(), layer.value_buffer[row, :, columns].clone())
            for layer in self.layers
        ]
        return Segment(begin, states, parent)

    def move(self, holes: Tensor, tails: Tensor, rows: int) -> None:
        """Write rows `tails` over rows `holes`, then end after `rows` rows."""
        if len(holes):
            for layer in self.layers:
                for buffer in (layer.key_buffer, layer.value_buffer):
                    buffer[holes, :, : self.width] = buffer[tails, :, : self.width]
            self.lengths[holes] = self.lengths[tails]
        self.table.lengths = self.lengths[:rows]
        self.table.width = int(self.lengths.max()) if rows else 0


class _RowLayer(DynamicLayer):  # type: ignore[misc]
    """One layer of a `RowCache`; buffers are `[rows, heads, columns, head size]`."""

    key_buffer: Tensor
    value_buffer: Tensor

    def __init__(self, table: _Table) -> None:
        super().__init__()
        self.table = table

    def get_seq_length(self) -> int:
        """Tokens of the longest row."""
        return self.table.width

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Write one token behind each row; returns the states of all rows, a column wider."""
        table = self.table
        self.reserve(key_states, value_states, table.rows)
        rows = torch.arange(table.rows, device=key_states.device)
        self.key_buffer[rows, :, table.lengths] = key_states[:, :, 0]
        self.value_buffer[rows, :, table.lengths] = value_states[:, :, 0]
        shown = slice(0, table.width + 1)
        return self.key_buffer[: table.rows, :, shown], self.value_buffer[: table.rows, :, shown]

    def reserve(self, keys: Tensor, values: Tensor, filled: int) -> None:
        """Make room for the table's rows and one column more; the first `filled` rows are kept.

        `keys` and `values` are states whose number and size of heads the buffers get.
        """
        rows, columns = self.table.rows, self.table.width + 1
        if not self.is_initialized:
            self.lazy_initialization(keys, values)
            self.key_buffer, self.value_buffer = keys[:0], values[:0]
        if rows > self.key_buffer.shape[0] or columns > self.key_buffer.shape[2]:
            self.key_buffer = _with_room(self.key_buffer, filled, rows, columns + _BLOCK)
            self.value_buffer = _with_room(self.value_buffer, filled, rows, columns + _BLOCK)


def _with_room(buffer: Tensor, filled: int, rows: int, columns: int) -> Tensor:
    """A buffer of this size that begins with the first `filled` rows of `buffer`.

    Zeros elsewhere: what is masked is still multiplied by 0, which garbage may survive as NaN.
    """
    kept = min(columns, buffer.shape[2])
    larger = buffer.new_zeros(rows, buffer.shape[1], columns, buffer.shape[3])
    larger[:filled, :, :kept] = buffer[:filled, :, :kept]
    return larger
