"""A key-value cache whose rows come and go: each row has its own length and starts at column 0.

A new token is written behind its row's last one, so that rows of different lengths decode together, a row that comes
shifts no other, and a row that ends makes room by moving one row. The mask hides what is behind a row's end. A row
begins with a copy of its prompt, or behind it where prompts are shared. Only for decoding one token a row, without
gradient, on layers that attend to everything before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers import Cache, DynamicCache
from transformers.cache_utils import DynamicLayer

from smalt.policy.caching import cache_argument
from smalt.policy.prefill import PrefilledPrompt
from smalt.policy.prefix_memory import Segment
from smalt.policy.shared_prompts import SharedPrompts, shelf_columns

# Columns added at a time: each time copies all there is.
_BLOCK = 64


@dataclass(eq=False)
class _Table:
    """What all layers have in common."""

    lengths: Tensor
    """Tokens of each row, `[rows]`."""
    begins: Tensor
    """Tokens of the prompt that a row begins behind, `[rows]`."""
    width: int = 0
    """Tokens of the longest row."""
    known_places: dict[tuple[int, int], Tensor] = field(default_factory=dict)
    """What `next_places` found for the present lengths."""

    @property
    def rows(self) -> int:
        return len(self.lengths)

    def next_places(self, heads: int, columns: int) -> Tensor:
        """Where each row's next token goes, `[rows * heads]`, in buffers seen as `[rows * heads * columns]`."""
        if (heads, columns) not in self.known_places:
            row_heads = torch.arange(self.rows * heads, device=self.lengths.device)
            self.known_places[heads, columns] = row_heads * columns + self.lengths.repeat_interleave(heads)
        return self.known_places[heads, columns]

    def advance(self) -> None:
        """Every row is a token longer."""
        self.lengths = self.lengths + 1
        self.width += 1
        self.known_places.clear()

    def extend(self, lengths: list[int], begins: list[int]) -> None:
        """Append rows."""
        self.lengths = torch.cat([self.lengths, self.lengths.new_tensor(lengths)])
        self.begins = torch.cat([self.begins, self.begins.new_tensor(begins)])
        self.width = max(self.width, *lengths)
        self.known_places.clear()

    def move(self, holes: list[int], tails: list[int], rows: int) -> None:
        """As the cache's."""
        if holes:
            for column in (self.lengths, self.begins):
                column[holes] = column[tails]
        self.lengths, self.begins = self.lengths[:rows], self.begins[:rows]
        self.width = int(self.lengths.max()) if rows else 0
        self.known_places.clear()


class RowCache(Cache):  # type: ignore[misc]
    """The states of the rows being decoded."""

    def __init__(self, config: Any, device: torch.device, *, shares_prompts: bool) -> None:
        """An empty cache for a model of this config."""
        nothing = torch.zeros(0, dtype=torch.long, device=device)
        self.table = _Table(nothing, nothing)
        self.prompts = SharedPrompts() if shares_prompts else None
        super().__init__(layers=[_RowLayer(self.table) for _ in DynamicCache(config=config).layers])

    @property
    def width(self) -> int:
        """Tokens of the longest row, without shared prompts."""
        return self.table.width

    @property
    def prompt_tokens(self) -> int:
        """Tokens of shared prompts."""
        return self.prompts.tokens if self.prompts else 0

    def grown(self, width: int, prompt_tokens: int, length: int) -> tuple[int, int]:
        """The width and the prompts' tokens when a prompt of so many tokens joins."""
        if self.prompts is None:
            return max(width, length), prompt_tokens
        return width, prompt_tokens + shelf_columns(length)

    def place(self, prompts: Sequence[tuple[PrefilledPrompt, int]]) -> None:
        """Add the states of prompts, each as so many new rows."""
        first = self.table.rows
        lengths = [prompt.length for prompt, count in prompts for _ in range(count)]
        nothing = [0] * len(lengths)
        if self.prompts is not None:
            self.prompts.add(prompts)
            self.table.extend(nothing, lengths)
        else:
            self.table.extend(lengths, nothing)
        for layer, source in zip(self.layers, prompts[0][0].layers, strict=True):
            layer.reserve(source.keys, source.values, first)
        if self.prompts is None:
            self._copy(prompts, first)

    def _copy(self, prompts: Sequence[tuple[PrefilledPrompt, int]], first: int) -> None:
        """Write prompts into rows from `first` on."""
        for number, layer in enumerate(self.layers):
            row = first
            for prompt, count in prompts:
                source = prompt.layers[number]
                for columns, places in prompt.pieces():
                    layer.key_buffer[row : row + count, :, columns] = source.keys[prompt.row, :, places]
                    layer.value_buffer[row : row + count, :, columns] = source.values[prompt.row, :, places]
                row += count

    def feed(self, model: Any, tokens: Tensor) -> Tensor:
        """Run the next token of each row, `[rows]`; returns the logits of those after them, `[rows, vocabulary]`."""
        table = self.table
        is_seen = torch.arange(table.width + 1, device=tokens.device) <= table.lengths[:, None]
        inputs: dict[str, Any] = {"attention_mask": is_seen.long()}
        if self.prompts is not None:
            mask = torch.zeros(is_seen.shape, dtype=model.dtype, device=tokens.device)
            mask.masked_fill_(~is_seen, -torch.inf)
            inputs = {"attention_mask": mask[:, None, None], "shared_prompts": self.prompts.states()}
        positions = (table.begins + table.lengths)[:, None]
        output = model(input_ids=tokens[:, None], position_ids=positions, **inputs, **cache_argument(model, self))
        table.advance()
        logits: Tensor = output.logits[:, -1]
        return logits

    def segment(self, row: int, begin: int, end: int, parent: Segment) -> Segment:
        """A copy of the states of a row's text from token `begin` to `end`, no part of which is yet to be fed."""
        held = self.prompts.length_of(row) if self.prompts else 0
        columns = slice(max(begin - held, 0), end - held)
        own = [(layer.key_buffer[row, :, columns], layer.value_buffer[row, :, columns]) for layer in self.layers]
        if self.prompts is None or begin >= held:
            return Segment(begin, [(keys.clone(), values.clone()) for keys, values in own], parent)
        pairs = zip(self.prompts.states_of(row, begin), own, strict=True)
        states = [(torch.cat([k, keys], 1), torch.cat([v, values], 1)) for (k, v), (keys, values) in pairs]
        return Segment(begin, states, parent)

    def move(self, holes: list[int], tails: list[int], rows: int) -> None:
        """Write rows `tails` over rows `holes`, then end after `rows` rows."""
        table = self.table
        if holes:
            for layer in self.layers:
                for buffer in (layer.key_buffer, layer.value_buffer):
                    buffer[holes, :, : self.width] = buffer[tails, :, : self.width]
        if self.prompts is not None:
            self.prompts.move(holes, tails, rows)
        table.move(holes, tails, rows)


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
        for buffer, states in ((self.key_buffer, key_states), (self.value_buffer, value_states)):
            _, heads, columns, size = buffer.shape
            buffer.view(-1, size).index_copy_(0, table.next_places(heads, columns), states.reshape(-1, size))
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
