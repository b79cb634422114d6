"""Multi-turn best-of-N: who goes on, and what of it the trajectories show."""

import pytest

from smalt.rollouts.best_of import choose_best, no_scores
from smalt.rollouts.collection import trajectories_of
from smalt.rollouts.growth import Shape, stop_at_public_pass
from tests.conftest import drop_first
from tests.scripted import NO_CODE, RIGHT, WRONG, TrustedGrader, scripted_growth

EMPTY_ONLY = "```python\ndef f(x):\n    return x[1:] if x else [7]\n```"  # passes all but one hidden test
BROKEN = "```python\ndef f(x):\n    return list(x)[1:]\n```"


def grown(chat, problem, shape, *levels, scores=no_scores, **options):
    growth = scripted_growth(chat, *levels, scores=scores, **options)
    tree = growth.seed_of(problem)
    growth.grow([tree], shape, seed=0)
    return tree, growth


def replies(nodes):
    return [node.reply for node in nodes]


def test_each_turn_draws_some_and_goes_on_with_the_best(chat, problem):
    tree, growth = grown(chat, problem, Shape.chains(1, 2, best_of=2), [NO_CODE, WRONG], [WRONG, RIGHT])
    first, second = growth.sampler.requests
    assert [request.count for request in first] == [2]
    assert [request.count for request in second] == [2]
    assert [node.is_chosen for node in tree.nodes()] == [False, True, False, True]
    [trajectory] = trajectories_of([tree], growth)
    assert [turn.reply for turn in trajectory.turns] == [WRONG, RIGHT]


def test_several_dialogues_choose_among_their_own_draws(chat, problem):
    tree, growth = grown(chat, problem, Shape.chains(2, 1, best_of=2), [RIGHT, RIGHT, WRONG, NO_CODE])
    assert replies(node for node in tree.children if node.is_chosen) == [RIGHT, WRONG]
    assert [t.sample for t in trajectories_of([tree], growth)] == [0, 1]


def test_a_chosen_leaf_ends_its_dialogue(chat, problem):
    tree, growth = grown(chat, problem, Shape.chains(1, 3, stop_at_public_pass, 2), [WRONG, RIGHT], [], [])
    assert [len(asked) for asked in growth.sampler.requests] == [1, 0, 0]
    [trajectory] = trajectories_of([tree], growth)
    assert len(trajectory.turns) == 1


def test_public_tests_come_first_then_the_score_then_the_order(chat):
    two_public = drop_first(public_tests=drop_first().public_tests * 2)
    prefer_later = lambda nodes: list(range(len(nodes)))  # noqa: E731
    tree, _ = grown(chat, two_public, Shape.group(4), [RIGHT, RIGHT, WRONG, NO_CODE])
    for scores, best in ((no_scores, 0), (prefer_later, 1)):
        choose_best(tree.children, 4, scores)
        assert [node.is_chosen for node in tree.children] == [place == best for place in range(4)]


def test_hidden_tests_are_not_looked_at(chat, problem):
    tree, _ = grown(chat, problem, Shape.group(2), [EMPTY_ONLY, RIGHT])
    choose_best(tree.children, 2, no_scores)
    assert [node.is_chosen for node in tree.children] == [True, False]


def test_what_has_no_verdict_is_chosen_last(chat, problem):
    tree, _ = grown(chat, problem, Shape.group(3), [NO_CODE, BROKEN, WRONG], grader=TrustedGrader("list(x)"))
    choose_best(tree.children, 3, no_scores)
    assert [node.is_chosen for node in tree.children] == [False, False, True]


@pytest.mark.parametrize("turns", [1, 3])
def test_best_of_one_is_a_plain_dialogue(turns):
    assert Shape.chains(4, turns) == Shape.chains(4, turns, best_of=1)
    assert Shape.chains(4, turns).branching == (4, *(1,) * (turns - 1))
