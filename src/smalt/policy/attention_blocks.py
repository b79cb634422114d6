"""Attention in a packed trie as a few dense batches: what each attends to, and nothing else, is brought together.

One mask over the whole sequence would cost its length squared. But a row's own tokens attend to their row only, and
rows that leave the trie at the same place (the completions of a prompt) have all tokens up to there in common. Such
rows form a block: queries are their own tokens, keys the common prefix, which exists once, and each row's rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from smalt.policy.trie import Places, PrefixTrie

_MOST_PADDING = 1.5
"""Rows whose padded scores would be more than this times their real ones do not share a block."""
_KEYS_AT_ONCE = 1 << 16
_SCORES_AT_ONCE = 1 << 25
"""Most keys, and most elements of a mask, that the rows of a block have together at a time; one row may need more."""
_MOST_COPIED = 4096
"""Keys of the prefix beyond which rows ask it once, where they can, instead of having a copy each."""
_MOST_REPEATED = 4
"""Repeated keys that are more than this times the distinct ones are made again in backward instead of kept."""


@dataclass(frozen=True)
class AttentionBlock:
    """`rows` rows with `queries` own tokens each (padded at the right) that attend to `prefix` + `rest` keys."""

    rows: int
    queries: int
    prefix: int
    rest: int
    offsets: tuple[int, ...]
    """For each row the index of its first query among the rest of the keys."""
    masks: dict[tuple[int | None, range, int, int], Tensor] = field(default_factory=dict)
    """By window, rows, groups and first key, as far as they were asked for."""

    @property
    def is_causal(self) -> bool:
        """Whether the plain causal rule holds: every row is all there, from its first token."""
        return self.prefix == 0 and self.queries == self.rest and not any(self.offsets)

    @property
    def copies_much(self) -> bool:
        """Whether a copy of the prefix for each row would cost more than asking it apart and merging."""
        return self.rows * self.prefix > _MOST_COPIED

    @property
    def repeats_much(self) -> bool:
        """Whether the rows' keys are many times the distinct ones, so that keeping them would cost more than time."""
        return self.rows * (self.prefix + self.rest) > _MOST_REPEATED * (self.prefix + self.rows * self.rest)

    @property
    def parts(self) -> list[range]:
        """Rows that are attended to together."""
        keys = self.prefix + self.rest
        most = max(1, min(_KEYS_AT_ONCE // keys, _SCORES_AT_ONCE // (keys * self.queries)))
        return [range(start, min(start + most, self.rows)) for start in range(0, self.rows, most)]

    def queries_of(self, gathered: Tensor, rows: range) -> Tensor:
        """Queries of some rows, `[rows, queries, heads, size]`, from all of the block's."""
        own = gathered.reshape(self.rows, self.queries, *gathered.shape[1:])
        return own[rows.start : rows.stop]

    def keys_of(self, gathered: Tensor, rows: range) -> tuple[Tensor, Tensor]:
        """Keys or values from all of the block's: the prefix, and of some rows the `[rows, rest, heads, size]`."""
        common, rest = torch.split(gathered, [self.prefix, self.rows * self.rest])
        return common, rest.reshape(self.rows, self.rest, *rest.shape[1:])[rows.start : rows.stop]

    def mask(self, window: int | None, rows: range, like: Tensor, groups: int = 1, first: int = 0) -> Tensor:
        """Additive mask `[rows or 1, 1, groups * queries, keys]` of the dtype of `like`, for keys from the `first` on.

        `window` is how many tokens back a token sees, itself included; `groups` is query heads that share keys.
        Padding among the keys is behind every real query; padded queries see something, or everything alike, so that
        nothing is NaN.
        """
        if (window, rows, groups, first) not in self.masks:
            wanted = self.offsets[rows.start : rows.stop]
            offsets = torch.tensor(wanted[:1] if len(set(wanted)) == 1 else wanted, device=like.device)
            query = self.prefix + offsets[:, None, None] + torch.arange(self.queries, device=like.device)[:, None]
            key = torch.arange(first, self.prefix + self.rest, device=like.device)
            hidden = key > query if window is None else (key > query) | (key <= query - window)
            mask = torch.zeros(hidden.shape, dtype=like.dtype, device=like.device)
            mask = mask.masked_fill_(hidden, torch.finfo(like.dtype).min)[:, None]
            self.masks[window, rows, groups, first] = mask.repeat(1, 1, groups, 1)
        return self.masks[window, rows, groups, first]


@dataclass(frozen=True)
class AttentionBlocks:
    """All blocks of a packed sequence of `n` tokens."""

    blocks: tuple[AttentionBlock, ...]
    query_places: Tensor
    """`[sum of rows * queries]` places of the blocks' queries in the sequence."""
    key_places: Tensor
    """`[sum of prefix + rows * rest]` places of the blocks' keys."""
    output_places: Tensor
    """`[n]` where among the blocks' queries each token of the sequence is."""

    @property
    def query_counts(self) -> list[int]:
        """Queries of each block, padding included."""
        return [block.rows * block.queries for block in self.blocks]

    @property
    def key_counts(self) -> list[int]:
        """Gathered keys of each block."""
        return [block.prefix + block.rows * block.rest for block in self.blocks]

    @property
    def windows_seen(self) -> set[int]:
        """The windows that layers have asked masks for so far."""
        return {window for block in self.blocks for window, *_ in block.masks if window is not None}

    @classmethod
    def of(cls, trie: PrefixTrie, stems: Sequence[int], device: torch.device) -> AttentionBlocks:
        """Blocks for `trie`; `stems[row]` is how many first tokens a row has in common with its siblings."""
        blocks: list[AttentionBlock] = []
        queries: list[Places] = []
        keys: list[Places] = []
        for prefix, rows in _families(trie, stems):
            paths = [trie.paths[row] for row in rows]
            offsets = [trie.shared[row] - prefix for row in rows]
            rest = max(len(path) for path in paths) - prefix
            own = max(len(path) - prefix - offset for path, offset in zip(paths, offsets, strict=True))
            blocks.append(AttentionBlock(len(rows), own, prefix, rest, tuple(offsets)))
            keys.append(paths[0][:prefix])
            keys += [_padded(path[prefix:], rest) for path in paths]
            queries += [_padded(path[prefix + off :], own) for path, off in zip(paths, offsets, strict=True)]
        query_places, key_places = np.concatenate(queries), np.concatenate(keys)
        # Padding repeats a row's last place, which is written last to first so that the real one stays.
        output_places = np.empty(len(trie.ids), np.int64)
        output_places[query_places[::-1]] = np.arange(len(query_places))[::-1]
        return cls(tuple(blocks), *(torch.from_numpy(p).to(device) for p in (query_places, key_places, output_places)))


def _families(trie: PrefixTrie, stems: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
    """Rows that make a block together, and the length of the prefix they have in common."""
    families: dict[tuple[int, int], list[int]] = {}
    for row in trie.order:
        if trie.shared[row] < len(trie.paths[row]):  # else an earlier row owns all of it
            prefix = min(stems[row], trie.shared[row])
            place = int(trie.paths[row][prefix - 1]) if prefix else -1
            families.setdefault((prefix, place), []).append(row)
    for (prefix, _), rows in families.items():
        for part in _of_like_size(trie, rows, prefix):
            yield prefix, part


def _of_like_size(trie: PrefixTrie, rows: Sequence[int], prefix: int) -> Iterator[list[int]]:
    """Split a family so that padding stays small."""

    def size(row: int) -> tuple[int, int]:
        length = len(trie.paths[row])
        return length - trie.shared[row], length

    part: list[int] = []
    real = most_queries = most_keys = 0
    for row in sorted(rows, key=lambda row: (*size(row), row)):
        queries, keys = size(row)
        real += queries * keys
        most_queries, most_keys = max(most_queries, queries), max(most_keys, keys)
        if part and (len(part) + 1) * most_queries * most_keys > _MOST_PADDING * real:
            yield part
            part, real, most_queries, most_keys = [], queries * keys, queries, keys
        part.append(row)
    if part:
        yield part


def _padded(places: Places, length: int) -> Places:
    """Places, the last one repeated up to `length`."""
    return np.concatenate([places, np.full(length - len(places), places[-1])])
