"""`row_logprobs` against the plain computation on padded prompt + completion rows."""

from collections.abc import Sequence
from typing import NamedTuple

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smalt.policy.layouts import Row
from smalt.policy.logprobs import row_logprobs


class CompletionGroup(NamedTuple):
    prompt_ids: Sequence[int]
    completions: Sequence[Sequence[int]]


def rows_of(groups):
    return [Row(group.prompt_ids, completion) for group in groups for completion in group.completions]


GROUPS = [
    CompletionGroup((5, 9, 301, 77, 8, 12, 40), [(17, 300, 4), (9,), (1, 2, 3, 4, 5, 6, 7, 8)]),
    CompletionGroup((600,), [(3, 3)]),
    CompletionGroup(tuple(range(100, 130)), [(250, 11), (7, 7, 7, 7, 7)]),
]
ids = st.integers(0, 639)
groups = st.lists(
    st.builds(
        CompletionGroup,
        st.lists(ids, min_size=1, max_size=9),
        st.lists(st.lists(ids, min_size=1, max_size=6), min_size=1, max_size=3),
    ),
    min_size=1,
    max_size=3,
).filter(lambda found: any(len(row) > 1 for group in found for row in group.completions))


def plain(model, groups, temperature):
    """Log-probabilities and entropies of each completion, each row run alone."""
    rows = []
    for group in groups:
        for completion in group.completions:
            row = torch.tensor([[*group.prompt_ids, *completion]])
            logits = model(input_ids=row, use_cache=False).logits[0, len(group.prompt_ids) - 1 : -1]
            scores = (logits / temperature).log_softmax(-1)
            taken = scores.gather(-1, torch.tensor(completion)[:, None]).squeeze(-1)
            rows.append((taken, torch.distributions.Categorical(logits=scores).entropy()))
    return rows


def gradients(model, logprob_sum):
    model.zero_grad()
    logprob_sum.backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def weighted(rows):
    """A sum in which every token has a weight of its own, so that mixed-up tokens show."""
    return sum(((place + 1) * torch.arange(1, len(row) + 1) * row).sum() for place, row in enumerate(rows))


@pytest.mark.parametrize("temperature", [1.0, 0.7, 2.0])
def test_log_probabilities_and_entropies_equal_the_plain_ones(policy, temperature):
    scored = row_logprobs(policy.model, rows_of(GROUPS), temperature)
    assert scored.logprobs.shape == scored.mask.shape == scored.entropy.shape == (6, 8)
    for place, (logprobs, entropy) in enumerate(plain(policy.model, GROUPS, temperature)):
        assert scored.mask[place].tolist() == [1] * len(logprobs) + [0] * (8 - len(logprobs))
        assert torch.allclose(scored.logprobs[place, : len(logprobs)], logprobs, rtol=1e-4)
        assert torch.allclose(scored.entropy[place, : len(logprobs)], entropy, rtol=1e-4)
        assert not scored.logprobs[place, len(logprobs) :].any()
        assert not scored.entropy[place, len(logprobs) :].any()


@pytest.mark.parametrize(
    ("family", "options"),
    [("qwen2", {}), ("qwen3", {"head_dim": 16}), ("mistral", {"sliding_window": 5}), ("gemma3_text", {"head_dim": 16})],
)
def test_other_families_of_models_score_alike(family, options):
    from transformers import AutoConfig, AutoModelForCausalLM

    sizes = {"vocab_size": 640, "hidden_size": 32, "intermediate_size": 64, "max_position_embeddings": 512}
    depth = {"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1}
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(family, **sizes, **depth, **options)).eval()
    with torch.no_grad():
        scored = row_logprobs(model, rows_of(GROUPS), 1.0)
        for place, (logprobs, _) in enumerate(plain(model, GROUPS, 1.0)):
            assert torch.allclose(scored.logprobs[place, : len(logprobs)], logprobs, rtol=1e-4)


def test_gradients_equal_the_plain_ones(policy):
    scored = row_logprobs(policy.model, rows_of(GROUPS), 1.0)
    rows = [row[: int(mask.sum())] for row, mask in zip(scored.logprobs, scored.mask, strict=True)]
    found = gradients(policy.model, weighted(rows))
    expected = gradients(policy.model, weighted([logprobs for logprobs, _ in plain(policy.model, GROUPS, 1.0)]))
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        assert (found[name] - gradient).norm() <= 1e-4 * gradient.norm(), name


def test_nothing_leaks_from_padding_into_the_gradient(policy):
    scored = row_logprobs(policy.model, rows_of(GROUPS), 1.0)
    found = gradients(policy.model, (scored.logprobs * (1 - scored.mask)).sum())
    assert not any(gradient.any() for gradient in found.values())
    assert not scored.entropy.requires_grad


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(groups=groups)
def test_any_groups_score_as_each_row_alone(policy, groups):
    with torch.no_grad():
        scored = row_logprobs(policy.model, rows_of(groups), 1.0)
        for place, (logprobs, entropy) in enumerate(plain(policy.model, groups, 1.0)):
            assert torch.allclose(scored.logprobs[place, : len(logprobs)], logprobs, rtol=1e-4, atol=1e-5)
            assert torch.allclose(scored.entropy[place, : len(logprobs)], entropy, rtol=1e-4, atol=1e-5)


def test_completions_of_one_token_only(policy):
    groups = [CompletionGroup((5, 9, 301), [(17,), (4,)]), CompletionGroup((600,), [(3,)])]
    scored = row_logprobs(policy.model, rows_of(groups), 1.0)
    for place, (logprobs, _) in enumerate(plain(policy.model, groups, 1.0)):
        assert torch.allclose(scored.logprobs[place], logprobs, rtol=1e-4)


def test_greedy_completions_are_scored_under_the_plain_softmax(policy):
    cold = row_logprobs(policy.model, rows_of(GROUPS), 0.0)
    assert torch.equal(cold.logprobs, row_logprobs(policy.model, rows_of(GROUPS), 1.0).logprobs)
