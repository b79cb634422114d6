"""Two ways to sample: our sampler, and `generate(num_return_sequences=G)` in batches within the same budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch

from benchmarks.sampling.workload import END, Workload
from smalt.policy.loading import Policy
from smalt.policy.local_sampler import LocalSampler
from smalt.policy.padding import left_padded
from smalt.policy.sampling import SampleRequest, SamplerSettings, SamplingSettings, sampler_over_turns

Ids = tuple[int, ...]
Turn = list[list[Ids]]
Contender = Callable[[Policy, Workload, int], list[Turn]]
"""From a seed to the completions of each prompt, turn by turn."""


def smalt(policy: Policy, load: Workload, seed: int) -> list[Turn]:
    """Our sampler, remembering the turns of a dialogue; it may keep as many tokens as it may decode."""
    sampler = LocalSampler(policy, SamplerSettings(batch_tokens=load.batch_tokens, kept_tokens=load.batch_tokens))
    settings = SamplingSettings(max_new_tokens=load.max_new_tokens)
    turns: list[Turn] = []
    feedback = load.feedback_ids(seed, policy.model.config.vocab_size)
    prompts, extends, count = load.prompt_ids(seed, policy.model.config.vocab_size), [0] * load.prompts, load.group
    with sampler_over_turns(sampler, load.turns) as turn_sampler:
        for number in range(load.turns):
            requests = [SampleRequest(ids, count, known) for ids, known in zip(prompts, extends, strict=True)]
            sampled = turn_sampler.sample(requests, settings, seed * 1009 + number)
            turns.append([[completion.ids for completion in group] for group in sampled])
            prompts, extends = next_prompts(prompts, turns[-1], feedback)
            count = 1
    return turns


def generate(policy: Policy, load: Workload, seed: int) -> list[Turn]:
    """transformers' `generate`, prompts of similar length together."""
    torch.manual_seed(seed)
    turns: list[Turn] = []
    feedback = load.feedback_ids(seed, policy.model.config.vocab_size)
    prompts, count = load.prompt_ids(seed, policy.model.config.vocab_size), load.group
    for _ in range(load.turns):
        turn: Turn = [[] for _ in prompts]
        for places in _batches(prompts, count, load):
            rows = _generated(policy, [prompts[place] for place in places], count, load.max_new_tokens)
            for number, place in enumerate(places):
                turn[place] = rows[number * count : (number + 1) * count]
        turns.append(turn)
        prompts, _ = next_prompts(prompts, turn, feedback)
        count = 1
    return turns


def greedy_agreement(policy: Policy, load: Workload) -> tuple[int, int]:
    """Likeliest tokens that both contenders choose alike up to the first difference, of how many."""
    prompts = load.prompt_ids(0, policy.model.config.vocab_size)[:4]
    settings = SamplingSettings(temperature=0, max_new_tokens=16)
    ours = LocalSampler(policy).sample([SampleRequest(ids) for ids in prompts], settings, 0)
    theirs = _generated(policy, prompts, 1, 16, is_greedy=True)
    same = 0
    for [completion], other in zip(ours, theirs, strict=True):
        differences = [place for place, (a, b) in enumerate(zip(completion.ids, other, strict=False)) if a != b]
        same += differences[0] if differences else len(other)
    return same, sum(map(len, theirs))


def next_prompts(prompts: Sequence[Ids], turn: Turn, feedback: Ids) -> tuple[list[Ids], list[int]]:
    """The prompts of the next turn, and how many ids of each are the earlier turn."""
    texts = [ids + reply for ids, group in zip(prompts, turn, strict=True) for reply in group]
    return [text + feedback for text in texts], [len(text) for text in texts]


def _batches(prompts: Sequence[Ids], count: int, load: Workload) -> Iterator[list[int]]:
    """Places of prompts by length, as many together as the budget has room for."""
    batch: list[int] = []
    for place in sorted(range(len(prompts)), key=lambda place: len(prompts[place])):
        columns = len(prompts[place]) + load.max_new_tokens
        if batch and (len(batch) + 1) * count * columns > load.batch_tokens:
            yield batch
            batch = []
        batch.append(place)
    yield batch


def _generated(policy: Policy, prompts: Sequence[Ids], count: int, most: int, is_greedy: bool = False) -> list[Ids]:
    """Completions up to their end token, `count` a prompt."""
    ids, mask = left_padded(prompts, policy.device)
    options = {} if is_greedy else {"num_return_sequences": count, "temperature": 1.0, "top_p": 1.0, "top_k": 0}
    with torch.inference_mode():
        rows = policy.model.generate(ids, attention_mask=mask, max_new_tokens=most, do_sample=not is_greedy, **options)
    found = []
    for row in rows[:, ids.shape[1] :].tolist():
        found.append(tuple(row[: row.index(END) + 1] if END in row else row))
    return found
