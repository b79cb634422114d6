"""Log-probabilities of sampled completions, with gradient, each prompt computed once for its whole group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from smalt.policy.caching import cache_argument
from smalt.policy.local_sampler import left_padded


@dataclass(frozen=True)
class CompletionGroup:
    """A prompt and the completions sampled from it, as ids."""

    prompt_ids: Sequence[int]
    completions: Sequence[Sequence[int]]


@dataclass(frozen=True)
class TokenLogprobs:
    """Per completion token; rows are the groups' completions in order, padded at the right."""

    logprobs: Tensor
    """`[rows, longest completion]`, 0 where `mask` is 0; differentiable."""
    entropy: Tensor
    """`[rows, longest completion]` in nats, without gradient, 0 where `mask` is 0."""
    mask: Tensor
    """`[rows, longest completion]`, 1 on completion tokens."""


def completion_logprobs(model: Any, groups: Sequence[CompletionGroup], temperature: float) -> TokenLogprobs:
    """Score every completion token under softmax(logits / temperature).

    The prompts run once with a cache that is then repeated for their completions; gradients flow through it. The
    result equals that of padded prompt + completion rows up to rounding. All groups run in one batch: the caller
    keeps it within memory.
    """
    from transformers import DynamicCache

    device = model.device
    prompt_ids, prompt_mask = left_padded([group.prompt_ids for group in groups], device)
    counts = torch.tensor([len(group.completions) for group in groups], device=device)
    group_of_row = torch.arange(len(groups), device=device).repeat_interleave(counts)
    cache = DynamicCache(config=model.config)
    prefill = model(
        input_ids=prompt_ids,
        attention_mask=prompt_mask,
        position_ids=(prompt_mask.cumsum(1) - 1).clamp(min=0),
        **cache_argument(model, cache),
        logits_to_keep=1,
    )
    cache.batch_select_indices(group_of_row)
    ids, mask = _right_padded([row for group in groups for row in group.completions], device)
    logits = prefill.logits[group_of_row]
    if ids.shape[1] > 1:  # the prompts alone say everything about first tokens
        rest = model(
            input_ids=ids[:, :-1],
            attention_mask=torch.cat([prompt_mask[group_of_row], mask[:, :-1]], dim=1),
            position_ids=prompt_mask.sum(1)[group_of_row, None] + torch.arange(ids.shape[1] - 1, device=device),
            **cache_argument(model, cache),
        )
        logits = torch.cat([logits, rest.logits], dim=1)
    return _score(logits, ids, mask, temperature)


def _score(logits: Tensor, ids: Tensor, mask: Tensor, temperature: float) -> TokenLogprobs:
    """Log-probabilities and entropies of `ids` under `logits`, both `[rows, tokens(, vocabulary)]`."""
    logprobs = (logits.float() / (temperature or 1.0)).log_softmax(-1)
    with torch.no_grad():
        entropy = -(logprobs.exp() * logprobs).sum(-1)
    taken = logprobs.gather(-1, ids[..., None]).squeeze(-1)
    # Multiplying by the mask would turn an infinite log-probability under padding into NaN.
    return TokenLogprobs(taken.where(mask.bool(), 0.0), entropy.where(mask.bool(), 0.0), mask)


def _right_padded(rows: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor]:
    longest = max(map(len, rows))
    ids = torch.zeros(len(rows), longest, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = torch.tensor(row)
        mask[place, : len(row)] = 1
    return ids.to(device), mask.to(device)
