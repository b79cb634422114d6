from math import exp

import pytest

from smalt.methods.verpo_mt import VeRPOMT, VeRPOMTSettings
from tests.methods.trees import ALL_WRONG, BROKEN, grow
from tests.scripted import NO_CODE, RIGHT, WRONG


def verpo(**options):
    return VeRPOMT(VeRPOMTSettings(**{"group_size": 2, "turns": 2, "alpha": 1.0, "beta": 0.5, "gamma": 0.9, **options}))


def test_turns_earn_by_tests_and_dialogues_by_their_outcome(chat, problem):
    tree = grow(chat, problem, verpo(), [RIGHT, WRONG], [NO_CODE])
    groups = verpo().credit(tree)
    # Three turns; public [1,2,3], hidden [4,5] and []. WRONG passes the last test only: shares 1/3, 1/3, 2/3.
    hard, easy = exp(-1 / 3), exp(-2 / 3)
    rewards = [2 * hard + easy, easy, 0]
    assert [node.reward for node in tree.nodes()] == pytest.approx(rewards)
    mean = sum(rewards) / 3
    # Outcomes 0.9 and 0: mean 0.45.
    first, second, third = (o + 0.5 * (r - mean) for o, r in zip((0.45, -0.45, -0.45), rewards, strict=True))
    assert [group.advantages for group in groups] == [pytest.approx((first, second)), pytest.approx((third,))]
    assert [group.turn for group in groups] == [1, 2]


def test_the_density_term_shares_a_weight_among_tests_as_hard(chat, problem):
    method = verpo(divides_by_density=True, sigma=0.01, delta=0.0)
    tree = grow(chat, problem, method, [RIGHT, WRONG], [NO_CODE])
    method.credit(tree)
    # Two tests with share 1/3 are one kind, so each has half its weight.
    assert tree.children[0].reward == pytest.approx(exp(-1 / 3) + exp(-2 / 3))


def test_without_the_turn_term_only_the_outcome_counts(chat, problem):
    method = verpo(beta=0.0)
    tree = grow(chat, problem, method, [RIGHT, ALL_WRONG], [WRONG])
    assert [group.advantages for group in method.credit(tree)] == [
        pytest.approx((0.45, -0.45)),
        pytest.approx((-0.45,)),
    ]


def test_partial_progress_is_a_signal_where_nothing_is_solved(chat, problem):
    tree = grow(chat, problem, verpo(), [WRONG, NO_CODE], [ALL_WRONG, ALL_WRONG])
    assert verpo().credit(tree)
    assert verpo(beta=0.0).credit(grow(chat, problem, verpo(), [WRONG, NO_CODE], [ALL_WRONG, ALL_WRONG])) == []


def test_nothing_differs_or_too_little_is_left(chat, problem):
    assert verpo().credit(grow(chat, problem, verpo(), [NO_CODE] * 2, [NO_CODE] * 2)) == []
    broken = grow(chat, problem, verpo(), [BROKEN, RIGHT], [RIGHT], broken="list(x)")
    assert verpo().credit(broken) == []
    assert verpo().credit(grow(chat, problem, verpo(), [], [], context=5)) == []
