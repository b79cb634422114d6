"""What a sampler remembers from turn to turn changes the work, not the samples."""

import logging

import pytest
import torch

from smalt.policy import continuous_decoding
from smalt.policy.local_sampler import LocalSampler
from smalt.policy.sampling import SampleRequest, SamplerSettings, SamplingSettings, sampler_over_turns
from tests.policy.models import ARCHITECTURES, KEEPS_EVERY_TOKEN, tiny_policy

PROMPTS = [(5, 9, 31, 77, 8, 12, 40), (60, 61), tuple(range(20, 50))]
FEEDBACK = [(7, 8), (9,), (10, 11, 12, 13)]
GREEDY = SamplingSettings(temperature=0, max_new_tokens=10)
DRAWN = SamplingSettings(max_new_tokens=10)


def next_requests(requests, results, count=1):
    """Every completion gets its feedback and goes on."""
    return [
        SampleRequest((*before, *FEEDBACK[number % 3]), count, extends=len(before))
        for request, completions in zip(requests, results, strict=True)
        for number, completion in enumerate(completions)
        for before in [(*request.prompt_ids, *completion.ids)]
    ]


def dialogues(sampler, settings, counts=(2, 1, 1), turn_sampler=None):
    """Requests and results of each turn."""
    requests, turns = [SampleRequest(prompt, counts[0]) for prompt in PROMPTS], []
    for turn, count in enumerate([*counts[1:], 1]):
        results = (turn_sampler or sampler).sample(requests, settings, seed=turn)
        turns.append((requests, results))
        requests = next_requests(requests, results, count)
    return turns


def with_memory(sampler, settings, counts=(2, 1, 1)):
    with sampler_over_turns(sampler, len(counts)) as turn_sampler:
        return dialogues(sampler, settings, counts, turn_sampler)


def assert_close(turns, others):
    for (requests, results), (other_requests, other_results) in zip(turns, others, strict=True):
        assert requests == other_requests
        for completions, other_completions in zip(results, other_results, strict=True):
            for one, other in zip(completions, other_completions, strict=True):
                assert one.ids == other.ids
                assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)


@pytest.mark.parametrize("counts", [(2, 1, 1), (2, 2, 2), (1, 1, 1)])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_dialogues_are_the_same_with_and_without_memory(architecture, counts):
    sampler = LocalSampler(tiny_policy(architecture))
    assert_close(with_memory(sampler, GREEDY, counts), dialogues(sampler, GREEDY, counts))


@pytest.mark.parametrize("architecture", KEEPS_EVERY_TOKEN)
def test_only_what_is_new_is_computed(architecture):
    sampler = LocalSampler(tiny_policy(architecture))
    turns = with_memory(sampler, DRAWN)
    later = [request for requests, _ in turns[1:] for request in requests]
    # The last token of a reply was drawn but never fed, so it is computed with the feedback.
    assert sampler.work.remembered_tokens == sum(request.extends - 1 for request in later)
    tails = sum(len(request.prompt_ids) - request.extends + 1 for request in later)
    assert sampler.work.prefilled_tokens == sum(map(len, PROMPTS)) + tails
    assert sampler.work.sampled_tokens == sum(len(c.ids) for _, results in turns for group in results for c in group)
    assert sampler.work.cut_histories == 0


@pytest.mark.parametrize("kept_tokens", [0, 20, 60, 90])
@pytest.mark.parametrize("batch_tokens", [40, 200, 1 << 17])
def test_budgets_change_the_work_only(kept_tokens, batch_tokens):
    policy = tiny_policy("llama")
    sampler = LocalSampler(policy, SamplerSettings(batch_tokens=batch_tokens, kept_tokens=kept_tokens))
    assert_close(with_memory(sampler, GREEDY, (3, 1, 2)), dialogues(LocalSampler(policy), GREEDY, (3, 1, 2)))
    assert (sampler.work.remembered_tokens > 0) == (kept_tokens > 0)


def test_rows_that_others_outgrow_go_on_later(monkeypatch):
    monkeypatch.setattr(continuous_decoding, "_RESERVE", 2)
    policy = tiny_policy("llama", eos_token_id=None)
    for kept_tokens in (0, 1000):
        crowded = LocalSampler(policy, SamplerSettings(batch_tokens=150, kept_tokens=kept_tokens))
        assert_close(with_memory(crowded, GREEDY), dialogues(LocalSampler(policy), GREEDY))
        assert crowded.work.rows_put_back > 0
    drawn = with_memory(crowded, DRAWN)
    assert all(len(c.ids) <= 10 for _, results in drawn for completions in results for c in completions)


def test_more_memory_saves_more():
    policy = tiny_policy("llama")
    remembered = []
    for kept_tokens in (0, 50, 100, 1000):
        sampler = LocalSampler(policy, SamplerSettings(kept_tokens=kept_tokens))
        with_memory(sampler, GREEDY)
        remembered.append(sampler.work.remembered_tokens)
    assert remembered == sorted(remembered)
    assert len(set(remembered)) == 4


def test_a_history_that_was_cut_is_computed_anew_and_counted():
    sampler = LocalSampler(tiny_policy("llama"))
    with sampler.over_turns(2) as turns:
        first = [SampleRequest(prompt) for prompt in PROMPTS]
        second = next_requests(first, turns.sample(first, GREEDY, 0))
        second[0] = SampleRequest((44, *second[0].prompt_ids[3:]))
        second[1] = SampleRequest((*PROMPTS[1], 50, 51))
        results = turns.sample(second, GREEDY, 1)
    assert sampler.work.cut_histories == 2
    opening, whole = len(PROMPTS[1]), second[2].extends - 1
    assert sampler.work.remembered_tokens == opening + whole
    assert_close([(second, results)], [(second, sampler.sample(second, GREEDY, 1))])


def test_a_wrong_claim_about_the_earlier_turn_does_no_harm():
    sampler = LocalSampler(tiny_policy("llama"))
    with sampler.over_turns(2) as turns:
        turns.sample([SampleRequest(prompt) for prompt in PROMPTS], GREEDY, 0)
        wrong = [SampleRequest((*PROMPTS[0], 1, 2, 3), extends=9), SampleRequest(PROMPTS[1], extends=2)]
        results = turns.sample(wrong, GREEDY, 1)
    assert sampler.work.remembered_tokens == len(PROMPTS[0])  # nothing but what is there after all
    assert_close([(wrong, results)], [(wrong, sampler.sample(wrong, GREEDY, 1))])


def test_a_growth_does_not_depend_on_what_was_sampled_before_to_the_last_bit():
    policy = tiny_policy("llama")
    busy, fresh = LocalSampler(policy), LocalSampler(policy)
    with_memory(busy, DRAWN)
    busy.sample([SampleRequest(PROMPTS[2], 5)], DRAWN, 3)
    assert with_memory(busy, DRAWN, (3, 1, 1)) == with_memory(fresh, DRAWN, (3, 1, 1))


def test_equal_seeds_give_equal_samples_whatever_has_to_wait():
    policy = tiny_policy("llama")
    torch.manual_seed(5)
    one = with_memory(LocalSampler(policy, SamplerSettings(batch_tokens=150)), DRAWN, (5, 2, 1))
    torch.manual_seed(6)
    assert with_memory(LocalSampler(policy, SamplerSettings(batch_tokens=150)), DRAWN, (5, 2, 1)) == one


@pytest.mark.parametrize("architecture", sorted(set(ARCHITECTURES) - set(KEEPS_EVERY_TOKEN)))
def test_models_that_forget_tokens_remember_no_turns_and_say_so(architecture, caplog):
    sampler = LocalSampler(tiny_policy(architecture))
    with caplog.at_level(logging.WARNING):
        with_memory(sampler, GREEDY)
    assert sampler.work.remembered_tokens == 0
    assert len([record for record in caplog.records if "remembers no turns" in record.message]) == 1


class RemoteSampler:
    """What a sampler on another machine has to have."""

    def fits(self, prompt_ids, settings):
        return True

    def sample(self, requests, settings, seed):
        return [[] for _ in requests]


def test_a_sampler_need_not_remember():
    sampler = RemoteSampler()
    with sampler_over_turns(sampler, 3) as turns:
        assert turns is sampler
