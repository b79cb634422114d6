"""Decoding for models with sliding windows or recurrent states: all rows of a batch stand at the same column.

Their caches forget tokens or fold them into a state, in the order of the columns. So prompts are padded at the left,
are prefilled once however many completions they get, and rows that end leave, but none takes their place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

from smalt.policy.caching import cache_argument
from smalt.policy.drawing import draw
from smalt.policy.loading import Policy
from smalt.policy.padding import left_padded
from smalt.policy.sampling import Completion, SampleRequest, SamplingSettings
from smalt.policy.work import SamplingWork

# Rows that ended stay in the batch until this share of it has: shrinking the cache copies all of it.
_SHRINK_AT = 0.25


def aligned_batches(
    requests: Sequence[SampleRequest], settings: SamplingSettings, batch_tokens: int
) -> Iterator[list[int]]:
    """Places of requests, similar lengths together, within the token budget (one request at least)."""
    batch: list[int] = []
    rows = 0
    for place in sorted(range(len(requests)), key=lambda i: (len(requests[i].prompt_ids), i)):
        request = requests[place]
        longest = len(request.prompt_ids) + settings.max_new_tokens
        if batch and (rows + request.count) * longest > batch_tokens:
            yield batch
            batch, rows = [], 0
        batch.append(place)
        rows += request.count
    if batch:
        yield batch


class AlignedDecoding:
    """One batch being decoded, token by token."""

    def __init__(
        self,
        policy: Policy,
        requests: Sequence[SampleRequest],
        settings: SamplingSettings,
        generator: torch.Generator,
        work: SamplingWork,
    ) -> None:
        """Nothing decoded yet."""
        self.policy = policy
        self.requests = requests
        self.settings = settings
        self.generator = generator
        self.work = work
        device = policy.device
        self.stop_ids = torch.tensor(sorted(policy.stop_ids), dtype=torch.long, device=device)
        counts = torch.tensor([request.count for request in requests], device=device)
        self.request_of_row = torch.arange(len(requests), device=device).repeat_interleave(counts)
        rows = len(self.request_of_row)
        self.ids = torch.zeros(rows, settings.max_new_tokens, dtype=torch.long, device=device)
        self.logprobs = torch.zeros(rows, settings.max_new_tokens, device=device)
        self.counts = torch.zeros(rows, dtype=torch.long, device=device)

    def run(self) -> list[list[Completion]]:
        """Decode until every row ended."""
        logits, cache, mask = self._prefill()
        live = torch.arange(len(self.ids), device=self.policy.device)  # row of each place in the batch
        alive = torch.ones_like(live, dtype=torch.bool)
        for step in range(self.settings.max_new_tokens):
            tokens, logprobs = draw(logits, self.settings, self.generator)
            self.ids[live, step], self.logprobs[live, step] = tokens, logprobs
            self.counts[live] += alive
            alive &= ~torch.isin(tokens, self.stop_ids)
            if not alive.any() or step + 1 == self.settings.max_new_tokens:
                break
            if (~alive).float().mean() >= _SHRINK_AT:
                kept = alive.nonzero().squeeze(1)
                cache.reorder_cache(kept)
                tokens, mask, live, alive = tokens[kept], mask[kept], live[kept], alive[kept]
            mask = torch.cat([mask, mask.new_ones(len(mask), 1)], dim=1)
            output = self.policy.model(
                input_ids=tokens[:, None],
                attention_mask=mask,
                position_ids=mask.sum(1, keepdim=True) - 1,
                **cache_argument(self.policy.model, cache),
            )
            logits = output.logits[:, -1]
        return self._completions()

    def _prefill(self) -> tuple[Tensor, Any, Tensor]:
        """Run each prompt once, then repeat its cache for its completions.

        Returns logits `[rows, vocabulary]` of the first new token, the cache, the mask `[rows, longest]`.
        """
        ids, mask = left_padded([r.prompt_ids for r in self.requests], self.policy.device)
        self.work.prefilled_tokens += sum(len(request.prompt_ids) for request in self.requests)
        cache = DynamicCache(config=self.policy.model.config)
        output = self.policy.model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=(mask.cumsum(1) - 1).clamp(min=0),
            **cache_argument(self.policy.model, cache),
            logits_to_keep=1,
        )
        cache.reorder_cache(self.request_of_row)
        return output.logits[self.request_of_row, -1], cache, mask[self.request_of_row]

    def _completions(self) -> list[list[Completion]]:
        grouped: list[list[Completion]] = [[] for _ in self.requests]
        columns = (self.request_of_row.tolist(), self.counts.tolist(), self.ids.tolist(), self.logprobs.tolist())
        for place, count, ids, logprobs in zip(*columns, strict=True):
            is_finished = ids[count - 1] in self.policy.stop_ids
            grouped[place].append(Completion(tuple(ids[:count]), tuple(logprobs[:count]), is_finished))
            self.work.sampled_tokens += count
        return grouped
