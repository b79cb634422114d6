import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smalt.credit.turn_returns import penalised, turn_rewards, undiscounted_returns


@pytest.mark.parametrize(
    ("has_code", "is_solved", "rewards"),
    [
        ([True], True, [1]),
        ([False], False, [-1]),
        ([False, True, True], True, [-0.2, 0, 1]),
        ([True, False], False, [0, -1]),
    ],
)
def test_the_last_turn_decides_and_missing_code_costs(has_code, is_solved, rewards):
    assert turn_rewards(has_code, is_solved, no_code_reward=-0.2) == rewards


def test_returns_sum_what_follows():
    assert undiscounted_returns([-0.2, 0.0, 1.0]) == pytest.approx([0.8, 1.0, 1.0])
    assert undiscounted_returns([]) == []


def test_the_penalty_is_part_of_the_reward():
    assert penalised([0.0, 1.0], [2.0, -1.0], coefficient=0.05) == pytest.approx([-0.1, 1.05])


@settings(deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=1))
def test_each_return_is_its_reward_and_the_next_return(rewards):
    returns = undiscounted_returns(rewards)
    assert returns[-1] == rewards[-1]
    for reward, now, later in zip(rewards, returns, returns[1:], strict=False):
        assert now == pytest.approx(reward + later)
