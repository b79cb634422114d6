"""MARS and MERS: the worked example of METHODS 2, and what holds for every tree."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smalt.credit.propagation import Earned, mars, mers, mers_nested

TURN_1 = (1.0, 0.0, 0.0, 0.5)
CHILDREN = ((), (1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0), (1.0, 1.0, 0.5, 0.5))
EXAMPLE = [
    Earned(own, tuple(Earned(reward) for reward in children)) for own, children in zip(TURN_1, CHILDREN, strict=True)
]

rewards = st.floats(0, 1)
maybe = st.one_of(st.none(), rewards)


def trees(levels):
    """Trees of at most so many levels, leaves at any of them, some rewards missing."""
    if levels == 1:
        return st.builds(Earned, maybe)
    return st.builds(Earned, maybe, st.lists(trees(levels - 1), max_size=2).map(tuple))


def every_node(node, level=1):
    yield node, level
    for child in node.children:
        yield from every_node(child, level + 1)


def test_the_worked_example():
    assert [mars(node) for node in EXAMPLE] == [1, 1, 0, 1]
    assert [mers(node, 2, 1.0) for node in EXAMPLE] == [1, 0.125, 0, 0.625]
    assert [mers_nested(node, 2, 1.0) for node in EXAMPLE] == [1, 0.125, 0, 0.625]


def test_a_discount_by_hand():
    # (0.5 + 0.9 * 0.75) / 2
    assert mers(EXAMPLE[3], 2, 0.9) == pytest.approx(0.5875)
    assert mers(EXAMPLE[3], 2, 0.0) == pytest.approx(0.25)


def test_the_two_normalisations_differ_from_three_turns_on():
    chain = Earned(0.0, (Earned(0.0, (Earned(1.0),)),))
    assert mers(chain, 3, 0.9) == pytest.approx(0.9**2 / 3)
    assert mers_nested(chain, 3, 0.9) == pytest.approx(0.9**2 / 6)


def test_a_program_solved_early_keeps_its_reward_and_passes_it_on_once():
    parent = Earned(0.0, (Earned(1.0),))
    assert mers(parent.children[0], 2, 0.9) == 1.0
    assert mers(parent, 3, 0.9) == pytest.approx(0.9 / 3)


def test_the_grader_failing_below_says_nothing():
    assert mers(Earned(0.5, (Earned(None), Earned(None))), 2, 1.0) == 0.5
    assert mers(Earned(0.5, (Earned(None), Earned(1.0))), 2, 1.0) == 0.75
    assert mers_nested(Earned(0.5, (Earned(None), Earned(1.0))), 2, 1.0) == 0.75
    assert mars(Earned(0.5, (Earned(None), Earned(0.75)))) == 0.75
    assert mars(Earned(None, (Earned(1.0),))) is None
    assert mers(Earned(None, (Earned(1.0),)), 2, 1.0) is None


@settings(deadline=None)
@given(trees(4))
def test_mars_is_never_below_the_own_reward(tree):
    for node, _ in every_node(tree):
        credit = mars(node)
        assert (credit is None) is (node.reward is None)
        assert credit is None or 1 >= credit >= node.reward


@settings(deadline=None)
@given(trees(4), st.floats(0, 1), st.sampled_from([mers, mers_nested]))
def test_mers_stays_in_the_unit_interval(tree, gamma, formula):
    for node, level in every_node(tree):
        credit = formula(node, 4 - level + 1, gamma)
        assert credit is None or -1e-12 <= credit <= 1 + 1e-12


@settings(deadline=None)
@given(st.lists(rewards, min_size=1, max_size=6), st.floats(0, 1))
def test_the_credit_of_a_chain_is_the_closed_form(chain, gamma):
    node = None
    for reward in reversed(chain):
        node = Earned(reward, (node,) if node else ())
    turns = len(chain)
    assert mers(node, turns, gamma) == pytest.approx(sum(gamma**k * r for k, r in enumerate(chain)) / turns)
    assert mars(node) == max(chain)


@settings(deadline=None)
@given(rewards, st.lists(rewards, min_size=1, max_size=5), st.floats(0, 1))
def test_both_normalisations_agree_for_two_turns(own, children, gamma):
    node = Earned(own, tuple(map(Earned, children)))
    assert mers(node, 2, gamma) == pytest.approx(mers_nested(node, 2, gamma))
