"""The loss against numbers worked by hand."""

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
