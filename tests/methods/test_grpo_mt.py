import pytest

from smalt.credit.advantage_settings import OverlongSettings
from smalt.methods.grpo_mt import GRPOMT, GRPOMTSettings
from smalt.methods.method import MethodTools
from tests.methods.trees import BROKEN, grow
from tests.scripted import NO_CODE, RIGHT, WRONG


@pytest.fixture
def method():
    return GRPOMT(GRPOMTSettings(group_size=3, turns=3))


def test_it_grows_dialogues_that_end_at_the_first_public_pass(chat, problem, method):
    tree = grow(chat, problem, method, [RIGHT, WRONG, NO_CODE], [RIGHT, WRONG], [WRONG])
    assert [len(chain) for chain in tree.chains()] == [1, 2, 3]


def test_the_outcome_of_a_dialogue_is_on_each_of_its_turns(chat, problem, method):
    tree = grow(chat, problem, method, [RIGHT, WRONG, NO_CODE], [RIGHT, WRONG], [WRONG])
    groups = method.credit(tree)
    # Outcomes 1, 1, 0: mean 2/3, unbiased deviation sqrt(1/3).
    good, bad = (1 / 3) / (1 / 3) ** 0.5, (-2 / 3) / (1 / 3) ** 0.5
    assert [group.turn for group in groups] == [1, 2, 2, 3]
    assert [group.advantages for group in groups] == [
        pytest.approx(expected, rel=1e-4) for expected in ((good, good, bad), (good,), (bad,), (bad,))
    ]
    assert [[node.credit for node in chain] for chain in tree.chains()] == [[1], [1, 1], [0, 0, 0]]


def test_each_turn_trains_under_its_own_prompt(chat, problem, method):
    tree = grow(chat, problem, method, [RIGHT, WRONG, NO_CODE], [RIGHT, WRONG], [WRONG])
    expected = {id(node.completion): node.prompt.ids for node in tree.nodes()}
    for group in method.credit(tree):
        assert all(expected[id(completion)] == group.prompt_ids for completion in group.completions)


def test_a_last_program_that_passes_public_tests_only_is_no_success(chat, problem, method):
    cheat = RIGHT.replace("x[1:]", "[2, 3]")
    tree = grow(chat, problem, method, [cheat, RIGHT, cheat], [], [])
    method.credit(tree)
    assert [node.credit for node in tree.children] == [0, 1, 0]


def test_a_dialogue_in_which_the_grader_failed_leaves_as_a_whole(chat, problem, method):
    tree = grow(chat, problem, method, [RIGHT, WRONG, WRONG], [BROKEN, WRONG], [WRONG, WRONG], broken="list(x)")
    groups = method.credit(tree)
    assert [len(group.completions) for group in groups] == [2, 1, 1]
    assert [node.credit for node in tree.chains()[1]] == [None] * 3


def test_dialogues_that_all_end_alike_teach_nothing(chat, problem, method):
    assert method.credit(grow(chat, problem, method, [WRONG] * 3, [WRONG] * 3, [NO_CODE] * 3)) == []
    assert method.credit(grow(chat, problem, method, [WRONG] * 3, [RIGHT] * 3, [])) == []


def test_the_longest_turn_pays_for_its_dialogue(chat, problem):
    tools = MethodTools(overlong=OverlongSettings(max_tokens=100, cache_tokens=100))
    method = GRPOMT(GRPOMTSettings(group_size=2, turns=2), tools)
    tree = grow(chat, problem, method, [RIGHT, NO_CODE], [RIGHT])
    method.credit(tree)
    alone, mended = (1 - max(len(node.completion.ids) for node in chain) / 100 for chain in tree.chains())
    assert [node.credit for node in tree.nodes()] == pytest.approx([alone, mended, mended])
