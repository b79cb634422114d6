import math

import pytest

from smalt.credit.cobalt_reward import CobaltRewardSettings
from smalt.dialogue.chat import ChatFormat
from smalt.methods.cobalt import Cobalt, CobaltSettings
from smalt.methods.method import MethodTools
from tests.scripted import NO_CODE, RIGHT, WRONG, TrustedGrader, scripted_growth

THIRD = 1 / 3  # share of the problem's tests that WRONG passes
ALL_WRONG = "```python\ndef f(x):\n    return [0]\n```"


@pytest.fixture
def cobalt(tokenizer):
    return Cobalt(CobaltSettings(group_size=4), MethodTools(tokenizer))


@pytest.fixture
def thinking(tokenizer):
    return Cobalt(CobaltSettings(group_size=4), MethodTools(tokenizer, is_thinking_model=True))


def tree_of(chat, problem, cobalt, *replies, previous_best=0.0, broken=None):
    growth = scripted_growth(chat, replies, grader=TrustedGrader(broken))
    tree = growth.seed_of(problem)
    tree.previous_best = previous_best
    growth.grow([tree], cobalt.shape, seed=0)
    return tree


def rewards(chat, problem, cobalt, *replies, **options):
    padded = (*replies, *replies[-1:] * (4 - len(replies)))
    tree = tree_of(chat, problem, cobalt, *padded, **options)
    cobalt.credit(tree)
    return [node.reward for node in tree.children[: len(replies)]]


def test_g_siblings_of_each_context(cobalt):
    assert cobalt.shape.branching == (4,)


def test_programs_earn_by_the_tests_they_pass(chat, problem, cobalt):
    assert rewards(chat, problem, cobalt, RIGHT, WRONG, ALL_WRONG, NO_CODE) == [1.0, 0.0, -0.1, -1.0]


def test_the_previous_best_turns_standing_still_into_a_failure(chat, problem, cobalt):
    found = rewards(chat, problem, cobalt, RIGHT, WRONG, ALL_WRONG, previous_best=THIRD)
    assert found == pytest.approx([1.0, -0.1, -0.2])
    better = rewards(chat, problem, cobalt, WRONG, previous_best=0.1)
    assert better == pytest.approx([0.0 + 0.1 * (THIRD - 0.1) / 0.9])


def test_a_malformed_reply_loses_most_even_when_it_is_right(chat, problem, cobalt):
    two_blocks = f"{WRONG}\nor\n{RIGHT}"
    looping = f"{RIGHT}\n{'the same words over and over again. ' * 9}"
    assert rewards(chat, problem, cobalt, two_blocks, looping) == pytest.approx([0.1, 0.1])


def test_long_trailing_text_costs_a_little(chat, problem, tokenizer):
    rules = CobaltRewardSettings(trailing_tokens_limit=3)
    strict = Cobalt(CobaltSettings(group_size=4, reward=rules), MethodTools(tokenizer))
    assert rewards(chat, problem, strict, RIGHT, f"{RIGHT}\nThat is the program you want.") == pytest.approx([1, 0.99])


def test_a_model_that_does_not_think_need_not_close_its_thinking(chat, problem, cobalt, thinking):
    assert rewards(chat, problem, cobalt, RIGHT) == [1.0]
    assert rewards(chat, problem, thinking, RIGHT) == pytest.approx([0.1])


def test_a_thinking_model_closes_its_thinking_once(chat, problem, thinking):
    once, twice = f"<think>hm</think>{RIGHT}", f"<think>hm</think>no</think>{RIGHT}"
    assert rewards(chat, problem, thinking, once, twice) == pytest.approx([1.0, 0.1])


def test_thinking_pays_a_little_after_a_failure(chat, problem, thinking, tokenizer):
    thought = "wait, that is wrong: verify it"
    found = rewards(chat, problem, thinking, f"<think>{thought}</think>{ALL_WRONG}")
    tokens = len(tokenizer.encode(thought, add_special_tokens=False))
    assert found == pytest.approx([-0.1 + 0.075 * math.tanh(tokens / 1024) + 3 * 0.005])


def test_a_thought_that_the_template_opened_counts_as_opened(problem, tokenizer, thinking):
    import copy

    opening = copy.deepcopy(tokenizer)
    opening.chat_template = tokenizer.chat_template.replace("<|assistant|>{% endif", "<|assistant|><think>\n{% endif")
    found = rewards(ChatFormat(opening), problem, thinking, f"hm</think>{RIGHT}", f"never closed {RIGHT}")
    assert found == pytest.approx([1.0, -1.0])


def test_groups_carry_the_advantages_of_their_members(chat, problem, cobalt):
    tree = tree_of(chat, problem, cobalt, RIGHT, WRONG, WRONG, RIGHT)
    [group] = cobalt.credit(tree)
    assert group.prompt_ids == tree.root.ids
    assert group.completions == tuple(node.completion for node in tree.children)
    # Rewards 1, 0, 0, 1: mean 0.5, unbiased deviation sqrt(1/3).
    assert group.advantages == pytest.approx([0.5 * 3**0.5 * sign for sign in (1, -1, -1, 1)], rel=1e-4)


def test_members_on_which_the_grader_failed_leave_the_group(chat, problem, cobalt):
    tree = tree_of(chat, problem, cobalt, RIGHT, WRONG, NO_CODE, WRONG, broken="x[:-1]")
    [group] = cobalt.credit(tree)
    assert [node.reward for node in tree.children] == [1.0, None, -1.0, None]
    assert group.completions == (tree.children[0].completion, tree.children[2].completion)
    assert group.advantages == pytest.approx([0.5**0.5, -(0.5**0.5)], rel=1e-4)


@pytest.mark.parametrize(
    ("replies", "broken"),
    [([RIGHT] * 4, None), ([NO_CODE] * 4, None), ([RIGHT, WRONG, WRONG, WRONG], "x[:-1]"), ([WRONG] * 4, "x[:-1]")],
)
def test_without_a_difference_there_is_no_group(chat, problem, cobalt, replies, broken):
    assert cobalt.credit(tree_of(chat, problem, cobalt, *replies, broken=broken)) == []


def test_a_prompt_that_was_too_long_gives_no_group(chat, problem, cobalt):
    assert cobalt.credit(scripted_growth(chat).seed_of(problem)) == []


def test_validation_counts_full_solutions_only(chat, problem, cobalt):
    tree = tree_of(chat, problem, cobalt, RIGHT, WRONG, ALL_WRONG, NO_CODE)
    assert [cobalt.validation_score(node) for node in tree.children] == [1, 0, 0, 0]


def test_replies_that_open_with_our_own_fence_have_one_block(tokenizer, problem, cobalt):
    chat = ChatFormat(tokenizer, reply_prefix="```python\n")
    body = RIGHT.removeprefix("```python\n")
    assert rewards(chat, problem, cobalt, body, body.removesuffix("```")) == pytest.approx([1.0, 0.1])
