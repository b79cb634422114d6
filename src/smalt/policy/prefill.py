"""Prefill: run the tokens of several prompts that are not in memory yet, in one forward pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

from smalt.policy.caching import cache_argument
from smalt.policy.padding import left_padded
from smalt.policy.prefix_memory import Ids, Segment, fill_cache


@dataclass(frozen=True, eq=False)
class PrefilledPrompt:
    """A prompt's states, as one row of a cache that it shares with the other prompts of its prefill."""

    logits: Tensor
    """Of the first token after it, `[vocabulary]`."""
    layers: Sequence[Any]
    row: int
    known: int
    """Tokens that were in memory; they are in the row's first columns."""
    new: int
    """Tokens that were computed; they are in the row's last columns."""

    @property
    def length(self) -> int:
        """Tokens of the prompt."""
        return self.known + self.new

    def pieces(self) -> Iterator[tuple[slice, slice]]:
        """Pairs of columns: of the prompt, and where they are in the row."""
        if self.known:
            yield slice(0, self.known), slice(0, self.known)
        yield slice(self.known, self.length), slice(-self.new, None)

    def new_segment(self, parent: Segment | None) -> Segment:
        """A copy of the computed states, to be kept."""
        columns = slice(-self.new, None)
        states = [
            (layer.keys[self.row, :, columns].clone(), layer.values[self.row, :, columns].clone())
            for layer in self.layers
        ]
        return Segment(self.known, states, parent)


def prefill(model: Any, prompts: Sequence[Ids], priors: Sequence[Segment | None]) -> list[PrefilledPrompt]:
    """Compute the prompts, each from where its prior segment ends (one token at least is left to compute).

    Rows stand as `[prior, padded at the right | new tokens, padded at the left]`: the mask hides the hole between.
    """
    known = [prior.end if prior else 0 for prior in priors]
    tails = [prompt[begin:] for prompt, begin in zip(prompts, known, strict=True)]
    ids, mask = left_padded(tails, model.device)
    begins = torch.tensor(known, device=model.device)[:, None]
    positions = begins + (mask.cumsum(1) - 1).clamp(min=0)
    cache = DynamicCache(config=model.config)
    if longest := max(known):
        fill_cache(cache, priors, longest)
        prior_mask = (torch.arange(longest, device=model.device) < begins).to(mask.dtype)
        mask = torch.cat([prior_mask, mask], dim=1)
    output = model(
        input_ids=ids,
        attention_mask=mask,
        position_ids=positions,
        **cache_argument(model, cache),
        logits_to_keep=1,
    )
    return [
        PrefilledPrompt(output.logits[row, -1], cache.layers, row, begin, len(tail))
        for row, (begin, tail) in enumerate(zip(known, tails, strict=True))
    ]
