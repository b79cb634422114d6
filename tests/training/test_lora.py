"""Training of adapters: what moves, what the penalty is measured from, what a kill leaves."""

import copy

import pytest
import torch

from smalt.methods.method import MethodTools
from smalt.methods.mucode import MuCode, MuCodeSettings
from smalt.policy.adapters import add_adapters
from smalt.policy.local_sampler import LocalSampler
from smalt.policy.lora_settings import LoraSettings
from smalt.policy.reference import ReferencePolicy
from smalt.policy.sampling import SampleRequest, SamplingSettings
from smalt.rollouts.growth import Shape
from smalt.training.checkpoints import CheckpointStore
from smalt.training.groups import TrainingGroup
from smalt.training.learner import Learner
from smalt.training.settings import LossSettings, OptimiserSettings, VerifierSettings, WarmStartSettings
from smalt.training.sft import Example, fine_tune
from smalt.training.turn_value import attach_value_head, prompt_values
from smalt.training.verifier import load_verifier
from smalt.training.verifier_training import VerifierTrainer
from tests.conftest import drop_first
from tests.scripted import RIGHT, WRONG, scripted_growth
from tests.training.test_loop import (
    KilledError,
    kill_after,
    learner_of,
    load,
    metrics_of,
    real_loop,
    run,
    same,
    weights,
    without_seconds,
)

pytest.importorskip("peft")

LORA = LoraSettings(rank=4, alpha=8)
PROMPTS = [(5, 9, 301, 77), (600,)]
KL = LossSettings(kl_coefficient=0.1)


def adapted(policy, seed=0):
    add_adapters(policy, LORA, seed)
    return policy


def trees_of(policy, returns=()):
    requests = [SampleRequest(prompt, 4) for prompt in PROMPTS]
    sampled = LocalSampler(policy).sample(requests, SamplingSettings(max_new_tokens=6), seed=0)
    return [
        [TrainingGroup(p, tuple(c), (1.0, -1.0, 0.5, -0.5), returns=returns)]
        for p, c in zip(PROMPTS, sampled, strict=True)
    ]


def learner(policy, loss=KL, **settings):
    reference = ReferencePolicy(policy) if loss.kl_coefficient else None
    return Learner(policy, reference, OptimiserSettings(**{"learning_rate": 1e-2, **settings}), loss, 1.0)


def split(policy):
    """Copies of the weights that adapters have, and of the others."""
    parts = ({}, {})
    for name, weight in policy.model.named_parameters():
        parts["lora_" not in name][name] = weight.detach().clone()
    return parts


def test_only_adapters_move_and_the_penalty_is_measured_from_the_base(policy):
    teacher = learner(adapted(policy))
    trees = trees_of(policy)
    adapters, base = split(policy)
    first = teacher.train_step(trees, 0)
    assert first["kl"] == 0
    assert first["ratio_deviation"] == pytest.approx(0, abs=1e-4)
    assert first["grad_norm"] > 0
    assert teacher.train_step(trees, 1)["kl"] > 1e-6
    moved, kept = split(policy)
    assert same(kept, base)
    assert not any(torch.equal(moved[name], adapters[name]) for name in moved if "lora_B" in name)
    assert all(weight.grad is None for name, weight in policy.model.named_parameters() if "lora_" not in name)
    assert len(teacher.optimizer.state) == len(adapters)


def test_gradient_checkpointing_trains_the_same_adapters(policy):
    other = copy.deepcopy(adapted(policy))
    trees = trees_of(policy)
    plain = learner(policy).train_step(trees, 0)
    assert learner(other, gradient_checkpointing=True).train_step(trees, 0) == pytest.approx(plain, rel=1e-4, abs=1e-6)


def test_a_checkpoint_holds_adapters_only_and_goes_on_bit_for_bit(policy, model_folder, tmp_path):
    teacher = learner(adapted(policy))
    trees = trees_of(policy)
    teacher.train_step(trees, 0)
    store = CheckpointStore(tmp_path)
    folder = store.save(1, policy, teacher.optimizer)
    assert (folder / "adapter_model.safetensors").exists()
    assert not (folder / "model.safetensors").exists()
    again = learner(adapted(load(model_folder), seed=5))
    store.restore(folder, again.policy, again.optimizer)
    assert again.train_step(trees, 1) == teacher.train_step(trees, 1)
    assert same(split(again.policy)[0], split(policy)[0])


def test_a_value_head_trains_beside_them_and_is_saved_too(policy, model_folder, tmp_path):
    def valued(policy, seed):
        attach_value_head(adapted(policy, seed).model)
        return learner(policy, LossSettings(kl_coefficient=0))

    teacher = valued(policy, 0)
    trees = trees_of(policy, returns=(1.0, 1.0, -1.0, 0.0))
    base = split(policy)[1]
    assert teacher.train_step(trees, 0)["value_error"] > 0
    assert not torch.equal(prompt_values(policy.model, PROMPTS), torch.zeros(2))
    assert all(torch.equal(w, base[name]) for name, w in split(policy)[1].items() if "turn_value" not in name)
    store = CheckpointStore(tmp_path)
    folder = store.save(1, policy, teacher.optimizer)
    again = valued(load(model_folder), 5)
    store.restore(folder, again.policy, again.optimizer)
    assert again.train_step(trees, 1) == teacher.train_step(trees, 1)


def test_a_value_head_beside_weights_of_16_bits_is_float32(policy):
    policy.model.bfloat16()
    attach_value_head(adapted(policy).model)
    teacher = learner(policy, LossSettings(kl_coefficient=0))
    assert teacher.train_step(trees_of(policy, returns=(1.0, 1.0, -1.0, 0.0)), 0)["value_error"] > 0
    assert policy.model.turn_value.weight.dtype is torch.float32


def adapted_loop(folder, model_folder, **options):
    loop = real_loop(folder, model_folder, **options)
    loop.learner = learner_of(adapted(loop.learner.policy))
    return loop


def test_a_run_that_was_killed_ends_with_the_same_adapters(model_folder, tmp_path):
    whole = adapted_loop(tmp_path / "whole", model_folder)
    run(whole)
    with pytest.raises(KilledError):
        run(adapted_loop(tmp_path / "killed", model_folder, on_step=kill_after(3)))
    resumed = adapted_loop(tmp_path / "killed", model_folder)
    run(resumed)
    assert same(weights(resumed), weights(whole))
    rows = metrics_of(tmp_path / "whole")
    assert without_seconds(metrics_of(tmp_path / "killed")) == without_seconds(rows)
    assert not all(row["is_skipped"] for row in rows)
    assert rows[-1]["kl"] > 0


def test_a_warm_start_trains_adapters(policy):
    base = split(adapted(policy))[1]
    losses = []
    lessons = WarmStartSettings(epochs=8, batch=2, learning_rate=1e-2)
    fine_tune(policy, [Example((5, 9), (17, 300))] * 2, lessons, lambda step, steps, loss: losses.append(loss))
    assert losses[-1] < losses[0]
    assert same(split(policy)[1], base)


@pytest.fixture
def verified(policy, chat, tmp_path):
    """A verifier of adapters and a tree with a pair to learn from."""
    settings = VerifierSettings(learning_rate=3e-3, pairs=4, passes=3)
    growth = scripted_growth(chat, [RIGHT, WRONG])
    tree = growth.seed_of(drop_first())
    growth.grow([tree], Shape.group(2), seed=0)
    return VerifierTrainer(adapted(policy), chat, settings, tmp_path / "verifiers"), tree


def test_a_verifier_trains_adapters_and_its_head_and_survives_a_kill(verified, chat, model_folder):
    trainer, tree = verified
    base = split(trainer.verifier.policy)[1]
    trainer.fit([tree])
    kept = split(trainer.verifier.policy)[1]
    moved = [name for name in base if not torch.equal(base[name], kept[name])]
    assert moved
    assert all("turn_value" in name for name in moved)
    trainer.save(1)
    again = VerifierTrainer(adapted(load(model_folder), 5), chat, trainer.settings, trainer.folder)
    again.load(1)
    assert again.fit([tree]) == trainer.fit([tree])
    assert again.scores(tree.children) == trainer.scores(tree.children)


def test_an_exported_verifier_is_whole(verified, chat, tmp_path):
    trainer, tree = verified
    trainer.fit([tree])
    expected = trainer.scores(tree.children)
    trainer.export(tmp_path / "verifier")
    loaded = load_verifier(tmp_path / "verifier", "cpu", chat)
    assert loaded.scores(tree.children) == pytest.approx(expected, abs=1e-4)
    method = MuCode(MuCodeSettings(), MethodTools(verifier=trainer))
    assert method.credit(tree)
