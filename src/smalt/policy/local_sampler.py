"""The sampler that runs in this process, on a transformers model.

Prompts are prefilled once however many completions they get; rows leave the batch when they end. It leaves out
continuous batching and reuse of an earlier turn's cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from smalt.policy.caching import cache_argument, sampling_cache
from smalt.policy.loading import Policy
from smalt.policy.sampling import Completion, SampleRequest, SamplingSettings

# Rows that ended stay in the batch until this share of it has: shrinking the cache copies all of it.
_SHRINK_AT = 0.25


@dataclass
class LocalSampler:
    """Samples with `policy`, at most `batch_tokens` tokens (rows x longest row) in the cache at a time."""

    policy: Policy
    batch_tokens: int = 1 << 17

    def fits(self, prompt_ids: Sequence[int], settings: SamplingSettings) -> bool:
        """Whether the prompt leaves room in the model's context for a completion."""
        return len(prompt_ids) + settings.max_new_tokens <= self.policy.context_length

    @torch.inference_mode()
    def sample(
        self, requests: Sequence[SampleRequest], settings: SamplingSettings, seed: int
    ) -> list[list[Completion]]:
        """For each request its completions, in order."""
        generator = torch.Generator(device=self.policy.device).manual_seed(seed % (1 << 63))
        results: list[list[Completion]] = [[] for _ in requests]
        for batch in self._batches(requests, settings):
            decoding = _Decoding(self.policy, [requests[i] for i in batch], settings, generator)
            for place, completions in zip(batch, decoding.run(), strict=True):
                results[place] = completions
        return results

    def _batches(self, requests: Sequence[SampleRequest], settings: SamplingSettings) -> Iterator[list[int]]:
        """Places of requests, similar lengths together, within the token budget (one request at least)."""
        batch: list[int] = []
        rows = 0
        for place in sorted(range(len(requests)), key=lambda i: (len(requests[i].prompt_ids), i)):
            request = requests[place]
            longest = len(request.prompt_ids) + settings.max_new_tokens
            if batch and (rows + request.count) * longest > self.batch_tokens:
                yield batch
                batch, rows = [], 0
            batch.append(place)
            rows += request.count
        if batch:
            yield batch


class _Decoding:
    """One batch being decoded, token by token."""

    def __init__(
        self,
        policy: Policy,
        requests: Sequence[SampleRequest],
        settings: SamplingSettings,
        generator: torch.Generator,
    ) -> None:
        self.policy = policy
        self.requests = requests
        self.settings = settings
        self.generator = generator
        self.stop_ids = torch.tensor(sorted(policy.stop_ids), device=policy.device)
        counts = torch.tensor([request.count for request in requests], device=policy.device)
        self.request_of_row = torch.arange(len(requests), device=policy.device).repeat_interleave(counts)
        rows = len(self.request_of_row)
        self.ids: list[list[int]] = [[] for _ in range(rows)]
        self.logprobs: list[list[float]] = [[] for _ in range(rows)]
        self.finished = [False] * rows

    def run(self) -> list[list[Completion]]:
        """Decode until every row ended."""
        logits, cache, mask = self._prefill()
        live = torch.arange(len(self.ids), device=self.policy.device)  # row of each place in the batch
        alive = torch.ones_like(live, dtype=torch.bool)
        for step in range(self.settings.max_new_tokens):
            tokens, logprobs = draw(logits, self.settings, self.generator)
            alive &= self._record(live, alive, tokens, logprobs)
            if not alive.any() or step + 1 == self.settings.max_new_tokens:
                break
            if (~alive).float().mean() >= _SHRINK_AT:
                kept = alive.nonzero().squeeze(1)
                cache.batch_select_indices(kept)
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
        cache = sampling_cache(self.policy.model.config)
        output = self.policy.model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=(mask.cumsum(1) - 1).clamp(min=0),
            **cache_argument(self.policy.model, cache),
            logits_to_keep=1,
        )
        cache.batch_select_indices(self.request_of_row)
        return output.logits[self.request_of_row, -1], cache, mask[self.request_of_row]

    def _record(self, live: Tensor, alive: Tensor, tokens: Tensor, logprobs: Tensor) -> Tensor:
        """Append the drawn tokens to their rows; returns which places go on."""
        ended = torch.isin(tokens, self.stop_ids)
        columns = (live.tolist(), alive.tolist(), tokens.tolist(), logprobs.tolist(), ended.tolist())
        for row, is_alive, token, logprob, has_ended in zip(*columns, strict=True):
            if is_alive:
                self.ids[row].append(token)
                self.logprobs[row].append(logprob)
                self.finished[row] = has_ended
        return ~ended

    def _completions(self) -> list[list[Completion]]:
        grouped: list[list[Completion]] = [[] for _ in self.requests]
        for row, place in enumerate(self.request_of_row.tolist()):
            completion = Completion(tuple(self.ids[row]), tuple(self.logprobs[row]), self.finished[row])
            grouped[place].append(completion)
        return grouped


def draw(logits: Tensor, settings: SamplingSettings, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw one token a row from `logits` `[rows, vocabulary]`; tokens and their log-probabilities, `[rows]`."""
    logits = logits.float()
    if settings.temperature == 0:
        tokens = logits.argmax(-1)
        return tokens, logits.log_softmax(-1).gather(1, tokens[:, None]).squeeze(1)
    logprobs = (logits / settings.temperature).log_softmax(-1)
    if settings.top_p < 1:
        logprobs = nucleus(logprobs, settings.top_p)
    tokens = torch.multinomial(logprobs.exp(), 1, generator=generator)
    return tokens.squeeze(1), logprobs.gather(1, tokens).squeeze(1)


def nucleus(logprobs: Tensor, top_p: float) -> Tensor:
    """Renormalised log-probabilities over the smallest set of tokens whose mass reaches `top_p`."""
    ordered, places = logprobs.sort(-1, descending=True)
    mass_before = ordered.exp().cumsum(-1) - ordered.exp()
    ordered = ordered.masked_fill(mass_before >= top_p, -torch.inf)
    return torch.empty_like(logprobs).scatter_(-1, places, ordered).log_softmax(-1)


def left_padded(rows: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor]:
    """Ids and mask, `[rows, longest]`, each row ending at the right edge. Padding is id 0 under mask 0."""
    longest = max(map(len, rows))
    ids = torch.zeros(len(rows), longest, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for place, row in enumerate(rows):
        ids[place, longest - len(row) :] = torch.tensor(row)
        mask[place, longest - len(row) :] = 1
    return ids.to(device), mask.to(device)
