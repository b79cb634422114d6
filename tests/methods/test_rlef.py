import pytest

from smalt.methods.method import MethodTools
from smalt.methods.rlef import RLEF, RLEFSettings
from tests.methods.trees import BROKEN, grow
from tests.scripted import NO_CODE, RIGHT, WRONG


def rlef(tools=None, **options):
    return RLEF(RLEFSettings(**{"group_size": 2, "kl_in_reward": 0, **options}), tools or MethodTools())


def test_turns_are_credited_with_what_follows(chat, problem):
    tree = grow(chat, problem, rlef(), [NO_CODE, WRONG], [RIGHT, WRONG], [NO_CODE])
    groups = rlef().credit(tree)
    first, second = tree.chains()
    assert [node.reward for node in first] == [-0.2, 1]
    assert [node.credit for node in first] == pytest.approx([0.8, 1])
    assert [node.credit for node in second] == [-1, -1, -1]
    assert [(group.turn, group.returns) for group in groups] == [
        (1, pytest.approx((0.8, -1))),
        (2, (1,)),
        (2, (-1,)),
        (3, (-1,)),
    ]


def test_every_dialogue_trains_for_the_value_is_the_baseline(chat, problem):
    tree = grow(chat, problem, rlef(), [RIGHT, RIGHT], [], [])
    [group] = rlef().credit(tree)
    assert group.returns == (1, 1)


def test_the_penalty_follows_the_turns_mean_log_ratio(chat, problem):
    asked = []

    def log_ratios(chain):
        asked.append(len(chain))
        return [0.5 * node.turn for node in chain]

    method = rlef(MethodTools(log_ratios=log_ratios), kl_in_reward=0.1)
    assert method.needs_reference
    assert not rlef().needs_reference
    tree = grow(chat, problem, method, [RIGHT, WRONG], [RIGHT], [])
    method.credit(tree)
    assert asked == [3]
    assert [node.credit for node in tree.chains()[1]] == pytest.approx([-0.05 + 0.9, 0.9])


def test_a_dialogue_in_which_the_grader_failed_leaves(chat, problem):
    tree = grow(chat, problem, rlef(), [RIGHT, WRONG], [BROKEN], [WRONG], broken="list(x)")
    [group] = rlef().credit(tree)
    assert group.returns == (1,)
