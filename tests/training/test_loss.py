"""The loss against numbers worked by hand."""

from dataclasses import replace
from math import log

import pytest
import torch

from smalt.training.loss import LossInputs, mse_kl, policy_loss
from smalt.training.settings import LossSettings

SETTINGS = LossSettings(clip_low=0.2, clip_high=0.4, kl_coefficient=0.1)


def inputs(ratios, advantages, mask=None, old=None, reference=None):
    ratios = torch.tensor(ratios, dtype=torch.float64)
    old = torch.full_like(ratios, -1.0) if old is None else torch.tensor(old, dtype=torch.float64)
    mask = torch.ones_like(ratios) if mask is None else torch.tensor(mask)
    logprobs = (old + ratios.log()).where(mask.bool(), 0.0).requires_grad_()
    return LossInputs(logprobs, old.where(mask.bool(), 0.0), reference, torch.tensor(advantages).double(), mask)


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "gradient", "clipped"),
    [
        (1.0, 2.0, -2.0, -2.0, 0),
        (1.3, 2.0, -2.6, -2.6, 0),
        (1.5, 2.0, -2.8, 0.0, 1),  # beyond 1 + 0.4 a good token is pushed no further
        (0.5, 2.0, -1.0, -1.0, 0),  # below 1 - 0.2 a good token is still pulled back
        (1.0, -2.0, 2.0, 2.0, 0),
        (1.5, -2.0, 3.0, 3.0, 0),  # above, a bad token is still pushed down
        (0.9, -2.0, 1.8, 1.8, 0),
        (0.5, -2.0, 1.6, 0.0, 1),  # below 1 - 0.2 a bad token is pushed no further
        (5.0, 0.0, 0.0, 0.0, 0),
    ],
)
def test_one_token(ratio, advantage, loss, gradient, clipped):
    given = inputs([[ratio]], [advantage])
    sums = policy_loss(given, SETTINGS)
    sums.loss.backward()
    assert sums.loss.item() == pytest.approx(loss)
    assert given.logprobs.grad.item() == pytest.approx(gradient)
    assert sums.clipped == clipped
    assert sums.ratio_deviation == pytest.approx(abs(ratio - 1))


def test_likelihood_is_the_log_probability_whatever_it_was_sampled_with():
    settings = SETTINGS.model_copy(update={"objective": "likelihood"})
    old, mask = [[-1, -2, 0], [-80, 0, 0]], [[1, 1, 0], [1, 0, 0]]
    given = inputs([[1.5, 0.5, 9.0], [1e30, 1.0, 1.0]], [1.0, 2.0], mask=mask, old=old)
    sums = policy_loss(given, settings)
    sums.loss.backward()
    written = given.logprobs.detach()
    assert sums.loss.item() == pytest.approx(-(written[0, 0] + written[0, 1] + 2 * written[1, 0]).item())
    assert given.logprobs.grad.tolist() == [[-1, -1, 0], [-2, 0, 0]]
    assert sums.clipped == sums.ratio_deviation == 0


def test_a_batch_is_the_sum_over_tokens():
    given = inputs([[1.5, 0.5, 1.0], [0.5, 1.1, 9.0]], [1.0, -1.0], mask=[[1, 1, 1], [1, 1, 0]])
    sums = policy_loss(given, SETTINGS)
    assert sums.loss.item() == pytest.approx(-1.4 - 0.5 - 1.0 + 0.8 + 1.1)
    assert sums.clipped == 2
    assert sums.ratio_deviation == pytest.approx(0.5 + 0.5 + 0 + 0.5 + 0.1)


def test_the_kl_penalty_is_half_the_squared_difference():
    reference = torch.tensor([[-1.5, -1.0]], dtype=torch.float64)
    given = inputs([[1.0, 1.0]], [0.0], reference=reference)
    sums = policy_loss(given, SETTINGS)
    sums.loss.backward()
    assert sums.kl == pytest.approx(0.5 * 0.5**2)
    assert sums.loss.item() == pytest.approx(0.1 * 0.125)
    assert given.logprobs.grad[0].tolist() == pytest.approx([0.1 * 0.5, 0.0])
    assert mse_kl(torch.tensor(-1.0), torch.tensor(-3.0)).item() == 2


def test_masked_tokens_count_for_nothing():
    reference = torch.tensor([[-1.0, -50.0]], dtype=torch.float64)
    given = inputs([[1.0, 1.0]], [3.0], mask=[[1, 0]], reference=reference)
    sums = policy_loss(given, SETTINGS)
    sums.loss.backward()
    assert sums.loss.item() == pytest.approx(-3.0)
    assert sums.kl == 0
    assert given.logprobs.grad[0, 1] == 0


def test_masked_tokens_may_hold_anything():
    given = inputs([[1.0, 1.0]], [3.0], mask=[[1, 0]])
    wild = LossInputs(given.logprobs, torch.tensor([[-1.0, -torch.inf]]), None, given.advantages, given.mask)
    sums = policy_loss(wild, SETTINGS)
    sums.loss.backward()
    assert sums.loss.item() == pytest.approx(-3.0)
    assert given.logprobs.grad.isfinite().all()


def test_without_a_reference_there_is_no_penalty():
    sums = policy_loss(inputs([[1.2]], [1.0]), SETTINGS)
    assert sums.kl == 0
    assert sums.loss.item() == pytest.approx(-1.2)


def test_the_ratio_is_that_of_the_probabilities():
    given = inputs([[1.0]], [1.0], old=[[log(0.5)]])
    moved = LossInputs(given.logprobs + log(1.2), given.old_logprobs, None, given.advantages, given.mask)
    assert policy_loss(moved, SETTINGS).loss.item() == pytest.approx(-1.2)


def test_weights_count_tokens_of_a_completion():
    reference = torch.tensor([[-1.5, -1.0], [-1.0, -1.0]], dtype=torch.float64)
    given = inputs([[1.0, 1.1], [0.9, 1.0]], [2.0, -1.0], reference=reference)
    given = replace(given, weights=torch.tensor([0.5, 0.25]).double())
    sums = policy_loss(given, SETTINGS)
    penalty = 0.1 * (0.5 * (0.5 * 0.5**2 + 0.5 * log(1.1) ** 2) + 0.25 * 0.5 * log(0.9) ** 2)
    assert sums.loss.item() == pytest.approx(0.5 * -4.2 + 0.25 * 1.9 + penalty)
    assert sums.kl == pytest.approx(0.125 + 0.5 * log(1.1) ** 2 + 0.5 * log(0.9) ** 2)


GSPO = LossSettings(objective="gspo", aggregation="sequences", clip_low=0.01, clip_high=0.02, kl_coefficient=0)


@pytest.mark.parametrize(
    ("ratios", "mask", "advantage", "objective", "clipped"),
    [
        ([1.21, 1.0], [1, 1], 1.0, 1.02, 2),  # sqrt(1.21) = 1.1, clipped at 1 + 0.02
        ([1.21, 1.0], [1, 1], -1.0, -1.1, 0),
        ([1.21, 1 / 1.21], [1, 1], 3.0, 3.0, 0),  # each token is far off, the completion is not
        ([1.01, 9.0], [1, 0], 2.0, 2.02, 0),
        ([0.81, 1.0], [1, 1], -1.0, -0.99, 2),
    ],
)
def test_gspo_clips_the_ratio_of_a_completion(ratios, mask, advantage, objective, clipped):
    sums = policy_loss(inputs([ratios], [advantage], mask=[mask]), GSPO)
    assert sums.loss.item() == pytest.approx(-objective * sum(mask))  # once a token, for "sequences" to average
    assert sums.clipped == clipped


def test_gspos_gradient_is_shared_by_the_tokens():
    given = inputs([[1.0, 1.0]], [3.0])
    policy_loss(given, GSPO).loss.backward()
    # d exp(mean log rho) / d log pi_t = 1/2, twice because the term stands on two tokens.
    assert given.logprobs.grad.tolist() == [[pytest.approx(-3.0)] * 2]


@pytest.mark.parametrize(
    ("ratio", "advantage", "weight", "clipped"),
    [(1.0, 2.0, 1.0, 0), (1.5, 2.0, 1.4, 1), (1.5, -2.0, 1.4, 1), (0.1, -2.0, 0.1, 0)],
)
def test_cispo_clips_the_weight_and_keeps_the_gradient(ratio, advantage, weight, clipped):
    settings = LossSettings(objective="cispo", clip_high=0.4, kl_coefficient=0)
    given = inputs([[ratio]], [advantage])
    sums = policy_loss(given, settings)
    sums.loss.backward()
    assert given.logprobs.grad.item() == pytest.approx(-weight * advantage)
    assert sums.loss.item() == pytest.approx(-weight * advantage * (-1.0 + log(ratio)))
    assert sums.clipped == clipped


def test_oapl_regresses_the_log_ratio_of_a_completion_on_the_advantage():
    settings = LossSettings(objective="oapl", aggregation="sequences", oapl_beta=2.0, kl_coefficient=0)
    given = inputs([[1.1, 1.2, 7.0]], [0.5], mask=[[1, 1, 0]])
    sums = policy_loss(given, settings)
    sums.loss.backward()
    off = 2 * (log(1.1) + log(1.2)) - 0.5
    assert sums.loss.item() == pytest.approx(2 * off**2)  # on two tokens
    assert given.logprobs.grad[0, :2].tolist() == pytest.approx([2 * 2 * off * 2] * 2)
    assert given.logprobs.grad[0, 2] == 0


@pytest.mark.parametrize("objective", ["clipped", "gspo", "cispo", "oapl"])
def test_on_policy_every_objective_pushes_along_the_advantage(objective):
    settings = LossSettings(objective=objective, aggregation="sequences", clip_high=0.02, clip_low=0.01)
    given = inputs([[1.0, 1.0], [1.0, 1.0]], [1.0, -1.0])
    policy_loss(given, settings).loss.backward()
    assert (given.logprobs.grad[0] < 0).all()
    assert (given.logprobs.grad[1] > 0).all()
