"""Group advantages: worked examples, samples that left, and what normalisation promises."""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smalt.credit.advantages import group_advantages, has_signal


@pytest.mark.parametrize(
    ("rewards", "expected"),
    [
        ([], []),
        ([0.7], [0.0]),
        ([0.7, 0.7, 0.7], [0.0, 0.0, 0.0]),
        ([1.0, 0.0], [math.sqrt(0.5), -math.sqrt(0.5)]),
        ([1.0, 0.0, 0.0, 0.0], [1.5, -0.5, -0.5, -0.5]),
        ([1.0, None, 0.0], [math.sqrt(0.5), 0.0, -math.sqrt(0.5)]),
        ([1.0, math.nan, 0.0], [math.sqrt(0.5), 0.0, -math.sqrt(0.5)]),
        ([1.0, None], [0.0, 0.0]),
        ([None, None], [0.0, 0.0]),
    ],
)
def test_worked_examples(rewards, expected):
    assert group_advantages(rewards) == pytest.approx(expected, abs=1e-5)


def test_eps_is_added_to_the_deviation():
    assert group_advantages([1.0, 0.0], eps=1.0)[0] == pytest.approx(0.5 / (math.sqrt(0.5) + 1))


@pytest.mark.parametrize(
    ("rewards", "expected"),
    [
        ([], False),
        ([1.0], False),
        ([1.0, 1.0], False),
        ([1.0, 0.9], True),
        ([1.0, None, math.nan], False),
        ([0.1 + 0.2, 0.3], False),  # they differ by rounding only
        ([0.0, 1e-7], True),
    ],
)
def test_signal(rewards, expected):
    assert has_signal(rewards) is expected


def test_infinite_rewards_are_refused():
    with pytest.raises(ValueError, match="infinite"):
        group_advantages([0.0, math.inf])


rewards = st.lists(st.integers(-100, 100).map(lambda points: points / 100), min_size=1, max_size=16)


@given(rewards)
def test_zero_mean_unit_deviation_same_order(group):
    advantages = group_advantages(group)
    assert math.fsum(advantages) == pytest.approx(0.0, abs=1e-9)
    if not has_signal(group):
        assert advantages == [0.0] * len(group)
        return
    assert statistics.stdev(advantages) == pytest.approx(1.0, abs=1e-3)
    for one, advantage in zip(group, advantages, strict=True):
        for other, other_advantage in zip(group, advantages, strict=True):
            assert one <= other or advantage > other_advantage


@given(rewards, st.lists(st.integers(0, 16), max_size=4))
def test_samples_that_left_change_nothing(group, places):
    with_gaps: list[float | None] = list(group)
    for place in places:
        with_gaps.insert(min(place, len(with_gaps)), None)
    kept = [
        advantage
        for reward, advantage in zip(with_gaps, group_advantages(with_gaps), strict=True)
        if reward is not None
    ]
    assert kept == group_advantages(group)
