"""Attention of rows that go on from one prefix: to the prefix and to each row's own tokens, then both merged.

`scaled_dot_product_attention` wants the prefix's keys repeated for every row, as a copy in memory, and a mask over all
of them. Here the prefix is asked once, by the queries of all rows and without a mask. The softmax over both parts is
their mean, weighted by each part's sum of exponentials, whose logarithm the operator returns. It also takes that of the
whole in backward, where each part's gradient follows from the merged output alone; the prefix's is made for each row
and summed.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from smalt.policy.grouped_heads import grouped, ungrouped


def has_operator() -> bool:
    """Whether this torch has what `scaled_dot_product_attention` runs on a CPU under its own name, both ways."""
    forward = "_scaled_dot_product_flash_attention_for_cpu"
    return hasattr(torch.ops.aten, forward) and hasattr(torch.ops.aten, f"{forward}_backward")


def attend_to_prefix_and_rest(
    query: Tensor,
    prefix: tuple[Tensor, Tensor],
    rest: tuple[Tensor, Tensor],
    mask: Tensor,
    scaling: float | None,
) -> Tensor:
    """`[rows, queries, heads, size]` from queries of that shape.

    `prefix` is keys and values `[prefix, key-value heads, size]`, which every query sees, `rest` the rows' own,
    `[rows, rest, key-value heads, size]`; `mask` is added to the scores of the rest,
    `[rows or 1, 1, heads / key-value heads * queries, rest]`.
    """
    shared_heads = prefix[0].shape[1]
    by_head = [states.transpose(-3, -2) for states in (*prefix, *rest)]
    found: Tensor = _PrefixAndRest.apply(grouped(query, shared_heads), *by_head, mask, scaling)  # type: ignore[no-untyped-call]
    return ungrouped(found, query.shape[1])


class _PrefixAndRest(torch.autograd.Function):
    """Queries `[rows, heads, queries, size]`, prefix `[heads, prefix, size]`, rest `[rows, heads, rest, size]`."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, *others: Any) -> Tensor:
        prefix_keys, prefix_values, keys, values, mask, scaling = others
        asked, asked_weight = _attention(query, *_for_rows(query, prefix_keys, prefix_values), None, scaling)
        own, own_weight = _attention(query, keys, values, mask, scaling)
        share = torch.sigmoid(asked_weight - own_weight).unsqueeze(-1).to(own.dtype)
        output = torch.lerp(own, asked, share)
        weight = torch.logaddexp(asked_weight, own_weight)
        ctx.save_for_backward(query, prefix_keys, prefix_values, keys, values, mask, output, weight)
        ctx.scaling = scaling
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        query, prefix_keys, prefix_values, keys, values, mask, output, weight = ctx.saved_tensors
        prefix = _for_rows(query, prefix_keys, prefix_values)
        to_prefix = _attention_backward(gradient, query, *prefix, output, weight, None, ctx.scaling)
        to_rest = _attention_backward(gradient, query, keys, values, output, weight, mask, ctx.scaling)
        of_prefix = [found.sum(0) for found in to_prefix[1:]]
        return to_prefix[0] + to_rest[0], *of_prefix, *to_rest[1:], None, None


def _for_rows(query: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """The prefix for each row, `[rows, heads, prefix, size]`, without a copy."""
    rows = len(query)
    return keys.expand(rows, *keys.shape), values.expand(rows, *values.shape)


def _attention(
    query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, scaling: float | None
) -> tuple[Tensor, Tensor]:
    """Attention `[rows, heads, queries, size]`, and its scores' log-sum-exp in float32, `[rows, heads, queries]`."""
    attend = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    found: tuple[Tensor, Tensor] = attend(query, keys, values, attn_mask=mask, scale=scaling)
    return found


def _attention_backward(
    gradient: Tensor,
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    output: Tensor,
    weight: Tensor,
    mask: Tensor | None,
    scaling: float | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of query, keys and values."""
    backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
    found: tuple[Tensor, Tensor, Tensor] = backward(
        gradient, query, keys, values, output, weight, 0.0, False, attn_mask=mask, scale=scaling
    )
    return found
