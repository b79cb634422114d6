"""Scores from hidden states in chunks: the plain values and gradients, and no more memory for more tokens."""

import pytest
import torch

from smalt.policy import token_scores
from smalt.policy.token_scores import score_tokens


def plain(logits, targets, temperature):
    logprobs = (logits / temperature).log_softmax(-1)
    return logprobs.gather(-1, targets[:, None]).squeeze(-1), torch.distributions.Categorical(logits=logprobs).entropy()


@pytest.fixture
def head():
    torch.manual_seed(0)
    return torch.nn.Linear(8, 50)


@pytest.fixture
def batch():
    torch.manual_seed(1)
    return torch.randn(37, 8, requires_grad=True), torch.randint(0, 50, (37,))


@pytest.mark.parametrize("tokens_at_once", [1, 10, 37, 1000])
@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_values_and_gradients_are_the_plain_ones(monkeypatch, head, batch, tokens_at_once, temperature):
    monkeypatch.setattr(token_scores, "_LOGITS_AT_ONCE", 50 * tokens_at_once)
    hidden, targets = batch
    weights = torch.linspace(-1, 2, 37)
    logprobs, entropy = score_tokens(head, hidden, targets, 50, temperature)
    found = torch.autograd.grad((logprobs * weights).sum(), [hidden, *head.parameters()])
    expected_logprobs, expected_entropy = plain(head(hidden), targets, temperature)
    expected = torch.autograd.grad((expected_logprobs * weights).sum(), [hidden, *head.parameters()])
    torch.testing.assert_close(logprobs, expected_logprobs)
    torch.testing.assert_close(entropy, expected_entropy)
    assert not entropy.requires_grad
    for left, right in zip(found, expected, strict=True):
        torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-6)


def kept_bytes(head, tokens):
    """Bytes that autograd keeps for backward, each storage once."""
    storages = {}

    def keep(tensor):
        storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    hidden = torch.randn(tokens, 8, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        score_tokens(head, hidden, torch.zeros(tokens, dtype=torch.long), 50, 1.0)
    return sum(storages.values())


def test_what_is_kept_for_backward_does_not_grow_with_tokens_x_vocabulary(monkeypatch, head):
    monkeypatch.setattr(token_scores, "_LOGITS_AT_ONCE", 50 * 16)
    few, many = kept_bytes(head, 64), kept_bytes(head, 1024)
    assert many - few < 960 * (8 + 8) * 4 + 1  # hidden states and targets; logits would be 960 * 50 * 4 and more


def test_half_precision_logits_are_scored_in_float32(head, batch):
    hidden, targets = batch
    logprobs, _ = score_tokens(head.bfloat16(), hidden.bfloat16(), targets, 50, 1.0)
    assert logprobs.dtype == torch.float32
