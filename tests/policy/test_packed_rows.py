"""Packed tries against rows run alone: log-probabilities and gradients, over architectures and shapes of trees."""

import logging

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from smalt.policy import attention_blocks
from smalt.policy.capabilities import capabilities_of
from smalt.policy.layouts import Row
from smalt.policy.logprobs import micro_batches, row_logprobs

SIZES = {"vocab_size": 96, "hidden_size": 32, "intermediate_size": 64, "max_position_embeddings": 128}
DEPTH = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}
FAMILIES = {
    "llama": {},
    "qwen2": {},
    "qwen3": {},
    "gemma": {},
    "gemma2": {"sliding_window": 5},
    "gemma3_text": {"sliding_window": 5},
    "mistral": {"sliding_window": 5},
    "granite": {"logits_scaling": 3.0},
    "cohere": {},
    "olmo2": {},
}
SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}

_models = {}


def model_of(family):
    """A tiny random model whose attention matters: with weights as small as usual it would hardly show."""
    if family not in _models:
        from transformers import AutoConfig, AutoModelForCausalLM

        torch.manual_seed(0)
        config = AutoConfig.for_model(family, **{**SIZES, **DEPTH, **SPECIAL, **FAMILIES.get(family, {})})
        config.initializer_range = 0.3
        _models[family] = AutoModelForCausalLM.from_config(config).eval()
    return _models[family]


def murphy(stem, turns, group, rng):
    """Rows of a tree: every completion of a prompt is revised `group` times behind some feedback."""
    found = []
    for _ in range(group):
        completion = torch.randint(3, 96, (int(torch.randint(1, 6, (), generator=rng)),), generator=rng).tolist()
        found.append(Row(stem, completion))
        if turns > 1:
            found += murphy([*stem, *completion, 90, 91], turns - 1, group, rng)
    return found


TREE = murphy([5, 6, 7, 8, 9, 10], 3, 2, torch.Generator().manual_seed(0))
CONTEXTS = [Row(list(range(3, 3 + length)), [50 + k, *range(60, 60 + k)]) for length in (4, 9, 17) for k in range(3)]
REPEATED = [Row([4, 5], [6, 7, 8])] * 2 + [Row([4, 5], [6, 7]), Row([4, 5, 6, 7], [8, 9]), Row([30], [31])]

few = st.integers(3, 6)
random_rows = st.lists(
    st.builds(Row, st.lists(few, min_size=1, max_size=6), st.lists(few, min_size=1, max_size=5)), min_size=1, max_size=7
)


def alone(model, rows):
    """The log-probabilities of each row, computed by itself."""
    found = []
    for row in rows:
        ids = torch.tensor([[*row.prompt_ids, *row.completion_ids]])
        logprobs = model(input_ids=ids, use_cache=False).logits[0].log_softmax(-1)[len(row.prompt_ids) - 1 : -1]
        found.append(logprobs.gather(-1, torch.tensor(row.completion_ids)[:, None]).squeeze(-1))
    return found


def gradients(model, per_row):
    """Gradients of a sum in which every token has a weight of its own, so that mixed-up tokens show."""
    total = sum(((-1) ** place * torch.arange(1, len(row) + 1) * row).sum() for place, row in enumerate(per_row))
    model.zero_grad()
    total.backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def unpadded(scored):
    return [row[: int(mask.sum())] for row, mask in zip(scored.logprobs, scored.mask, strict=True)]


def assert_like_alone(model, rows):
    found, expected = unpadded(row_logprobs(model, rows, 1.0)), alone(model, rows)
    for left, right in zip(found, expected, strict=True):
        torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-5)
    found_gradients, expected_gradients = gradients(model, found), gradients(model, expected)
    assert found_gradients.keys() == expected_gradients.keys()
    largest = max(gradient.norm() for gradient in expected_gradients.values())
    # Gradients that are 0 but for rounding (the queries of a token that sees only its like) have the size of the
    # largest one's last digits.
    for name, gradient in expected_gradients.items():
        assert (found_gradients[name] - gradient).norm() <= 1e-4 * (gradient.norm() + 1e-2 * largest) + 1e-6, name


@pytest.fixture(params=[0, 1 << 30], ids=["prefix asked once", "prefix copied"])
def most_copied(request, monkeypatch):
    """Both ways to attend to what rows have in common, which by themselves are chosen by size."""
    monkeypatch.setattr(attention_blocks, "_MOST_COPIED", request.param)


@pytest.mark.usefixtures("most_copied")
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("rows", [TREE, CONTEXTS, REPEATED], ids=["tree", "contexts", "repeated"])
def test_every_family_scores_a_trie_as_its_rows(family, rows):
    model = model_of(family)
    assert capabilities_of(model).packs_tries
    assert capabilities_of(model).separates_head
    assert_like_alone(model, rows)


@settings(max_examples=25, deadline=None)
@given(random_rows, st.sampled_from([0, 1 << 30]))
def test_any_trie_scores_as_its_rows(rows, most_copied):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention_blocks, "_MOST_COPIED", most_copied)
        assert_like_alone(model_of("qwen3"), rows)


def test_a_tree_is_computed_once():
    model = model_of("llama")
    distinct = {row.input_ids[: end + 1] for row in TREE for end in range(len(row.input_ids))}
    assert row_logprobs(model, TREE, 1.0).computed_tokens == len(distinct)


@pytest.mark.usefixtures("most_copied")
@pytest.mark.parametrize("family", ["qwen3", "gemma2"])
def test_gradient_checkpointing_changes_nothing(family):
    model = model_of(family)
    expected = gradients(model, unpadded(row_logprobs(model, TREE, 1.0)))
    model.gradient_checkpointing_enable()
    model.train()
    try:
        found = gradients(model, unpadded(row_logprobs(model, TREE, 1.0)))
    finally:
        model.eval()
        model.gradient_checkpointing_disable()
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-4, atol=1e-6)


def many_of_a_long_prompt(completions):
    return [Row(list(range(3, 63)), [70 + k, 80, 3 + k]) for k in range(completions)]


def kept_bytes(model, rows):
    """Bytes that autograd keeps of a forward pass besides the weights, each storage once."""
    storages = {}

    def keep(tensor):
        storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        row_logprobs(model, rows, 1.0)
    return sum(storages.values())


@pytest.mark.usefixtures("most_copied")
@pytest.mark.parametrize("keys_at_once", [1, 200, 1 << 16])
def test_a_prompt_that_is_long_beside_many_completions(monkeypatch, keys_at_once):
    monkeypatch.setattr(attention_blocks, "_KEYS_AT_ONCE", keys_at_once)
    assert_like_alone(model_of("llama"), many_of_a_long_prompt(8))


@pytest.mark.usefixtures("most_copied")
def test_keys_are_not_kept_once_for_every_completion():
    model = model_of("llama")
    few, many = kept_bytes(model, many_of_a_long_prompt(10)), kept_bytes(model, many_of_a_long_prompt(20))
    keys_and_values = 10 * 62 * 2 * DEPTH["num_hidden_layers"] * SIZES["hidden_size"] * 4
    assert many - few < keys_and_values / 2


@pytest.mark.parametrize("budget", [1, 20, 60])
def test_parts_of_a_tree_add_up_to_its_gradient(budget):
    model = model_of("llama")
    parts = micro_batches(model, TREE, budget)
    assert sorted(row for part in parts for row in part) == list(range(len(TREE)))
    scored = [(part, row_logprobs(model, [TREE[row] for row in part], 1.0)) for part in parts]
    assert all(s.computed_tokens <= budget for part, s in scored if len(part) > 1)
    by_row = dict(pair for part, s in scored for pair in zip(part, unpadded(s), strict=True))
    found = gradients(model, [by_row[row] for row in range(len(TREE))])
    for name, gradient in gradients(model, alone(model, TREE)).items():
        assert (found[name] - gradient).norm() <= 1e-4 * gradient.norm(), name


@pytest.mark.usefixtures("most_copied")
def test_half_precision_packs_too():
    import copy

    model = copy.deepcopy(model_of("llama")).bfloat16()
    assert capabilities_of(model).packs_tries
    for left, right in zip(unpadded(row_logprobs(model, TREE, 1.0)), alone(model, TREE), strict=True):
        assert (left - right).abs().max() < 0.3


def test_recurrent_state_falls_back_to_padded_rows_and_says_so_once(caplog):
    from transformers import AutoModelForCausalLM, MambaConfig

    torch.manual_seed(0)
    config = MambaConfig(vocab_size=96, hidden_size=32, num_hidden_layers=1, state_size=4, **SPECIAL)
    model = AutoModelForCausalLM.from_config(config).eval()
    with caplog.at_level(logging.WARNING):
        assert_like_alone(model, REPEATED)
        assert_like_alone(model, REPEATED)
    assert [r.getMessage() for r in caplog.records if "padded" in r.getMessage()] == [
        "MambaForCausalLM cannot share prefixes: it trains on padded rows"
    ]
    assert micro_batches(model, REPEATED, 8) == [[4, 2], [0, 1], [3]]


def test_a_head_of_its_own_kind_is_left_to_the_model(caplog):
    model = model_of("llama")
    own = type("Own", (type(model),), {"forward": lambda self, **inputs: _doubled(type(model).forward(self, **inputs))})
    other = own(model.config).eval()
    assert not capabilities_of(other).separates_head
    assert_like_alone(other, TREE)


def _doubled(output):
    output.logits = output.logits * 2
    return output


@pytest.mark.usefixtures("most_copied")
@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3", "gemma2"])
def test_adapters_train_alike(family):
    peft = pytest.importorskip("peft")
    import copy

    base = copy.deepcopy(model_of(family))
    torch.manual_seed(1)
    config = peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj", "down_proj"], init_lora_weights=False)
    model = peft.get_peft_model(base, config).eval()
    assert capabilities_of(model).packs_tries
    assert capabilities_of(model).separates_head
    assert_like_alone(model, TREE)
