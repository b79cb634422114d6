"""Attention of rows that go on from one prefix: to the prefix and to each row's own tokens, then both merged.

`scaled_dot_product_attention` wants the prefix's keys repeated for every row, as a copy in memory, and a mask over all
of them. Here the prefix is asked once, by the queries of all rows and without a mask. The softmax over both parts is
their mean, weighted by each part's sum of exponentials, whose logarithm the operator returns. It also takes that of the
whole in backward, where each part's gradient follows from the merged output alone.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


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
    `[rows, rest, key-value heads, size]`; `mask` is added to the scores of the rest, `[rows or 1, 1, queries, rest]`.
    """
    found: Tensor = _PrefixAndRest.apply(query, *prefix, *rest, mask, scaling)  # type: ignore[no-untyped-call]
    return found


class _PrefixAndRest(torch.autograd.Function):
    """Tensors come and go as in `attend_to_prefix_and_rest`."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, *others: Any) -> Tensor:
        *states, mask, scaling = others
        prefix_keys, prefix_values, keys, values = states
        rows, queries, heads, _ = query.shape
        asked, asked_weight = _attention(_flat(query), *_for_all(prefix_keys, prefix_values, heads), None, scaling)
        own, own_weight = _attention(query.transpose(1, 2), *_for_each(keys, values, heads), mask, scaling)
        asked = asked.transpose(1, 2).reshape(rows, queries, heads, -1)
        asked_weight = asked_weight.reshape(heads, rows, queries).transpose(0, 1)
        share = torch.sigmoid(asked_weight - own_weight).transpose(1, 2).unsqueeze(-1).to(own.dtype)
        output = torch.lerp(own.transpose(1, 2), asked, share)
        ctx.save_for_backward(query, *states, mask, output, torch.logaddexp(asked_weight, own_weight))
        ctx.scaling = scaling
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        query, prefix_keys, prefix_values, keys, values, mask, output, weight = ctx.saved_tensors
        rows, queries, heads, _ = query.shape
        all_weight = weight.transpose(0, 1).reshape(1, heads, rows * queries)
        for_prefix = _attention_backward(
            _flat(gradient),
            _flat(query),
            *_for_all(prefix_keys, prefix_values, heads),
            _flat(output),
            all_weight,
            None,
            ctx.scaling,
        )
        for_rest = _attention_backward(
            gradient.transpose(1, 2),
            query.transpose(1, 2),
            *_for_each(keys, values, heads),
            output.transpose(1, 2),
            weight,
            mask,
            ctx.scaling,
        )
        of_query = for_prefix[0].transpose(1, 2).reshape(query.shape) + for_rest[0].transpose(1, 2)
        of_prefix = [_summed(found, prefix_keys.shape[1]).squeeze(0) for found in for_prefix[1:]]
        of_rest = [_summed(found, keys.shape[2]) for found in for_rest[1:]]
        return of_query, *of_prefix, *of_rest, None, None


def _flat(states: Tensor) -> Tensor:
    """Of all rows as if they were one: `[1, heads, rows * queries, size]` from `[rows, queries, heads, size]`."""
    return states.flatten(0, 1).transpose(0, 1).unsqueeze(0)


def _for_all(keys: Tensor, values: Tensor, heads: int) -> tuple[Tensor, Tensor]:
    """The prefix for every query head, `[1, heads, prefix, size]`, without a copy where each head has its own."""
    return _for_heads(keys.unsqueeze(0), heads), _for_heads(values.unsqueeze(0), heads)


def _for_each(keys: Tensor, values: Tensor, heads: int) -> tuple[Tensor, Tensor]:
    """The rows' own for every query head, `[rows, heads, rest, size]`."""
    return _for_heads(keys, heads), _for_heads(values, heads)


def _for_heads(states: Tensor, heads: int) -> Tensor:
    """`[rows, heads, tokens, size]` from `[rows, tokens, key-value heads, size]`."""
    rows, tokens, shared_heads, size = states.shape
    by_head = states.transpose(1, 2).unsqueeze(2)
    return by_head.expand(rows, shared_heads, heads // shared_heads, tokens, size).flatten(1, 2)


def _summed(gradient: Tensor, shared_heads: int) -> Tensor:
    """`[rows, tokens, key-value heads, size]`: the sum over the query heads that share one."""
    rows, heads, tokens, size = gradient.shape
    return gradient.view(rows, shared_heads, heads // shared_heads, tokens, size).sum(2).transpose(1, 2)


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
