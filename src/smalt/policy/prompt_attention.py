"""Attention of rows that go on from shared prompts: to the prompt and to the row's own tokens, then both merged.

Rows of one prompt ask it together, as one block of queries against one copy of its keys. Softmax over both parts is
their mean, weighted by each part's sum of exponentials, whose logarithm the parts return.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from smalt.policy.shared_prompts import PromptStates


def attend_with_prompts(
    module: Any,
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor,
    prompts: PromptStates,
    scaling: float | None = None,
) -> Tensor:
    """The attention of one token a row, `[rows, 1, heads, size]`.

    `query` is `[rows, heads, 1, size]`; `keys` and `values` are the rows' own, `[rows, key-value heads, tokens, size]`,
    and `mask` is added to their scores, `[rows, 1, 1, tokens]`.
    """
    rows, shared_heads, _, size = keys.shape
    query = query.reshape(rows, shared_heads, -1, size)
    own, own_weight = _attention(query, keys, values, mask, scaling)
    asked, asked_weight = _of_prompts(query, prompts, module.layer_idx, scaling)
    share = torch.sigmoid(asked_weight - own_weight).unsqueeze(-1).to(own.dtype)
    return torch.lerp(own, asked, share).reshape(rows, 1, -1, size)


def _of_prompts(query: Tensor, prompts: PromptStates, layer: int, scaling: float | None) -> tuple[Tensor, Tensor]:
    """Attention of `query` `[rows, key-value heads, queries, size]` to the rows' prompts, and its weight."""
    _, heads, queries, size = query.shape
    blocks = torch.split(query.index_select(0, prompts.rows), [shelf.places for shelf in prompts.shelves])
    outputs, weights = [], []
    for shelf, block in zip(prompts.shelves, blocks, strict=True):
        by_prompt = block.view(-1, shelf.most_rows, heads, queries, size).transpose(1, 2).flatten(2, 3)
        output, weight = _attention(by_prompt, *shelf.states[layer], shelf.mask, scaling)
        by_row = (len(by_prompt), heads, shelf.most_rows, queries)
        outputs.append(output.reshape(*by_row, size).transpose(1, 2).flatten(0, 1))
        weights.append(weight.reshape(by_row).transpose(1, 2).flatten(0, 1))
    return (
        torch.cat(outputs).index_select(0, prompts.places),
        torch.cat(weights).index_select(0, prompts.places),
    )


def _attention(
    query: Tensor, keys: Tensor, values: Tensor, mask: Tensor, scaling: float | None
) -> tuple[Tensor, Tensor]:
    """Attention `[n, heads, queries, size]`, and the log-sum-exp of its scores in float32, `[n, heads, queries]`."""
    # What scaled_dot_product_attention runs on a CPU; it also returns the log-sum-exp, which the public name drops.
    # Looked up here, so that a torch without it fails where `capabilities.py` tries, and prompts are not shared.
    attend = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    found: tuple[Tensor, Tensor] = attend(query, keys, values, attn_mask=mask, scale=scaling)
    return found
