"""Adapters on tiny models: nothing at first, all that trains, gone when disabled, whole when merged."""

import copy
import importlib.util
from dataclasses import replace

import pytest
import torch
from pydantic import ValidationError

from smalt.policy.adapters import add_adapters, merge_adapters
from smalt.policy.layouts import Row
from smalt.policy.loading import ModelLoadError, ModelSettings, load_policy
from smalt.policy.local_sampler import LocalSampler
from smalt.policy.logprobs import row_logprobs
from smalt.policy.lora_settings import LoraSettings
from smalt.policy.reference import ReferencePolicy
from smalt.policy.sampling import SampleRequest, SamplingSettings
from tests.policy.models import tiny_policy

peft = pytest.importorskip("peft")

LORA = LoraSettings(rank=4, alpha=8)
IDS = torch.tensor([[5, 9, 30, 77, 8]])
ROWS = [Row((5, 9, 30), (77, 8)), Row((5, 9, 30), (4, 4, 4)), Row((6,), (7, 8))]


def adapted(architecture="llama", lora=LORA, seed=0, **sizes):
    policy = tiny_policy(architecture, **sizes)
    add_adapters(policy, lora, seed)
    return policy


def trained(policy):
    """The policy with adapters that do something, as after training."""
    generator = torch.Generator().manual_seed(3)
    for weight in policy.trained_parameters:
        weight.data += 0.1 * torch.randn(weight.shape, generator=generator)
    return policy


@torch.no_grad()
def logits(model):
    return model(input_ids=IDS).logits


def adapter_weights(policy):
    return {name: weight.detach().clone() for name, weight in policy.model.named_parameters() if "lora" in name}


@pytest.mark.parametrize("architecture", ["llama", "qwen3", "gpt2", "gemma3, sliding windows"])
def test_fresh_adapters_change_nothing_and_are_all_that_trains(architecture):
    policy = adapted(architecture)
    assert torch.equal(logits(policy.model), logits(tiny_policy(architecture).model))
    names = {name for name, weight in policy.model.named_parameters() if weight.requires_grad}
    assert names
    assert all("lora_" in name for name in names)
    head = policy.model.get_output_embeddings()
    assert isinstance(head, torch.nn.Linear)
    assert not policy.model.training


def test_without_them_the_model_is_the_one_that_training_began_with():
    base, policy = tiny_policy("llama"), trained(adapted())
    expected = row_logprobs(base.model, ROWS, 1.0).logprobs
    reference = ReferencePolicy(policy)
    policy.model.train()
    assert torch.equal(reference.row_logprobs(ROWS, 1.0).logprobs, expected)
    assert policy.model.training
    assert all(weight.requires_grad for weight in policy.trained_parameters)
    assert not torch.allclose(row_logprobs(policy.model, ROWS, 1.0).logprobs, expected, atol=1e-2)


def test_a_policy_without_adapters_is_copied_for_its_reference():
    policy = tiny_policy("llama")
    reference, expected = ReferencePolicy(policy), row_logprobs(policy.model, ROWS, 1.0).logprobs
    trained(policy)
    found = reference.row_logprobs(ROWS, 1.0).logprobs
    assert torch.equal(found, expected)
    assert not found.requires_grad


def test_equal_seeds_give_equal_adapters_and_other_draws_are_left_alone():
    state = torch.get_rng_state()
    first, again, other = (adapter_weights(adapted(seed=seed)) for seed in (1, 1, 2))
    torch.set_rng_state(state)
    expected = torch.rand(3)
    torch.set_rng_state(state)
    policy = tiny_policy("llama")
    torch.set_rng_state(state)
    add_adapters(policy, LORA, 5)
    assert torch.equal(torch.rand(3), expected)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not all(torch.equal(first[name], other[name]) for name in first)


def test_what_is_sampled_has_the_log_probabilities_that_training_finds():
    policy = trained(adapted())
    [completions] = LocalSampler(policy).sample(
        [SampleRequest((5, 9, 30), 4)], SamplingSettings(max_new_tokens=6), seed=0
    )
    scored = row_logprobs(policy.model, [Row((5, 9, 30), c.ids) for c in completions], 1.0)
    for row, completion in zip(scored.logprobs, completions, strict=True):
        assert row[: len(completion.ids)].tolist() == pytest.approx(completion.logprobs, abs=1e-4)


def test_they_come_back_from_their_folder_bit_for_bit(tmp_path):
    policy = trained(adapted())
    policy.adapters.save(tmp_path)
    again = adapted(seed=9)
    again.adapters.load(tmp_path)
    assert torch.equal(logits(again.model), logits(policy.model))
    elsewhere = peft.PeftModel.from_pretrained(tiny_policy("llama").model, tmp_path)
    assert torch.equal(logits(elsewhere), logits(policy.model))


@pytest.mark.parametrize("architecture", ["llama", "llama, tied, no grouped heads", "gpt2"])
def test_merged_the_model_is_an_ordinary_one_that_says_the_same(architecture):
    policy = trained(adapted(architecture))
    expected, plain = logits(policy.model), tiny_policy(architecture)
    merge_adapters(policy)
    assert policy.adapters is None
    torch.testing.assert_close(logits(policy.model), expected, rtol=1e-4, atol=1e-4)
    assert policy.model.state_dict().keys() == plain.model.state_dict().keys()
    merge_adapters(plain)
    assert torch.equal(logits(plain.model), logits(tiny_policy(architecture).model))


def test_beside_weights_of_16_bits_they_are_float32():
    policy = tiny_policy("llama")
    policy.model.bfloat16()
    add_adapters(policy, LORA, 0)
    assert {weight.dtype for weight in policy.trained_parameters} == {torch.float32}
    row_logprobs(policy.model, ROWS, 1.0).logprobs.sum().backward()
    assert any(weight.grad.abs().sum() > 0 for weight in policy.trained_parameters)


def test_targets_are_the_ends_of_names():
    policy = adapted(lora=LoraSettings(targets=["q_proj", "layers.1.mlp.up_proj"]))
    places = {name.partition(".lora_")[0] for name in adapter_weights(policy)}
    assert places == {
        "model.layers.0.self_attn.q_proj",
        "model.layers.1.self_attn.q_proj",
        "model.layers.1.mlp.up_proj",
    }


def test_the_head_may_be_adapted_unless_it_is_the_embedding_too():
    policy = trained(adapted(lora=LoraSettings(targets=["lm_head"])))
    plain = torch.tensor([[*row.input_ids] for row in ROWS[:1]])
    expected = policy.model(input_ids=plain).logits[0].log_softmax(-1)[2, 77]
    assert row_logprobs(policy.model, ROWS, 1.0).logprobs[0, 0].item() == pytest.approx(expected.item(), abs=1e-4)
    with pytest.raises(ModelLoadError, match="shares its weights with the embedding"):
        adapted("qwen2", LoraSettings(targets=["lm_head"]))


def test_a_target_that_is_no_linear_layer_is_refused_with_those_there_are():
    with pytest.raises(ModelLoadError, match=r"'wq'; there are down_proj, gate_proj, k_proj, lm_head"):
        adapted(lora=LoraSettings(targets=["q_proj", "wq"]))
    with pytest.raises(ModelLoadError, match="'proj'"):
        adapted(lora=LoraSettings(targets=["proj"]))


def test_a_model_that_peft_cannot_adapt_is_refused(monkeypatch):
    def refuse(*args):
        raise ValueError("Target modules not found")

    monkeypatch.setattr(peft, "get_peft_model", refuse)
    with pytest.raises(ModelLoadError, match="LlamaForCausalLM takes no adapters: Target modules"):
        adapted()


def test_without_peft_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModelLoadError, match=r"pip install 'smalt\[lora\]'"):
        adapted()


@pytest.mark.parametrize("nonsense", [{"rank": 0}, {"alpha": 0}, {"dropout": 0.1}, {"targets": []}, {"targets": "q"}])
def test_settings_that_mean_nothing_are_refused(nonsense):
    with pytest.raises(ValidationError):
        LoraSettings(**nonsense)


def test_a_folder_of_adapters_is_no_model(tmp_path):
    adapted().adapters.save(tmp_path)
    with pytest.raises(ModelLoadError, match="holds adapters, no model: a run leaves them merged in final/"):
        load_policy(ModelSettings(path=str(tmp_path), device="cpu"))


def test_a_copy_of_a_policy_is_whole():
    policy = trained(adapted())
    other = copy.deepcopy(replace(policy, tokenizer=None))
    expected = logits(other.model)
    merge_adapters(policy)
    assert torch.equal(logits(other.model), expected)
    with other.adapters.disabled():
        assert torch.equal(logits(other.model), logits(tiny_policy("llama").model))
