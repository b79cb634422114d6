"""The local sampler against transformers' `generate`, on several architectures."""

import pytest
import torch

from smalt.policy.local_sampler import LocalSampler
from smalt.policy.sampling import SampleRequest, SamplerSettings, SamplingSettings
from tests.policy.models import ARCHITECTURES, ENDS, tiny_policy

PROMPTS = [(5, 9, 31, 77, 8, 12, 40), (60,), tuple(range(20, 50)), (17, 17, 23), tuple(range(60, 75))]


def generated(policy, prompt, most, **options):
    """What `generate` appends to one prompt; rows are cut behind the stop token."""
    ids = torch.tensor([prompt])
    with torch.no_grad():
        rows = policy.model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=most, **options)
    found = []
    for row in rows[:, len(prompt) :].tolist():
        length = next((place + 1 for place, token in enumerate(row) if token in ENDS), len(row))
        found.append(tuple(row[:length]))
    return found


@pytest.mark.parametrize("batch_tokens", [1 << 17, 110])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_greedy_takes_the_same_tokens(architecture, batch_tokens):
    policy = tiny_policy(architecture)
    requests = [SampleRequest(prompt, count) for prompt, count in zip(PROMPTS, (1, 2, 1, 3, 1), strict=True)]
    results = LocalSampler(policy, SamplerSettings(batch_tokens=batch_tokens)).sample(
        requests, SamplingSettings(temperature=0, max_new_tokens=24), 0
    )
    for request, completions in zip(requests, results, strict=True):
        expected = generated(policy, request.prompt_ids, 24, do_sample=False)
        assert [completion.ids for completion in completions] == expected * request.count
    assert len({len(completions[0].ids) for completions in results}) > 1


@pytest.mark.parametrize("options", [{}, {"temperature": 0.7, "top_p": 0.8}])
def test_whole_completions_come_as_often(options):
    """Two samples of completions of up to three tokens, compared by a chi-square statistic of two rows."""
    policy = tiny_policy("llama", vocab_size=6)
    prompt, draws = (5, 1, 4), 2000
    settings = SamplingSettings(max_new_tokens=3, **options)
    # A budget that few rows fit into: most take the place of others.
    sampler = LocalSampler(policy, SamplerSettings(batch_tokens=400))
    ours = [completion.ids for completion in sampler.sample([SampleRequest(prompt, draws)], settings, 0)[0]]
    torch.manual_seed(0)
    theirs = generated(
        policy,
        prompt,
        3,
        do_sample=True,
        num_return_sequences=draws,
        temperature=settings.temperature,
        top_p=settings.top_p,
        top_k=0,
    )
    kinds = sorted({*ours, *theirs})
    counts = torch.tensor([[rows.count(kind) for kind in kinds] for rows in (ours, theirs)]).double()
    common = counts[:, counts.sum(0) >= 10]
    common = torch.cat([common, draws - common.sum(1, keepdim=True)], dim=1)
    common = common[:, common.sum(0) > 0]
    statistic = ((common[0] - common[1]) ** 2 / common.sum(0)).sum().item()
    freedom = common.shape[1] - 1
    assert freedom > 10
    # Wilson and Hilferty's approximation of the chi-square quantile that is passed once in ten thousand.
    assert statistic < freedom * (1 - 2 / (9 * freedom) + 3.72 * (2 / (9 * freedom)) ** 0.5) ** 3
