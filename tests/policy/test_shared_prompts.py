"""Prompts that are held once: the attention to them, their coming and going, and samples that do not change by it."""

import logging
from itertools import chain
from types import SimpleNamespace

import pytest
import torch

from smalt.policy import local_sampler
from smalt.policy.capabilities import capabilities_of
from smalt.policy.local_sampler import LocalSampler
from smalt.policy.prefill import prefill
from smalt.policy.prompt_attention import attend_with_prompts
from smalt.policy.sampling import SampleRequest, SamplerSettings, SamplingSettings, sampler_over_turns
from smalt.policy.shared_prompts import SharedPrompts, shelf_columns
from tests.policy.models import KEEPS_EVERY_TOKEN, tiny_policy

PROMPTS = [(5, 9, 31, 77, 8, 12, 40), (60, 61), tuple(range(20, 90)), (7, 7, 8)]
GREEDY = SamplingSettings(temperature=0, max_new_tokens=10)


def choose(monkeypatch, shares):
    """One way or the other, whatever would pay."""
    monkeypatch.setattr(local_sampler, "_SHARED_FROM", 0 if shares else 1000)


def three_turns(sampler, count=2):
    """Dialogues in which every reply gets the same feedback: their prompts and greedy completions, turn by turn."""
    requests, found = [SampleRequest(prompt, count) for prompt in PROMPTS], []
    with sampler_over_turns(sampler, 3) as turns:
        for turn in range(3):
            results = turns.sample(requests, GREEDY, seed=turn)
            found.append((requests, results))
            texts = [
                (*request.prompt_ids, *completion.ids)
                for request, completions in zip(requests, results, strict=True)
                for completion in completions
            ]
            requests = [SampleRequest((*text, 11, 12), 2, extends=len(text)) for text in texts]
    return found


@pytest.mark.parametrize("batch_tokens", [60, 1 << 17])
@pytest.mark.parametrize("architecture", ["llama", "llama, tied, no grouped heads", "gpt2"])
def test_dialogues_are_the_same_with_shared_and_with_copied_prompts(architecture, batch_tokens, monkeypatch):
    policy = tiny_policy(architecture)
    both = []
    for shares in (True, False):
        choose(monkeypatch, shares)
        both.append(three_turns(LocalSampler(policy, SamplerSettings(batch_tokens=batch_tokens))))
    for (requests, results), (other_requests, other_results) in zip(*both, strict=True):
        assert requests == other_requests
        pairs = zip(chain.from_iterable(results), chain.from_iterable(other_results), strict=True)
        for completion, other in pairs:
            assert completion.ids == other.ids
            assert completion.logprobs == pytest.approx(other.logprobs, abs=1e-4)


@pytest.mark.parametrize(("shares", "most"), [(True, 20), (False, 5)])
def test_shared_prompts_leave_room_for_more_rows(shares, most, monkeypatch):
    choose(monkeypatch, shares)
    policy = tiny_policy("llama", eos_token_id=None)
    rows = []
    policy.model.register_forward_pre_hook(
        lambda module, args, inputs: rows.append(len(inputs["input_ids"])), with_kwargs=True
    )
    LocalSampler(policy, SamplerSettings(batch_tokens=400)).sample([SampleRequest(PROMPTS[2], 20)], GREEDY, 0)
    assert max(rows) == most


@pytest.mark.parametrize(
    ("architecture", "shares"),
    [*((name, True) for name in KEEPS_EVERY_TOKEN), ("mistral, sliding windows", False), ("bamba, recurrent", False)],
)
def test_what_a_model_can_do_is_found_by_trying(architecture, shares):
    assert capabilities_of(tiny_policy(architecture).model).shares_prompts == shares


def test_eager_attention_does_not_share():
    model = tiny_policy("llama").model
    model.set_attn_implementation("eager")
    assert not capabilities_of(model).shares_prompts


def test_a_model_that_disagrees_copies_its_prompts_and_says_so(monkeypatch, caplog):
    monkeypatch.setattr("smalt.policy.tree_attention.attend_with_prompts", lambda *args: 0 * args[1].transpose(1, 2))
    policy = tiny_policy("llama")
    with caplog.at_level(logging.WARNING):
        LocalSampler(policy).sample([SampleRequest(prompt, 5) for prompt in PROMPTS], GREEDY, 0)
    assert "cannot share prompts" in caplog.text


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("heads", [3, 6])
def test_attention_to_both_parts_is_attention_to_all(heads, dtype):
    policy = tiny_policy("llama", num_attention_heads=6, num_key_value_heads=3, hidden_size=48)
    texts = prefill(policy.model.to(dtype), PROMPTS, [None] * len(PROMPTS))
    counts = (3, 1, 2, 1)
    prompts = SharedPrompts()
    prompts.add([*zip(texts, counts, strict=True)])
    torch.manual_seed(0)
    query, keys, values = (torch.randn(7, n, t, 8, dtype=dtype) for n, t in ((heads, 1), (3, 5), (3, 5)))
    lengths = torch.tensor([1, 2, 3, 4, 5, 4, 3])
    mask = torch.zeros(7, 1, 1, 5, dtype=dtype)
    mask[(torch.arange(5) >= lengths[:, None])[:, None, None]] = -torch.inf
    found = attend_with_prompts(SimpleNamespace(layer_idx=1), query, keys, values, mask, prompts.states())
    row_texts = [text for text, count in zip(texts, counts, strict=True) for _ in range(count)]
    for row, text in enumerate(row_texts):
        parts = ((text.layers[1].keys, keys), (text.layers[1].values, values))
        whole = (torch.cat([prompt[text.row, :, -text.new :], own[row, :, : lengths[row]]], 1) for prompt, own in parts)
        expected = torch.nn.functional.scaled_dot_product_attention(query[row], *whole, enable_gqa=True)
        assert torch.allclose(found[row].transpose(0, 1), expected, atol=1e-5 if dtype == torch.float32 else 2e-2)


def test_a_prompt_goes_with_its_last_row():
    policy = tiny_policy("llama")
    texts = prefill(policy.model, PROMPTS, [None] * len(PROMPTS))
    prompts = SharedPrompts()
    prompts.add([*zip(texts, (2, 1, 1, 1), strict=True)])  # rows 0 and 1, 2, 3, 4
    assert prompts.tokens == 3 * shelf_columns(7) + shelf_columns(70)
    prompts.move([0, 1], [4, 3], 3)
    assert prompts.tokens == 2 * shelf_columns(7) + shelf_columns(70)
    assert [prompts.length_of(row) for row in range(3)] == [3, 70, 2]
    for keys, values in prompts.states_of(0, 0):
        assert keys.shape == values.shape == (2, 3, 8)
    expected = [(layer.keys[3, :, -2:], layer.values[3, :, -2:]) for layer in texts[3].layers]
    for (keys, values), others in zip(prompts.states_of(0, 1), expected, strict=True):
        assert torch.equal(keys, others[0])
        assert torch.equal(values, others[1])
    prompts.move([], [], 0)
    assert prompts.tokens == 0


@pytest.mark.parametrize("length", [1, 31, 32, 33, 200, 256, 257, 1000, 5000])
def test_shelves_have_little_room_to_spare(length):
    assert 0 <= shelf_columns(length) - length < max(32, length / 4)
