"""Query heads that share keys, seen as more queries of one head, so that keys need not be repeated in memory."""

from __future__ import annotations

from torch import Tensor


def grouped(queries: Tensor, shared_heads: int) -> Tensor:
    """`[rows, shared heads, heads / shared heads * queries, size]` from `[rows, queries, heads, size]`."""
    rows, count, heads, size = queries.shape
    by_group = queries.view(rows, count, shared_heads, heads // shared_heads, size)
    return by_group.permute(0, 2, 3, 1, 4).reshape(rows, shared_heads, -1, size)


def ungrouped(states: Tensor, queries: int) -> Tensor:
    """Back to `[rows, queries, heads, size]`."""
    rows, shared_heads, _, size = states.shape
    by_group = states.view(rows, shared_heads, -1, queries, size)
    return by_group.permute(0, 3, 1, 2, 4).reshape(rows, queries, -1, size)
