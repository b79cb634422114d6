"""VeRPO's parts on one small group, worked by hand."""

from math import exp

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smalt.credit.verpo import (
    discounted_outcome,
    hardness_densities,
    hardness_weights,
    passing_shares,
    turn_advantages,
    turn_rewards,
)

# Two trajectories, of two turns and of one; two tests.
TURNS = [(True, False), (True, True), (True, False)]


def test_shares_weights_and_rewards():
    shares = passing_shares(TURNS)
    assert shares == pytest.approx([1.0, 1 / 3])
    weights = hardness_weights(shares, alpha=2.0)
    assert weights == pytest.approx([exp(-2), exp(-2 / 3)])
    assert turn_rewards(TURNS, weights) == pytest.approx([exp(-2), exp(-2) + exp(-2 / 3), exp(-2)])
    assert hardness_weights(shares, alpha=0.0) == [1.0, 1.0]


def test_densities_count_tests_that_are_as_hard():
    near = exp(-(0.1**2) / (2 * 0.1**2))
    assert hardness_densities([0.5, 0.6, 1.0], sigma=0.1, delta=0.01) == pytest.approx(
        [1.01 + near + exp(-12.5), 1.01 + near + exp(-8), 1.01 + exp(-12.5) + exp(-8)]
    )


def test_the_outcome_is_discounted_by_the_turns_it_took():
    assert [discounted_outcome(*case) for case in ((True, 1, 0.9), (True, 2, 0.9), (False, 2, 0.9))] == pytest.approx(
        [0.9, 0.81, 0.0]
    )


def test_advantages_add_outcome_and_turn_without_dividing():
    # Outcomes 0.81 and 0: mean 0.405. Turn rewards 1, 2, 1: mean 4/3.
    found = turn_advantages([0.81, 0.0], [[1.0, 2.0], [1.0]], beta=0.5)
    assert found[0] == pytest.approx([0.405 - 1 / 6, 0.405 + 1 / 3])
    assert found[1] == pytest.approx([-0.405 - 1 / 6])


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.lists(st.floats(0, 5), min_size=1, max_size=4)), min_size=1))
def test_turn_parts_sum_to_nought(trajectories):
    outcomes, rewards = zip(*trajectories, strict=True)
    with_turns, without = (turn_advantages(outcomes, rewards, beta) for beta in (1.0, 0.0))
    parts = [a - b for one, other in zip(with_turns, without, strict=True) for a, b in zip(one, other, strict=True)]
    assert sum(parts) == pytest.approx(0, abs=1e-9)
