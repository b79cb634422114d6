"""The attention of packed tries, under the names that transformers' models look attention up by.

A model whose attention is set to one of these works as before, and attends by blocks in the calls that are given
`attention_blocks`. Being a setting of the model and not of a call, it also holds when gradient checkpointing runs
layers again in backward.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from smalt.policy.attention_blocks import AttentionBlock, AttentionBlocks
from smalt.policy.grouped_heads import grouped, ungrouped
from smalt.policy.prefix_attention import attend_to_prefix_and_rest, has_operator
from smalt.policy.prompt_attention import attend_with_prompts
from smalt.policy.shared_prompts import PromptStates

_PREFIX = "smalt_tree_"
_INNER = ("sdpa", "eager")

AttentionCall = Callable[..., tuple[Tensor, Any]]


def can_use_tree_attention(model: Any) -> bool:
    """Whether the model's attention is one that blocks can be handed to."""
    return model.config._attn_implementation.removeprefix(_PREFIX) in _INNER


def can_share_prompts(model: Any) -> bool:
    """Whether shared prompts can be handed to its attention: SDPA, on the device whose operator is used for it."""
    return str(model.config._attn_implementation) == f"{_PREFIX}sdpa" and str(model.device.type) == "cpu"


def use_tree_attention(model: Any) -> None:
    """Let the model attend by blocks where it is given some."""
    inner = model.config._attn_implementation.removeprefix(_PREFIX)
    model.set_attn_implementation(_PREFIX + inner)


def use_plain_attention(model: Any) -> None:
    """Take that back."""
    model.set_attn_implementation(model.config._attn_implementation.removeprefix(_PREFIX))


def _attention(inner: str) -> AttentionCall:
    def attention(
        module: torch.nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None,
        attention_blocks: AttentionBlocks | None = None,
        shared_prompts: PromptStates | None = None,
        **kwargs: Any,
    ) -> tuple[Tensor, Any]:
        if shared_prompts is not None:
            mask = cast(Tensor, attention_mask)
            return attend_with_prompts(module, query, key, value, mask, shared_prompts, kwargs.get("scaling")), None
        is_decoding = attention_blocks is None and query.shape[2] == 1 and not module.training
        if is_decoding and inner == "sdpa" and attention_mask is not None:
            return _of_one_token(query, key, value, attention_mask, kwargs.get("scaling")), None
        attend = _own_eager(module) if inner == "eager" else ALL_ATTENTION_FUNCTIONS[inner]
        if attention_blocks is None:
            found: tuple[Tensor, Any] = attend(module, query, key, value, attention_mask, **kwargs)
            return found
        states = (_tokens(query), _tokens(key), _tokens(value))
        return _by_blocks(module, attend, states, attention_blocks, needs_mask=inner == "eager", **kwargs), None

    return attention


def _of_one_token(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scaling: float | None) -> Tensor:
    """`[rows, 1, heads, size]` from queries `[rows, heads, 1, size]`; `mask` is the same for all heads."""
    heads = grouped(query.transpose(1, 2), key.shape[1])
    return ungrouped(scaled_dot_product_attention(heads, key, value, attn_mask=mask, scale=scaling), 1)


def _by_blocks(
    module: torch.nn.Module,
    attend: AttentionCall,
    states: tuple[Tensor, Tensor, Tensor],
    plan: AttentionBlocks,
    *,
    needs_mask: bool,
    **kwargs: Any,
) -> Tensor:
    """`[1, n, heads, size]` from query, key and value states `[n, heads, size]`.

    `needs_mask`: whether `attend` is the model's own, to which nothing but queries, keys and a mask can be given.
    """
    window = kwargs.get("sliding_window")
    kwargs.pop("is_causal", None)
    query, key, value = states
    shared_heads = key.shape[1]
    groups = query.shape[1] // shared_heads
    asks_prefix_once = not needs_mask and window is None and _can_ask_prefix_once(*states, **kwargs)

    def attend_rows(block: AttentionBlock, rows: range, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        keys, values = (_with_prefix(*block.keys_of(gathered, rows)) for gathered in (k, v))
        queries = block.queries_of(q, rows)
        is_causal = block.is_causal and window is None and not needs_mask
        if needs_mask or is_causal:
            mask = None if is_causal else block.mask(window, rows, q)
            output, _ = attend(module, queries.transpose(1, 2), keys, values, mask, is_causal=is_causal, **kwargs)
            return output.flatten(0, 1)
        mask, dropout = block.mask(window, rows, q, groups), kwargs.get("dropout", 0.0)
        heads = grouped(queries, shared_heads)
        output = scaled_dot_product_attention(heads, keys, values, mask, dropout, scale=kwargs.get("scaling"))
        return ungrouped(output, block.queries).flatten(0, 1)

    def ask_prefix_once(block: AttentionBlock, rows: range, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        (prefix_keys, keys), (prefix_values, values) = block.keys_of(k, rows), block.keys_of(v, rows)
        mask = block.mask(None, rows, q, groups, first=block.prefix)
        prefix, rest, scaling = (prefix_keys, prefix_values), (keys, values), kwargs.get("scaling")
        return attend_to_prefix_and_rest(block.queries_of(q, rows), prefix, rest, mask, scaling).flatten(0, 1)

    queries = torch.split(query.index_select(0, plan.query_places), plan.query_counts)
    keys = torch.split(key.index_select(0, plan.key_places), plan.key_counts)
    values = torch.split(value.index_select(0, plan.key_places), plan.key_counts)
    outputs = []
    for block, *gathered in zip(plan.blocks, queries, keys, values, strict=True):
        if asks_prefix_once and block.copies_much:
            run = ask_prefix_once
        else:
            run = _again_in_backward(attend_rows, kwargs) if block.repeats_much else attend_rows
        outputs += [run(block, rows, *gathered) for rows in block.parts]
    return torch.cat(outputs).index_select(0, plan.output_places)[None]


def _can_ask_prefix_once(query: Tensor, key: Tensor, value: Tensor, dropout: float = 0.0, **_: Any) -> bool:
    """Whether `prefix_attention.py` has an operator for these states, `[n, heads, size]`."""
    return query.device.type == "cpu" and not dropout and key.shape == value.shape and has_operator()


def _with_prefix(prefix: Tensor, rest: Tensor) -> Tensor:
    """`[rows, heads, prefix + rest, size]`: the prefix is repeated for each row, and its gradient summed."""
    if len(prefix):
        rest = torch.cat([prefix.expand(len(rest), *prefix.shape), rest], dim=1)
    return rest.transpose(1, 2)


def _again_in_backward(run: Callable[..., Tensor], kwargs: Mapping[str, Any]) -> Callable[..., Tensor]:
    """`run`, of which autograd keeps the arguments only."""
    if not torch.is_grad_enabled():
        return run
    return partial(checkpoint, run, use_reentrant=False, preserve_rng_state=bool(kwargs.get("dropout")))


def _tokens(states: Tensor) -> Tensor:
    """`[n, heads, size]` from the one row `[1, heads, n, size]`."""
    return states.squeeze(0).transpose(0, 1)


def _own_eager(module: torch.nn.Module) -> AttentionCall:
    """The plain attention of the module's own model file, which knows its soft caps and sinks."""
    eager: AttentionCall = sys.modules[type(module).__module__].eager_attention_forward
    return eager


for _name in _INNER:
    ALL_ATTENTION_FUNCTIONS.register(_PREFIX + _name, _attention(_name))
    ALL_MASK_ATTENTION_FUNCTIONS.register(_PREFIX + _name, ALL_MASK_ATTENTION_FUNCTIONS[_name])
