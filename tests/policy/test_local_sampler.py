"""The local sampler against plain forward passes on the whole of prompt and completion."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smalt.policy.local_sampler import LocalSampler
from smalt.policy.sampling import SampleRequest, SamplerSettings, SamplingSettings
from tests.policy.models import tiny_policy

PROMPTS = [(5, 9, 301, 77, 8, 12, 40), (600,), tuple(range(100, 160)), (17, 17, 23)]
GREEDY = SamplingSettings(temperature=0, max_new_tokens=12)


def requests(*counts):
    return [SampleRequest(prompt, count) for prompt, count in zip(PROMPTS, counts, strict=False)]


def plain_logits(policy, prompt, completion):
    with torch.no_grad():
        logits = policy.model(input_ids=torch.tensor([[*prompt, *completion]]), use_cache=False).logits
    return logits[0, len(prompt) - 1 : -1]


def plain_logprobs(policy, prompt, completion, settings):
    """What the definition says, computed the slow way."""
    logits = plain_logits(policy, prompt, completion)
    probabilities = (logits / (settings.temperature or 1)).softmax(-1)
    for row in probabilities if settings.temperature else ():
        mass, kept = 0.0, torch.zeros_like(row, dtype=torch.bool)
        for token in row.argsort(descending=True):
            if mass >= settings.top_p:
                break
            mass += row[token].item()
            kept[token] = True
        row[~kept] = 0
        row /= row.sum()
    return probabilities.log().gather(1, torch.tensor(completion)[:, None]).squeeze(1)


@pytest.fixture
def sampler(policy):
    return LocalSampler(policy)


@pytest.fixture
def ending(policy):
    """A sampler whose model ends about one reply in four at each step."""
    end = sorted(policy.stop_ids)[0]

    def encourage(module, args, output):
        output.logits[..., end] = output.logits.logsumexp(-1) - 1.0

    handle = policy.model.register_forward_hook(encourage)
    yield LocalSampler(policy)
    handle.remove()


@pytest.mark.parametrize(
    "settings",
    [
        SamplingSettings(max_new_tokens=10),
        SamplingSettings(temperature=0.6, max_new_tokens=10),
        SamplingSettings(temperature=1.5, top_p=0.8, max_new_tokens=10),
        SamplingSettings(temperature=0.5, top_p=0.3, max_new_tokens=10),
        GREEDY,
    ],
)
def test_log_probabilities_are_those_of_the_distribution_drawn_from(sampler, settings):
    for request, completions in zip(requests(2, 1, 3), sampler.sample(requests(2, 1, 3), settings, 0), strict=True):
        for completion in completions:
            expected = plain_logprobs(sampler.policy, request.prompt_ids, completion.ids, settings)
            assert torch.allclose(torch.tensor(completion.logprobs), expected, rtol=1e-3, atol=1e-4)


def test_log_probabilities_hold_after_other_rows_have_left_the_batch(ending):
    settings = SamplingSettings(max_new_tokens=20)
    asked = requests(6, 6, 6, 6)
    lengths = set()
    for request, completions in zip(asked, ending.sample(asked, settings, 1), strict=True):
        for completion in completions:
            lengths.add(len(completion.ids))
            expected = plain_logprobs(ending.policy, request.prompt_ids, completion.ids, settings)
            assert torch.allclose(torch.tensor(completion.logprobs), expected, rtol=1e-3, atol=1e-4)
    assert len(lengths) > 3


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    prompts=st.lists(st.tuples(st.integers(1, 40), st.integers(0, 5)), min_size=1, max_size=5),
    batch_tokens=st.sampled_from([1, 50, 120, 300, 1000]),
    seed=st.integers(0, 99),
)
def test_every_completion_is_of_its_own_prompt_whoever_shared_the_batch(ending, prompts, batch_tokens, seed):
    sampler = LocalSampler(ending.policy, SamplerSettings(batch_tokens=batch_tokens))
    drawn = SamplingSettings(max_new_tokens=12)
    asked = [SampleRequest(tuple(range(place, place + length)), count) for place, (length, count) in enumerate(prompts)]
    results = sampler.sample(asked, drawn, seed)
    assert results == sampler.sample(asked, drawn, seed)
    assert [len(completions) for completions in results] == [count for _, count in prompts]
    for request, completions in zip(asked, results, strict=True):
        for completion in completions:
            expected = plain_logprobs(ending.policy, request.prompt_ids, completion.ids, drawn)
            assert torch.allclose(torch.tensor(completion.logprobs), expected, rtol=1e-3, atol=1e-4)


def test_a_reply_ends_with_the_stop_token_or_at_the_limit(ending):
    completions = ending.sample([SampleRequest(PROMPTS[0], 60)], SamplingSettings(max_new_tokens=4), 0)[0]
    stops = ending.policy.stop_ids
    assert {completion.is_finished for completion in completions} == {True, False}
    for completion in completions:
        assert len(completion.ids) == len(completion.logprobs) <= 4
        assert completion.is_finished == (completion.ids[-1] in stops)
        assert completion.is_finished or len(completion.ids) == 4
        assert not stops.intersection(completion.ids[:-1])


def test_the_same_seed_gives_the_same_samples_and_another_seed_others(sampler):
    settings = SamplingSettings(max_new_tokens=8)
    first = sampler.sample(requests(2, 2), settings, 7)
    torch.manual_seed(99)
    assert sampler.sample(requests(2, 2), settings, 7) == first
    assert sampler.sample(requests(2, 2), settings, 8) != first


@pytest.mark.parametrize("batch_tokens", [1, 150, 1 << 17])
def test_every_completion_is_told_of_once_and_telling_changes_nothing(ending, batch_tokens):
    sampler = LocalSampler(ending.policy, SamplerSettings(batch_tokens=batch_tokens))
    asked, drawn, told = requests(6, 0, 6, 1), SamplingSettings(max_new_tokens=20), []
    results = sampler.sample_and_tell(asked, drawn, 3, lambda *finished: told.append(finished))
    assert results == sampler.sample(asked, drawn, 3)
    assert sorted(told, key=lambda finished: finished[:2]) == [
        (place, number, completion) for place, group in enumerate(results) for number, completion in enumerate(group)
    ]


def test_a_completion_is_told_of_when_it_ends(ending):
    lengths = []
    ending.sample_and_tell(
        requests(12), SamplingSettings(max_new_tokens=20), 0, lambda *finished: lengths.append(len(finished[2].ids))
    )
    assert lengths == sorted(lengths)
    assert lengths[0] < lengths[-1]


def test_fixed_batches_tell_too():
    sampler, told = LocalSampler(tiny_policy("gemma2, sliding windows")), []
    asked = [SampleRequest((5, 9, 31), 3), SampleRequest((60,), 2)]
    results = sampler.sample_and_tell(asked, GREEDY, 0, lambda *finished: told.append(finished))
    assert {finished[:2]: finished[2] for finished in told} == {
        (place, number): completion for place, group in enumerate(results) for number, completion in enumerate(group)
    }
    assert len(told) == 5


def test_a_frozen_sampler_keeps_the_weights_of_its_time(sampler):
    drawn = SamplingSettings(max_new_tokens=8)
    before = sampler.sample(requests(2, 2), drawn, 0)
    for _ in range(2):
        frozen = sampler.frozen()
        with torch.no_grad():
            for weight in sampler.policy.model.parameters():
                weight.add_(torch.randn_like(weight) * 0.1)
        assert frozen.sample(requests(2, 2), drawn, 0) == before
        after = sampler.sample(requests(2, 2), drawn, 0)
        assert after != before
        before = after
    assert frozen.work is sampler.work


def test_any_seed_will_do(sampler):
    settings = SamplingSettings(max_new_tokens=4)
    run_seed = 20_260_101_123_000  # a date and time, which RunSettings accept
    step_seed = (run_seed * 1_000_003 + 5) * 1009
    assert sampler.sample(requests(1), settings, step_seed) == sampler.sample(requests(1), settings, step_seed)


def test_siblings_differ(sampler):
    siblings = sampler.sample(requests(8), SamplingSettings(max_new_tokens=6), 0)[0]
    assert len({completion.ids for completion in siblings}) == 8


def test_prompts_of_different_lengths_do_not_disturb_each_other(sampler):
    together = sampler.sample(requests(1, 1, 1, 1), GREEDY, 0)
    for prompt, completions in zip(PROMPTS, together, strict=True):
        alone = sampler.sample([SampleRequest(prompt)], GREEDY, 0)[0]
        assert [completion.ids for completion in completions] == [completion.ids for completion in alone]
        assert completions[0].logprobs == pytest.approx(alone[0].logprobs, rel=1e-3)


def test_greedy_takes_the_likeliest_token_at_each_step(sampler):
    completion = sampler.sample(requests(1), GREEDY, 0)[0][0]
    assert tuple(plain_logits(sampler.policy, PROMPTS[0], completion.ids).argmax(-1).tolist()) == completion.ids


@pytest.mark.parametrize("batch_tokens", [1, 60, 150])
def test_small_batches_change_nothing_but_memory(sampler, batch_tokens):
    whole = sampler.sample(requests(2, 1, 3, 1), GREEDY, 0)
    split = LocalSampler(sampler.policy, SamplerSettings(batch_tokens=batch_tokens)).sample(
        requests(2, 1, 3, 1), GREEDY, 0
    )
    assert [[c.ids for c in row] for row in split] == [[c.ids for c in row] for row in whole]


def test_results_keep_the_order_and_the_counts_of_the_requests(sampler):
    asked = requests(1, 3, 2, 4)
    results = sampler.sample(asked, GREEDY, 0)
    assert [len(completions) for completions in results] == [1, 3, 2, 4]
    backwards = sampler.sample(asked[::-1], GREEDY, 0)
    assert [[c.ids for c in row] for row in backwards[::-1]] == [[c.ids for c in row] for row in results]


def test_nothing_asked_nothing_sampled(sampler):
    assert sampler.sample([], GREEDY, 0) == []


def test_sampling_leaves_the_callers_randomness_alone(sampler):
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    sampler.sample(requests(1), SamplingSettings(max_new_tokens=3), 5)
    assert torch.equal(torch.rand(1), expected)


def test_a_prompt_fits_when_the_longest_completion_does_too(sampler):
    settings = SamplingSettings(max_new_tokens=48)
    assert sampler.fits((1,) * 2000, settings)
    assert not sampler.fits((1,) * 2001, settings)
