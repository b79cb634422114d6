"""Log-probabilities of sampled completions, with gradient, every token that rows share computed once.

Where the model can (`capabilities.py` decides, once per model), rows go in as a packed prefix trie; else padded to
the longest. Either way logits exist only for completion tokens, and a chunk at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from smalt.policy.capabilities import capabilities_of, head_logits, last_hidden
from smalt.policy.layouts import Layout, Row, packed_batches, padded_batches
from smalt.policy.token_scores import score_tokens
from smalt.policy.trie import Places


@dataclass(frozen=True)
class TokenLogprobs:
    """Per completion token; one row per completion in the order given, padded at the right."""

    logprobs: Tensor
    """`[rows, longest completion]` in float32, 0 where `mask` is 0; differentiable."""
    entropy: Tensor
    """`[rows, longest completion]` in nats, without gradient, 0 where `mask` is 0."""
    mask: Tensor
    """`[rows, longest completion]`, 1 on completion tokens."""
    computed_tokens: int
    """Tokens that went through the model: the distinct ones, or with padding where it cannot share."""


def row_logprobs(model: Any, rows: Sequence[Row], temperature: float) -> TokenLogprobs:
    """Score every completion token under softmax(logits / temperature).

    All rows run in one batch: `micro_batches` cuts them so that it fits into memory. Packed or padded, the result and
    its gradient are the same up to rounding.
    """
    lay_out = Layout.packed if capabilities_of(model).packs_tries else Layout.padded
    return score_layout(model, rows, lay_out(rows, model.device), temperature)


def micro_batches(model: Any, rows: Sequence[Row], budget: int) -> list[list[int]]:
    """Numbers of rows that go through the model together, at most `budget` computed tokens at a time."""
    batches = packed_batches if capabilities_of(model).packs_tries else padded_batches
    return batches(rows, budget)


def score_layout(model: Any, rows: Sequence[Row], layout: Layout, temperature: float) -> TokenLogprobs:
    """`row_logprobs` of rows that were laid out already."""
    tokens, device = _CompletionTokens.of(rows, layout.paths), model.device
    where, targets, index = (torch.from_numpy(p).to(device) for p in (tokens.places, tokens.targets, tokens.index))
    if capabilities_of(model).separates_head:
        states, logits_of = last_hidden(model, **layout.inputs), head_logits(model)
    else:
        states, logits_of = model(**layout.inputs, use_cache=False).logits, _unchanged
    states = states.flatten(0, 1).index_select(0, where)
    vocabulary = model.config.get_text_config().vocab_size
    mask = torch.from_numpy(tokens.mask).to(device)
    logprobs, entropy = score_tokens(logits_of, states, targets, vocabulary, temperature)
    return TokenLogprobs(
        logprobs=_filled(logprobs, index, mask),
        entropy=_filled(entropy, index, mask),
        mask=mask.long(),
        computed_tokens=layout.tokens,
    )


@dataclass(frozen=True)
class _CompletionTokens:
    """Which states predict which tokens; what several rows have alike is there once."""

    places: Places
    """`[scored]` place of the state that predicts each token."""
    targets: Places
    """`[scored]` the tokens."""
    index: Places
    """`[completion tokens of all rows]` number of each among the scored."""
    mask: np.ndarray[Any, np.dtype[np.bool_]]
    """`[rows, longest completion]`."""

    @classmethod
    def of(cls, rows: Sequence[Row], paths: Sequence[Places]) -> _CompletionTokens:
        places = np.concatenate([path[len(row.prompt_ids) - 1 :] for row, path in zip(rows, paths, strict=True)])
        targets = np.concatenate([np.asarray(row.completion_ids, np.int64) for row in rows])
        pairs, index = np.unique(np.stack([places, targets]), axis=1, return_inverse=True)
        lengths = np.asarray([len(row.completion_ids) for row in rows])
        mask = np.arange(lengths.max()) < lengths[:, None]
        return cls(np.ascontiguousarray(pairs[0]), np.ascontiguousarray(pairs[1]), index.reshape(-1), mask)


def _filled(values: Tensor, index: Tensor, mask: Tensor) -> Tensor:
    """`values[index]` where the mask is, 0 elsewhere."""
    return torch.zeros(mask.shape, device=values.device).masked_scatter(mask, values.index_select(0, index))


def _unchanged(states: Tensor) -> Tensor:
    return states
