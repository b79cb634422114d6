"""MURPHY's tree, credit and pruning on scripted replies; the arithmetic has tests of its own in tests/credit."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smalt.credit.advantages import group_advantages, has_signal
from smalt.methods.murphy import Murphy, MurphySettings
from tests.methods.trees import ALL_WRONG, BROKEN, HALF, THIRD, grow, names
from tests.scripted import NO_CODE, RIGHT, WRONG, SeededSampler, growth_with


def murphy(**options):
    return Murphy(MurphySettings(**{"group_size": 2, "turns": 2, **options}))


def credited(chat, problem, method, *levels, **options):
    tree = grow(chat, problem, method, *levels, **options)
    return tree, method.credit(tree)


def credits(nodes):
    return [node.credit for node in nodes]


def test_every_program_below_the_maximum_is_revised(chat, problem):
    tree = grow(chat, problem, murphy(turns=3), [RIGHT, WRONG], [NO_CODE, RIGHT], [RIGHT, WRONG])
    assert [names(group) for group in tree.groups()] == ["RW", "-R", "RW"]


def test_a_program_that_passes_public_tests_only_is_revised_unless_told_otherwise(chat, problem):
    tree = grow(chat, problem, murphy(), [RIGHT, HALF], [RIGHT, RIGHT])
    assert [names(group) for group in tree.groups()] == ["RH", "RR"]
    tree = grow(chat, problem, murphy(revises="public_failures"), [RIGHT, HALF], [])
    assert [names(group) for group in tree.groups()] == ["RH"]


def test_a_program_on_which_the_grader_failed_is_not_revised(chat, problem):
    tree = grow(chat, problem, murphy(), [RIGHT, BROKEN], [], broken="list(x)")
    assert [names(group) for group in tree.groups()] == ["RB"]


def test_mars_gives_a_failure_what_its_best_revision_got(chat, problem):
    tree, groups = credited(chat, problem, murphy(), [NO_CODE, ALL_WRONG], [RIGHT, WRONG, WRONG, ALL_WRONG])
    assert credits(tree.children) == pytest.approx([1, THIRD])
    assert [node.reward for node in tree.children] == [0, 0]
    assert [group.turn for group in groups] == [1, 2, 2]
    # Two members: +-(difference / 2) / (difference / sqrt 2) = +-sqrt(1/2).
    assert all(group.advantages == pytest.approx((0.5**0.5, -(0.5**0.5)), rel=1e-4) for group in groups)


def test_mers_gives_the_discounted_mean(chat, problem):
    method = murphy(credit="mers", gamma=0.9)
    tree, _ = credited(chat, problem, method, [RIGHT, WRONG], [RIGHT, NO_CODE])
    assert credits(tree.children) == pytest.approx([1, (THIRD + 0.9 * 0.5) / 2])
    assert credits(tree.children[1].children) == [1, 0]


def test_nested_mers_divides_at_every_turn(chat, problem):
    levels = [RIGHT, NO_CODE], [RIGHT, NO_CODE], [RIGHT, NO_CODE]
    once, _ = credited(chat, problem, murphy(turns=3, credit="mers", gamma=1.0), *levels)
    nested, _ = credited(chat, problem, murphy(turns=3, credit="mers", gamma=1.0, normalisation="nested"), *levels)
    # Turn 2: 1 and (0 + 1/2) / 2; turn 1: (0 + mean) / 3, the mean over sums 1 and 1/2, or over credits 1 and 1/4.
    assert once.children[1].credit == pytest.approx(0.75 / 3)
    assert nested.children[1].credit == pytest.approx(0.625 / 3)


def test_without_credit_a_first_turn_of_failures_teaches_nothing(chat, problem):
    levels = [NO_CODE, ALL_WRONG], [RIGHT, WRONG, WRONG, WRONG]
    tree, groups = credited(chat, problem, murphy(credit="none"), *levels)
    assert credits(tree.nodes()) == [node.reward for node in tree.nodes()]
    assert [group.turn for group in groups] == [2]
    _, groups = credited(chat, problem, murphy(), *levels)
    assert [group.turn for group in groups] == [1, 2]


def test_history_is_prompt_and_carries_no_loss(chat, problem):
    tree, groups = credited(chat, problem, murphy(), [RIGHT, WRONG], [RIGHT, WRONG])
    [second] = groups  # both first programs have credit 1
    assert second.turn == 2
    assert second.prompt_ids == tree.children[1].children[0].prompt.ids
    assert second.prompt_ids[: len(tree.root.ids)] == tree.root.ids
    assert second.completions == tuple(node.completion for node in tree.children[1].children)


def test_inter_group_pruning_keeps_the_most_varied_groups_of_a_turn(chat, problem):
    levels = [ALL_WRONG, WRONG], [WRONG, ALL_WRONG, RIGHT, ALL_WRONG]
    whole, everything = credited(chat, problem, murphy(), *levels)
    pruned, kept = credited(chat, problem, murphy(group_budget=1), *levels)
    assert [group.turn for group in everything] == [1, 2, 2]
    assert [group.turn for group in kept] == [1, 2]
    assert kept[1].completions == tuple(node.completion for node in pruned.children[1].children)
    assert credits(pruned.nodes()) == credits(whole.nodes())


def test_intra_group_pruning_keeps_both_ends(chat, problem):
    method = murphy(group_size=4, member_budget=2, revises="public_failures")
    tree, groups = credited(chat, problem, method, [HALF, RIGHT, NO_CODE, HALF], [WRONG] * 4)
    assert groups[0].completions == (tree.children[1].completion, tree.children[2].completion)
    assert credits(tree.children) == pytest.approx([2 * THIRD, 1, THIRD, 2 * THIRD])
    assert sorted(groups[0].advantages) == pytest.approx([-(0.5**0.5), 0.5**0.5], rel=1e-4)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 1000),
    credit=st.sampled_from(["mars", "mers", "none"]),
    group_budget=st.sampled_from([None, 1, 2]),
    member_budget=st.sampled_from([None, 2]),
)
def test_pruning_never_changes_the_credit_of_what_stays(chat, problem, seed, credit, group_budget, member_budget):
    shape = {"group_size": 3, "turns": 3, "credit": credit}
    plain = murphy(**shape)
    pruning = murphy(**shape, group_budget=group_budget, member_budget=member_budget)
    growth = growth_with(chat, SeededSampler(chat.tokenizer, (RIGHT, WRONG, NO_CODE, HALF)))
    tree = growth.seed_of(problem)
    growth.grow([tree], plain.shape, seed)
    unpruned = plain.credit(tree)
    before = credits(tree.nodes())
    groups = pruning.credit(tree)
    assert credits(tree.nodes()) == before
    assert {c for g in groups for c in map(id, g.completions)} <= {c for g in unpruned for c in map(id, g.completions)}
    by_completion = {id(node.completion): node.credit for node in tree.nodes()}
    for group in groups:
        kept = [by_completion[id(completion)] for completion in group.completions]
        assert has_signal(kept)
        assert group.advantages == pytest.approx(group_advantages(kept))
        assert member_budget is None or len(kept) <= member_budget


def test_a_prompt_that_did_not_fit_leaves_its_program_with_its_own_reward(chat, problem):
    length = len(grow(chat, problem, murphy(), [WRONG, RIGHT], [WRONG, WRONG]).children[0].children[0].prompt.ids)
    tree, _ = credited(chat, problem, murphy(credit="mers"), [WRONG, RIGHT], [], context=length - 1)
    assert credits(tree.children) == pytest.approx([THIRD, 1])
