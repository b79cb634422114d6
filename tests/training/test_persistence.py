"""What NGU remembers of prompts on which everything failed; how it comes back is tested with the loop."""

import pytest

from smalt.policy.sampling import Completion
from smalt.rollouts.records import Context
from smalt.training.persistence import FailedPrompt, Persistence
from smalt.training.settings import NeverGiveUpSettings
from tests.conftest import drop_first
from tests.scripted import NO_CODE, RIGHT, WRONG, scripted_growth


def context(name):
    return Context(name, -1, 0, 0.0, (1, 2, 3))


def memory(tmp_path, **options):
    return Persistence(NeverGiveUpSettings(**{"probability": 1.0, **options}), tmp_path)


def tree_of(chat, *replies):
    growth = scripted_growth(chat)
    tree = growth.seed_of(drop_first())
    ids = [(*chat.tokenizer.encode(reply, add_special_tokens=False), chat.tokenizer.eos_token_id) for reply in replies]
    growth.attach(tree, [Completion(tuple(i), (-0.5,) * len(i), True) for i in ids])
    for node in tree.children:
        node.reward = node.pass_rate
    return tree


def test_only_prompts_on_which_all_failed_alike_come_back(chat, tmp_path):
    trees = [tree_of(chat, *replies) for replies in ([NO_CODE] * 2, [RIGHT] * 2, [NO_CODE, WRONG], [WRONG] * 2)]
    kept = memory(tmp_path)
    kept.remember([FailedPrompt(context(name)) for name in "abcd"], trees, step=0)
    assert [prompt.context.problem_id for prompt in kept.waiting] == ["a", "d"]
    assert kept.waiting[0].completions == [node.completion for node in trees[0].children]


def test_the_draw_follows_from_step_and_place(chat, tmp_path):
    prompts = [FailedPrompt(context(str(number))) for number in range(40)]
    trees = [tree_of(chat, NO_CODE)] * 40
    drawn = []
    for step in (0, 0, 1):
        kept = memory(tmp_path, probability=0.5)
        kept.remember(prompts, trees, step)
        drawn.append([prompt.context.problem_id for prompt in kept.waiting])
    assert drawn[0] == drawn[1] != drawn[2]
    assert 10 <= len(drawn[0]) <= 30


def test_a_memory_comes_back_from_its_file(chat, tmp_path):
    kept, again = memory(tmp_path), memory(tmp_path)
    kept.remember([FailedPrompt(context("a"), forgotten=(0.0,))], [tree_of(chat, NO_CODE, NO_CODE)], step=3)
    kept.save(4)
    again.load(4)
    assert again.waiting == kept.waiting
    again.load(5)
    assert again.waiting == []


@pytest.mark.parametrize("keep", [1, 2])
def test_old_memories_are_deleted(tmp_path, keep):
    kept = memory(tmp_path)
    for step in (2, 4, 6):
        kept.save(step)
    kept.forget_before(keep)
    assert (
        sorted(path.name for path in tmp_path.iterdir())
        == ["step-000002.json", "step-000004.json", "step-000006.json"][-keep:]
    )
