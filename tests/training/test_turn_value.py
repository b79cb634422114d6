"""Values of prompts: learnt from returns, subtracted from them, saved with the model."""

import copy

import pytest
import torch

from smalt.policy.local_sampler import LocalSampler
from smalt.policy.sampling import SampleRequest, SamplingSettings
from smalt.training.checkpoints import CheckpointStore
from smalt.training.groups import TrainingGroup
from smalt.training.learner import Learner
from smalt.training.settings import LossSettings, OptimiserSettings
from smalt.training.turn_value import (
    attach_value_head,
    detach_value_head,
    detached_values,
    has_value_head,
    prompt_values,
)

PROMPTS = [(5, 9, 301, 77), (600,)]
RETURNS = [(1.0, 1.0), (-1.0, -0.5)]


@pytest.fixture
def valued(policy):
    attach_value_head(policy.model)
    return policy


@pytest.fixture
def trees(policy):
    sampled = LocalSampler(policy).sample(
        [SampleRequest(prompt, 2) for prompt in PROMPTS], SamplingSettings(max_new_tokens=5), seed=0
    )
    return [
        [TrainingGroup(prompt, tuple(completions), returns, returns=returns)]
        for prompt, completions, returns in zip(PROMPTS, sampled, RETURNS, strict=True)
    ]


def learner(policy, **settings):
    optimiser = OptimiserSettings(**{"learning_rate": 1e-2, **settings})
    return Learner(policy, None, optimiser, LossSettings(kl_coefficient=0), 1.0)


def test_a_new_head_says_nought_and_padding_does_not_matter(valued):
    assert prompt_values(valued.model, PROMPTS).tolist() == [0, 0]
    torch.nn.init.normal_(valued.model.turn_value.weight)
    together = prompt_values(valued.model, PROMPTS)
    assert together.tolist() == pytest.approx([prompt_values(valued.model, [p]).item() for p in PROMPTS], abs=1e-5)


def test_values_approach_the_mean_return_of_their_prompt(valued, trees):
    teacher = learner(valued)
    errors = [teacher.train_step(trees, step)["value_error"] for step in range(30)]
    assert errors[0] == pytest.approx((1 + 1 + 1 + 0.25) / 4, rel=1e-4)
    assert errors[-1] < 0.1
    assert prompt_values(valued.model, PROMPTS).tolist() == pytest.approx([1, -0.75], abs=0.3)


def test_values_are_those_of_prompts_run_alone(valued):
    torch.nn.init.normal_(valued.model.turn_value.weight, generator=torch.Generator().manual_seed(0))
    prompts = [(1, 2, 3, 4, 5), (1, 2, 3, 9), (1, 2, 3, 4), (7, 8)]
    alone = [prompt_values(valued.model, [prompt]).item() for prompt in prompts]
    assert prompt_values(valued.model, prompts).tolist() == pytest.approx(alone, abs=1e-5)
    for budget in (1, 7, 1000):
        assert detached_values(valued.model, prompts, budget) == pytest.approx(alone, abs=1e-5)


def test_the_advantage_is_the_return_minus_the_value(valued, trees):
    valued.model.turn_value.bias.data.fill_(0.25)
    groups = [group for groups in learner(valued)._with_value_advantages(trees) for group in groups]
    assert [group.advantages for group in groups] == [(0.75, 0.75), (-1.25, -0.75)]
    assert [group.returns for group in groups] == RETURNS


def test_micro_batches_change_nothing(valued, trees):
    other = copy.deepcopy(valued)
    whole = learner(valued).train_step(trees, 0)
    split = learner(other, micro_batch_tokens=1).train_step(trees, 0)
    assert whole.pop("training_tokens_computed") <= split.pop("training_tokens_computed")
    assert whole == pytest.approx(split, rel=1e-3, abs=1e-6)


def test_checkpoints_take_the_head_along(valued, trees, tmp_path, model_folder):
    from smalt.policy.loading import ModelSettings, load_policy

    teacher = learner(valued)
    teacher.train_step(trees, 0)
    store = CheckpointStore(tmp_path)
    folder = store.save(1, valued, teacher.optimizer)
    fresh = load_policy(ModelSettings(path=str(model_folder), device="cpu"))
    attach_value_head(fresh.model)
    again = learner(fresh)
    store.restore(folder, fresh, again.optimizer)
    assert torch.equal(fresh.model.turn_value.weight, valued.model.turn_value.weight)
    a, b = teacher.train_step(trees, 1), again.train_step(trees, 1)
    assert a == b


def test_the_head_can_be_taken_away(valued):
    detach_value_head(valued.model)
    assert not has_value_head(valued.model)
    detach_value_head(valued.model)
