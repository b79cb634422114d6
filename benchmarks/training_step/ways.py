"""Ways to compute one step's loss and gradient in this process, all on the same model, rows and loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

from benchmarks.training_step.workload import Case
from smalt.policy.caching import cache_argument
from smalt.policy.layouts import Layout, Row, packed_batches, padded_batches
from smalt.policy.logprobs import score_layout
from smalt.policy.trie import PrefixTrie
from smalt.training.loss import LossInputs, policy_loss
from smalt.training.settings import LossSettings

LOSS = LossSettings(kl_coefficient=0)

Scored = tuple[Tensor, Tensor]
"""Log-probabilities and mask, `[rows, longest completion]`."""
Way = Callable[[Any, Sequence[Row]], Scored]


def step(model: Any, way: str, case: Case, budget: int) -> float:
    """Forward and backward of the clipped loss, a mean over tokens; the gradient stays in the model."""
    score, batches = WAYS[way]
    total = 0.0
    for batch in batches(case.rows, budget):
        rows = [case.rows[place] for place in batch]
        logprobs, mask = score(model, rows)
        inputs = LossInputs(
            logprobs=logprobs,
            old_logprobs=logprobs.detach(),
            reference_logprobs=None,
            advantages=logprobs.new_tensor([case.advantages[place] for place in batch]),
            mask=mask,
        )
        loss = policy_loss(inputs, LOSS).loss / case.scored
        torch.autograd.backward(loss)
        total += loss.item()
    return total


def _packed(model: Any, rows: Sequence[Row]) -> Scored:
    scored = score_layout(model, rows, Layout.packed(rows, model.device), 1.0)
    return scored.logprobs, scored.mask


def _padded(model: Any, rows: Sequence[Row]) -> Scored:
    scored = score_layout(model, rows, Layout.padded(rows, model.device), 1.0)
    return scored.logprobs, scored.mask


def _one_mask(model: Any, rows: Sequence[Row]) -> Scored:
    """The packed row with a single mask over all of it, by SDPA."""
    trie = PrefixTrie.of([row.input_ids for row in rows])
    sees = torch.zeros(len(trie.ids), len(trie.ids), dtype=torch.bool)
    for path in trie.paths:
        places = torch.from_numpy(path)
        sees[places[:, None], places] |= torch.ones(len(path), len(path), dtype=torch.bool).tril()
    inputs = {
        "input_ids": torch.from_numpy(trie.ids)[None].to(model.device),
        "position_ids": torch.from_numpy(trie.depths)[None].to(model.device),
        "attention_mask": sees[None, None].to(model.device),
    }
    scored = score_layout(model, rows, Layout(inputs, trie.paths), 1.0)
    return scored.logprobs, scored.mask


def _through_cache(model: Any, rows: Sequence[Row]) -> Scored:
    """Each prompt once with a cache that is repeated for its completions; for groups of one prompt, equal lengths."""
    prompt, counts = rows[0].prompt_ids, len(rows)
    if any(row.prompt_ids != prompt for row in rows):
        raise ValueError("the cached way takes completions of one prompt")
    cache = DynamicCache(config=model.config)
    ids = torch.tensor([row.completion_ids for row in rows], device=model.device)
    prompts = torch.tensor([prompt], device=model.device)
    first = model(input_ids=prompts, **cache_argument(model, cache), logits_to_keep=1).logits
    cache.batch_repeat_interleave(counts)
    positions = len(prompt) + torch.arange(ids.shape[1] - 1, device=model.device)[None]
    rest = model(input_ids=ids[:, :-1], position_ids=positions, **cache_argument(model, cache)).logits
    logits = torch.cat([first.expand(counts, -1, -1), rest], dim=1).float()
    return logits.log_softmax(-1).gather(-1, ids[..., None]).squeeze(-1), torch.ones_like(ids)


def _whole(rows: Sequence[Row], budget: int) -> list[list[int]]:
    return [list(range(len(rows)))]


WAYS: dict[str, tuple[Way, Callable[[Sequence[Row], int], list[list[int]]]]] = {
    "packed": (_packed, packed_batches),
    "padded": (_padded, padded_batches),
    "one mask": (_one_mask, packed_batches),
    "cache": (_through_cache, _whole),
}
"""packed is what the learner does; padded its fallback; the other two are the ways not taken."""
