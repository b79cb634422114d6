"""Rows of tokens as a prefix trie: what several rows begin with is laid out, and later computed, once.

Rows are taken in lexicographic order, so that every prefix two rows share is shared by all rows between them. A row
then owns only the tokens beyond its longest common prefix with the row before it, and the number of distinct tokens
of any stretch of rows is a sum. No node objects are needed.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.int64]
"""Positions in the packed sequence."""


@dataclass(frozen=True)
class PrefixTrie:
    """The distinct tokens of some rows in one sequence; `n` of them."""

    ids: Places
    """`[n]` token ids; each token stands after its ancestors."""
    depths: Places
    """`[n]` position of each token in every row that has it, counted from 0."""
    order: tuple[int, ...]
    """The given rows' numbers, sorted."""
    paths: tuple[Places, ...]
    """For each given row the place of each of its tokens in the sequence."""
    shared: tuple[int, ...]
    """For each given row how many of its first tokens an earlier row of `order` owns."""

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> PrefixTrie:
        """Pack rows of token ids; each has a token at least."""
        order, prefixes = _sorted(rows)
        paths: list[Places] = [np.empty(0, np.int64)] * len(rows)
        ids: list[Places] = []
        before, count = np.empty(0, np.int64), 0
        for row, prefix in zip(order, prefixes, strict=True):
            own = np.asarray(rows[row][prefix:], np.int64)
            before = np.concatenate([before[:prefix], np.arange(count, count + len(own))])
            paths[row] = before
            ids.append(own)
            count += len(own)
        depths = np.empty(count, np.int64)
        for path in paths:
            depths[path] = np.arange(len(path))
        shared = dict(zip(order, prefixes, strict=True))
        return cls(np.concatenate(ids), depths, order, tuple(paths), tuple(shared[row] for row in range(len(rows))))


def distinct_tokens(rows: Sequence[Sequence[int]]) -> int:
    """Tokens of the rows' prefix trie."""
    order, prefixes = _sorted(rows)
    return sum(len(rows[row]) - prefix for row, prefix in zip(order, prefixes, strict=True))


def cut(rows: Sequence[Sequence[int]], budget: int) -> list[list[int]]:
    """Split rows into parts whose tries have at most `budget` tokens each; a longer row is a part of its own.

    Each part computes its prefixes anew. Of all splits of the sorted rows the one with the fewest tokens in sum is
    taken, so that cuts fall between rows that share little; among equals the one with the fewest parts.
    """
    order, prefixes = _sorted(rows)
    lengths = [len(rows[row]) for row in order]
    owned_before = np.concatenate([[0], np.cumsum(np.subtract(lengths, prefixes))])
    # best[j]: (tokens, parts, start of the last part) of the best split of the first j rows.
    best: list[tuple[int, int, int]] = [(0, 0, 0)]
    for end in range(1, len(order) + 1):
        found: tuple[int, int, int] | None = None
        for start in range(end - 1, -1, -1):
            size = int(owned_before[end] - owned_before[start]) + prefixes[start]
            if size > budget and start < end - 1:
                break
            found = min(filter(None, (found, (best[start][0] + size, best[start][1] + 1, start))))
        best.append(found or (0, 0, 0))
    parts: list[list[int]] = []
    end = len(order)
    while end > 0:
        start = best[end][2]
        parts.append(list(order[start:end]))
        end = start
    return parts[::-1]


def _sorted(rows: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], list[int]]:
    """The rows' numbers in lexicographic order, and how many tokens each shares with the one before it."""
    keys = [tuple(row) for row in rows]
    order = tuple(sorted(range(len(keys)), key=keys.__getitem__))
    prefixes = [0] if keys else []
    for left, right in itertools.pairwise(order):
        prefixes.append(_common_prefix(keys[left], keys[right]))
    return order, prefixes


def _common_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    length = min(len(left), len(right))
    differs = np.asarray(left[:length]) != np.asarray(right[:length])
    return int(differs.argmax()) if differs.any() else length
