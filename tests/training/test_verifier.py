"""The verifier: learns which programs are correct, says the same after a kill, and comes back from its folder."""

import copy
import random

import pytest
import torch

from smalt.policy.loading import ModelLoadError, ModelSettings, load_policy
from smalt.rollouts.growth import Shape
from smalt.training.settings import VerifierSettings
from smalt.training.verifier import load_verifier
from smalt.training.verifier_training import VerifierTrainer, draw_pairs
from tests.conftest import drop_first
from tests.scripted import NO_CODE, RIGHT, WRONG, TrustedGrader, scripted_growth

BROKEN = "```python\ndef f(x):\n    return list(x)[1:]\n```"


@pytest.fixture
def trainer(policy, chat, tmp_path):
    settings = VerifierSettings(learning_rate=3e-3, pairs=4, passes=3)
    return VerifierTrainer(policy, chat, settings, tmp_path / "verifiers")


def trees(chat, *groups, broken=None):
    """A tree of one level for each group of replies."""
    growth = scripted_growth(chat, [reply for group in groups for reply in group], grader=TrustedGrader(broken))
    grown = [growth.seed_of(drop_first(f"p{place}")) for place in range(len(groups))]
    growth.grow(grown, Shape.group(len(groups[0])), seed=0)
    return grown


def test_correct_programs_come_to_score_higher(chat, trainer):
    some = trees(chat, [RIGHT, WRONG, NO_CODE], [WRONG, RIGHT, WRONG])
    assert trainer.scores(some[0].children) == [0, 0, -torch.inf]
    first = trainer.fit(some)
    for _ in range(5):
        last = trainer.fit(some)
    assert last["verifier_loss"] < first["verifier_loss"]
    assert last["verifier_accuracy"] == 1
    right, wrong, nothing = trainer.scores(some[0].children)
    assert right > wrong > nothing


def test_a_score_does_not_depend_on_its_neighbours(chat, trainer):
    [tree] = trees(chat, [RIGHT, WRONG, NO_CODE])
    trainer.fit([tree])
    right, wrong, _ = tree.children
    alone = [*trainer.scores([right]), *trainer.scores([wrong])]
    assert trainer.scores([wrong, right, wrong]) == pytest.approx([alone[1], alone[0], alone[1]], abs=1e-5)


def test_it_reads_the_problem_and_the_program_without_the_dialogue(chat, trainer):
    growth = scripted_growth(chat, [WRONG], [RIGHT])
    tree = growth.seed_of(drop_first())
    growth.grow([tree], Shape.chains(1, 2), seed=0)
    later = tree.children[0].children[0]
    expected = (*tree.root.ids, *chat.tokenizer.encode(RIGHT, add_special_tokens=False), chat.tokenizer.eos_token_id)
    assert trainer.verifier.ids_of(later) == expected


def test_pairs_need_both_kinds(chat):
    rng = random.Random(0)
    [alike, mixed, failed] = trees(
        chat, [RIGHT, RIGHT, NO_CODE], [RIGHT, WRONG, NO_CODE], [BROKEN, NO_CODE, RIGHT], broken="list(x)"
    )
    assert draw_pairs(alike, 5, rng) == draw_pairs(failed, 5, rng) == []
    pairs = draw_pairs(mixed, 5, rng)
    assert [(good.reply, bad.reply) for good, bad in pairs] == [(RIGHT, WRONG)] * 5


def test_without_a_pair_nothing_is_learnt(chat, trainer):
    before = copy.deepcopy(trainer.verifier.policy.model.state_dict())
    assert trainer.fit(trees(chat, [RIGHT, RIGHT])) == {}
    after = trainer.verifier.policy.model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_state_that_is_loaded_learns_on_as_the_saved_one(chat, trainer, model_folder, tmp_path):
    some = trees(chat, [RIGHT, WRONG], [WRONG, RIGHT])
    trainer.fit(some)
    trainer.save(1)
    again = VerifierTrainer(
        load_policy(ModelSettings(path=str(model_folder), device="cpu")), chat, trainer.settings, trainer.folder
    )
    again.load(1)
    assert again.fit(some) == trainer.fit(some)
    assert again.scores(some[0].children) == trainer.scores(some[0].children)
    trainer.save(2)
    trainer.forget_before(1)
    assert [path.name for path in trainer.folder.iterdir()] == ["step-000002.pt"]


def test_an_exported_verifier_is_read_again(chat, trainer, tmp_path):
    [tree] = trees(chat, [RIGHT, WRONG])
    trainer.fit([tree])
    trainer.export(tmp_path / "verifier")
    loaded = load_verifier(tmp_path / "verifier", "cpu", chat)
    assert loaded.scores(tree.children) == trainer.scores(tree.children)
    assert not list(tmp_path.glob("*.tmp"))
    trainer.fit([tree])  # the head is where it was
    assert loaded.scores(tree.children) != trainer.scores(tree.children)


def test_a_policy_is_no_verifier(model_folder, chat):
    with pytest.raises(ModelLoadError, match="is no verifier"):
        load_verifier(model_folder, "cpu", chat)
