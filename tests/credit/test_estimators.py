"""Each formula against numbers worked by hand, and what the estimator does around it."""

from math import exp, log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smalt.credit.advantage_settings import AdvantageSettings, OverlongSettings
from smalt.credit.advantages import group_advantages, has_signal
from smalt.credit.estimators import (
    Estimator,
    centred_advantages,
    decoupled_advantages,
    leave_one_out,
    overlong_penalty,
    persistent_advantages,
    soft_value_advantages,
    whitened,
)

rewards = st.lists(st.floats(-1, 1), min_size=2, max_size=12)


def estimator(name="grpo", **options):
    return Estimator(AdvantageSettings(estimator=name, **options))


def test_dr_grpo_centres_and_does_not_divide():
    assert centred_advantages([1, 0, 0, 0.5]) == pytest.approx([0.625, -0.375, -0.375, 0.125])


def test_rloo_leaves_the_member_itself_out():
    # Others of the first: 0, 0, 0.5, mean 1/6; of the last: 1, 0, 0, mean 1/3.
    assert leave_one_out([1, 0, 0, 0.5]) == pytest.approx([5 / 6, -0.5, -0.5, 1 / 6])


@settings(deadline=None)
@given(rewards)
def test_rloo_is_dr_grpo_times_n_over_n_minus_1(values):
    scale = len(values) / (len(values) - 1)
    assert leave_one_out(values) == pytest.approx([scale * a for a in centred_advantages(values)], abs=1e-12)


def test_gdpo_keeps_apart_what_a_sum_makes_equal():
    # Rewards (1, 0), (0, 1), (1, 1), (0, 0): GRPO on the sums cannot tell the first two from each other or from
    # what they are; each reward by itself has mean 0.5 and deviation sqrt(1/3).
    unit = 0.5 * 3**0.5
    assert decoupled_advantages([[1, 0, 1, 0], [0, 1, 1, 0]]) == pytest.approx([0, 0, 2 * unit, -2 * unit], rel=1e-4)
    # A rare large reward and a common small one weigh alike.
    first, second = decoupled_advantages([[10, 0], [0, 0.1]])
    assert first == pytest.approx(0, abs=1e-4)
    assert second == pytest.approx(0, abs=1e-4)


def test_gdpo_has_a_signal_where_the_sums_are_equal():
    found = estimator("gdpo")([1.0, 1.0, 1.0], [(1.0, 0.0), (0.0, 1.0), (1.0, 0.0)])
    assert found == pytest.approx([0.0, 0.0, 0.0], abs=1e-6)
    assert None not in found
    assert estimator("gdpo")([1.0, 1.0], [(1.0, 0.0), (1.0, 0.0)]) == [None, None]


def test_oapl_subtracts_the_soft_value():
    # V = log((e^1 + e^0) / 2)
    value = log((exp(1) + 1) / 2)
    assert soft_value_advantages([1, 0], 1.0) == pytest.approx([1 - value, -value])
    assert soft_value_advantages([1, 0], 2.0) == pytest.approx(
        [1 - 2 * log((exp(0.5) + 1) / 2), -2 * log((exp(0.5) + 1) / 2)]
    )


@settings(deadline=None)
@given(rewards, st.floats(1e-3, 1e3))
def test_the_soft_value_lies_between_mean_and_maximum(values, beta):
    value = values[0] - soft_value_advantages(values, beta)[0]
    assert sum(values) / len(values) - 1e-9 <= value <= max(values) + 1e-9


def test_ngu_balances_what_is_kept():
    # 1 success in 8 tries, four of them forgotten: baseline 1/8; the success keeps 7/8, the three kept failures
    # share -7/8 between them.
    found = persistent_advantages([1, 0, 0, 0], [0, 0, 0, 0])
    assert found == pytest.approx([7 / 8, -7 / 24, -7 / 24, -7 / 24])
    assert persistent_advantages([1, 0, 0, 0]) == pytest.approx(centred_advantages([1, 0, 0, 0]))


@settings(deadline=None)
@given(rewards.filter(has_signal), st.lists(st.floats(-1, -0.5), max_size=6))
def test_ngu_sums_to_nought(values, forgotten):
    found = persistent_advantages(values, forgotten)
    has_loser = min(found) < 0
    assert sum(found) == pytest.approx(0, abs=1e-9) or not has_loser


def test_whitening_by_hand():
    # Mean 1, deviation sqrt(((-2)^2 + 0 + 2^2) / 2) = 2.
    assert whitened([-1, 1, 3]) == pytest.approx([-1, 0, 1], rel=1e-5)
    assert whitened([2.0]) == [0.0]
    assert whitened([]) == []
    assert whitened([0.3, 0.3]) == [0.0, 0.0]


@pytest.mark.parametrize(("tokens", "penalty"), [(0, 0), (60, 0), (70, -0.25), (80, -0.5), (100, -1), (150, -1)])
def test_dapos_overlong_penalty(tokens, penalty):
    assert overlong_penalty(tokens, OverlongSettings(max_tokens=100, cache_tokens=40)) == pytest.approx(penalty)


def test_an_overlong_cache_is_part_of_the_length():
    with pytest.raises(ValueError, match="cache_tokens is 5, more than max_tokens, 4"):
        OverlongSettings(max_tokens=4, cache_tokens=5)


def test_by_default_it_is_grpo():
    values = [1.0, 0.0, 0.25]
    assert Estimator()(values) == group_advantages(values)


def test_failures_of_the_grader_do_not_train_and_do_not_count():
    assert estimator("dr_grpo")([1.0, None, 0.0]) == [0.5, None, -0.5]
    assert estimator("rloo")([None, 1.0, None]) == [None, None, None]


@pytest.mark.parametrize("name", ["grpo", "dr_grpo", "rloo", "reinforce_plus_plus", "gdpo", "oapl", "ngu"])
def test_without_a_difference_nobody_trains(name):
    assert estimator(name)([0.5, 0.5, None]) == [None, None, None]


def test_down_sampling_keeps_both_ends_and_compares_those():
    found = estimator("dr_grpo", keep_members=2)([0.5, 1.0, None, 0.4, 0.0])
    assert found == [None, 0.5, None, None, -0.5]
    assert estimator("dr_grpo", keep_members=3)([1.0, 0.0]) == [0.5, -0.5]


def test_oapl_takes_the_losss_temperature():
    found = Estimator(AdvantageSettings(estimator="oapl"), oapl_beta=2.0)([1.0, 0.0])
    assert found == soft_value_advantages([1.0, 0.0], 2.0)


def test_ngu_counts_what_was_forgotten():
    assert estimator("ngu")([1.0, 0.0], forgotten=(0.0, 0.0)) == pytest.approx([0.75, -0.75])


@pytest.mark.parametrize(("name", "whitens"), [("grpo", False), ("reinforce_plus_plus", True), ("gdpo", True)])
def test_which_estimators_whiten_the_batch(name, whitens):
    assert estimator(name).whitens_batch is whitens
