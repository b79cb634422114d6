import pytest

from smalt.credit.advantage_settings import AdvantageSettings, OverlongSettings
from smalt.credit.estimators import Estimator
from smalt.methods.grpo import GRPO, GRPOSettings
from smalt.methods.method import MethodTools
from tests.methods.trees import ALL_WRONG, THIRD, grow
from tests.scripted import NO_CODE, RIGHT, WRONG


def grpo(tools=None, **options):
    return GRPO(GRPOSettings(group_size=4, **options), tools or MethodTools())


def test_it_starts_at_the_bare_problem_and_samples_one_turn():
    assert grpo().shape.branching == (4,)
    assert GRPO.starts_at == "problem"


def test_programs_earn_the_share_of_tests_they_pass(chat, problem):
    tree = grow(chat, problem, grpo(), [RIGHT, WRONG, ALL_WRONG, NO_CODE])
    [group] = grpo().credit(tree)
    assert [node.reward for node in tree.children] == pytest.approx([1, THIRD, 0, 0])
    mean, std = 1 / 3, ((4 / 9 + 0 + 1 / 9 + 1 / 9) / 3) ** 0.5
    assert group.advantages == pytest.approx([(r - mean) / std for r in (1, THIRD, 0, 0)], abs=1e-5)
    assert group.prompt_ids == tree.root.ids
    assert group.turn == 1


def test_or_all_or_nothing(chat, problem):
    method = grpo(reward="all_tests")
    tree = grow(chat, problem, method, [RIGHT, WRONG, ALL_WRONG, NO_CODE])
    method.credit(tree)
    assert [node.reward for node in tree.children] == [1, 0, 0, 0]
    assert method.credit(grow(chat, problem, method, [WRONG, ALL_WRONG, NO_CODE, WRONG])) == []


def test_the_grader_failing_takes_a_member_out(chat, problem):
    tree = grow(chat, problem, grpo(), [RIGHT, WRONG, NO_CODE, WRONG], broken="x[:-1]")
    [group] = grpo().credit(tree)
    assert [node.credit for node in tree.children] == [1, None, 0, None]
    assert len(group.completions) == len(group.advantages) == 2


def test_long_completions_pay_when_asked_to(chat, problem):
    tools = MethodTools(overlong=OverlongSettings(max_tokens=20, cache_tokens=20))
    tree = grow(chat, problem, grpo(), [RIGHT, RIGHT, RIGHT, NO_CODE])
    grpo(tools).credit(tree)
    tokens = [len(node.completion.ids) for node in tree.children]
    assert [n.reward for n in tree.children[:3]] == pytest.approx([1 - min(1, tokens[0] / 20)] * 3)
    assert tree.children[3].reward == pytest.approx(-min(1, tokens[3] / 20))
    assert tree.children[3].reward_parts == pytest.approx((0, -min(1, tokens[3] / 20)))


def test_the_estimator_is_the_recipes_choice(chat, problem):
    tools = MethodTools(estimator=Estimator(AdvantageSettings(estimator="rloo", keep_members=2)))
    tree = grow(chat, problem, grpo(), [RIGHT, WRONG, ALL_WRONG, WRONG])
    [group] = grpo(tools).credit(tree)
    assert group.completions == (tree.children[0].completion, tree.children[2].completion)
    assert group.advantages == (1.0, -1.0)
