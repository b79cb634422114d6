"""The learner on a tiny model: what a step does to the weights, and what it must not depend on."""

import copy
import math

import pytest
import torch

from smalt.lab.tokenizer import VOCABULARY
from smalt.policy.layouts import Row
from smalt.policy.local_sampler import LocalSampler
from smalt.policy.logprobs import row_logprobs
from smalt.policy.reference import ReferencePolicy
from smalt.policy.sampling import SampleRequest, SamplingSettings
from smalt.training.groups import TrainingGroup
from smalt.training.learner import Learner
from smalt.training.settings import LossSettings, OptimiserSettings

PROMPTS = [(5, 9, 301, 77), (600,), tuple(range(100, 120))]
NO_KL = LossSettings(kl_coefficient=0)


@pytest.fixture
def groups(policy):
    """Three groups of four, sampled from the policy, two members good and two bad."""
    requests = [SampleRequest(prompt, 4) for prompt in PROMPTS]
    sampled = LocalSampler(policy).sample(requests, SamplingSettings(max_new_tokens=6), seed=0)
    return [TrainingGroup(p, tuple(c), (1.0, -1.0, 0.5, -0.5)) for p, c in zip(PROMPTS, sampled, strict=True)]


def one_each(groups):
    """Groups as trees of one group."""
    return [[group] for group in groups]


def learner(policy, reference=None, loss=NO_KL, **settings):
    return Learner(policy, reference, OptimiserSettings(**{"learning_rate": 1e-3, **settings}), loss, 1.0)


def weights(policy):
    return {name: p.detach().clone() for name, p in policy.model.named_parameters()}


def distance(left, right):
    return max((left[name] - right[name]).abs().max().item() for name in left)


def sums_of_logprobs(policy, groups):
    rows = [Row(group.prompt_ids, completion.ids) for group in groups for completion in group.completions]
    with torch.no_grad():
        return row_logprobs(policy.model, rows, 1.0).logprobs.sum(1)


def test_good_completions_become_likelier_and_bad_ones_less(policy, groups):
    before = sums_of_logprobs(policy, groups)
    teacher = learner(policy)
    for step in range(3):
        teacher.train_step(one_each(groups), step)
    change = sums_of_logprobs(policy, groups) - before
    advantages = torch.tensor([a for g in groups for a in g.advantages])
    assert ((change > 0) == (advantages > 0)).all()


def test_on_the_first_step_nothing_is_clipped_and_the_ratios_are_one(policy, groups):
    metrics = learner(policy).train_step(one_each(groups), 0)
    assert metrics["clip_fraction"] == 0
    assert metrics["ratio_deviation"] == pytest.approx(0, abs=1e-4)
    assert metrics["loss"] == pytest.approx(-sum(a for g in groups for a in g.advantages) / 12, abs=1e-4)
    assert metrics["trained_tokens"] == sum(len(c.ids) for g in groups for c in g.completions)
    assert 0 < metrics["entropy"] < math.log(VOCABULARY)
    assert not policy.model.training


@pytest.mark.parametrize("tokens", [1, 40, 120])
def test_micro_batches_change_nothing_but_memory(policy, groups, tokens):
    other = copy.deepcopy(policy)
    whole, split = learner(policy, learning_rate=1e-4), learner(other, learning_rate=1e-4, micro_batch_tokens=tokens)
    for step in range(2):
        a, b = whole.train_step(one_each(groups), step), split.train_step(one_each(groups), step)
        assert a.pop("training_tokens_computed") <= b.pop("training_tokens_computed")  # prefixes anew in each part
        assert a == pytest.approx(b, rel=1e-3, abs=1e-6)
    assert distance(weights(policy), weights(other)) < 1e-6


def test_the_loss_is_a_mean_over_the_tokens_of_a_mini_batch(policy, groups):
    """Doubling a batch by repeating it leaves the step as it is."""
    other = copy.deepcopy(policy)
    learner(policy, learning_rate=1e-4).train_step(one_each(groups), 0)
    learner(other, learning_rate=1e-4).train_step(one_each([*groups, *groups]), 0)
    assert distance(weights(policy), weights(other)) < 1e-6


def test_mini_batches_are_optimiser_steps_of_their_own(policy, groups):
    teacher = learner(policy, groups_per_update=1)
    teacher.train_step(one_each(groups), 0)
    assert {int(state["step"]) for state in teacher.optimizer.state.values()} == {3}
    assert teacher.train_step(one_each(groups), 1)["ratio_deviation"] > 0


def test_the_same_step_twice_gives_the_same_weights(policy, groups):
    other = copy.deepcopy(policy)
    settings = {"groups_per_update": 2}
    learner(policy, **settings).train_step(one_each(groups), 4)
    learner(other, **settings).train_step(one_each(groups), 4)
    assert distance(weights(policy), weights(other)) == 0


def test_rows_without_advantage_cost_no_forward_pass_and_change_nothing(policy, groups):
    other = copy.deepcopy(policy)
    mixed = [TrainingGroup(g.prompt_ids, g.completions, (1.0, 0.0, 0.0, -1.0)) for g in groups]
    metrics = learner(policy, learning_rate=1e-4).train_step(one_each(mixed), 0)
    rows = sum(len(g.prompt_ids) + len(g.completions[k].ids) for g in groups for k in (0, 3))
    assert metrics["training_tokens_computed"] < rows < metrics["training_tokens_total"]
    # A penalty too small to be felt makes all rows go through the model.
    penalised = LossSettings(kl_coefficient=1e-30)
    all_rows = learner(other, ReferencePolicy(other), penalised, learning_rate=1e-4).train_step(one_each(mixed), 0)
    assert all_rows["training_tokens_computed"] > metrics["training_tokens_computed"]
    assert all_rows["loss"] == pytest.approx(metrics["loss"], abs=1e-6)
    assert distance(weights(policy), weights(other)) < 1e-6


def test_a_batch_in_which_nothing_moves_leaves_the_weights(policy, groups):
    before = weights(policy)
    flat = [TrainingGroup(g.prompt_ids, g.completions, (0.0,) * 4) for g in groups]
    metrics = learner(policy, weight_decay=0.0).train_step(one_each(flat), 0)
    assert metrics["training_tokens_computed"] == metrics["grad_norm"] == 0
    assert distance(weights(policy), before) == 0


def test_prompts_are_computed_once_a_group(policy, groups):
    metrics = learner(policy).train_step(one_each(groups), 0)
    most = sum(len(g.prompt_ids) + sum(len(c.ids) for c in g.completions) for g in groups)
    assert metrics["training_tokens_computed"] <= most
    assert metrics["training_tokens_total"] == most + 3 * sum(len(g.prompt_ids) for g in groups)


def test_the_learning_rate_warms_up(policy, groups):
    teacher = learner(policy, warm_up_steps=4)
    assert [teacher.learning_rate(step) for step in range(6)] == pytest.approx(
        [0.25e-3, 0.5e-3, 0.75e-3, 1e-3, 1e-3, 1e-3]
    )
    assert teacher.train_step(one_each(groups), 1)["learning_rate"] == pytest.approx(0.5e-3)
    assert teacher.optimizer.param_groups[0]["lr"] == pytest.approx(0.5e-3)
    assert learner(policy).learning_rate(0) == pytest.approx(1e-3)


def test_the_gradient_norm_is_reported_before_it_is_clipped(policy, groups):
    other = copy.deepcopy(policy)
    free = learner(policy, gradient_clip=1e9).train_step(one_each(groups), 0)["grad_norm"]
    clipped = learner(other, gradient_clip=free / 100).train_step(one_each(groups), 0)["grad_norm"]
    assert clipped == pytest.approx(free, rel=1e-5)


def test_the_optimiser_sees_the_clipped_gradient(policy, groups):
    # AdamW's first step does not depend on the gradient's size; its first moment, 0.1 of the gradient, does.
    teacher = learner(policy, gradient_clip=1e-3)
    teacher.train_step(one_each(groups), 0)
    square = sum((state["exp_avg"] ** 2).sum().item() for state in teacher.optimizer.state.values())
    assert square**0.5 == pytest.approx(0.1 * 1e-3, rel=1e-2)


def test_the_penalty_pulls_back_to_the_reference(policy, groups):
    reference = ReferencePolicy(policy)
    flat = [TrainingGroup(g.prompt_ids, g.completions, (0.0,) * 4) for g in groups]
    teacher = learner(policy, reference, LossSettings(kl_coefficient=1.0))
    assert teacher.train_step(one_each(flat), 0)["kl"] == pytest.approx(0, abs=1e-9)
    learner(policy).train_step(one_each(groups), 0)
    kls = [teacher.train_step(one_each(flat), step)["kl"] for step in range(1, 12)]
    assert kls[0] > 1e-5
    assert kls[-1] < 0.5 * kls[0]


def test_a_penalty_needs_a_reference(policy):
    with pytest.raises(ValueError, match="reference policy"):
        learner(policy, loss=LossSettings())


def test_the_temperature_of_sampling_is_that_of_the_ratio(policy):
    sampled = LocalSampler(policy).sample(
        [SampleRequest(PROMPTS[0], 4)], SamplingSettings(temperature=0.7, max_new_tokens=6), seed=0
    )[0]
    group = TrainingGroup(PROMPTS[0], tuple(sampled), (1.0, -1.0, 0.5, -0.5))
    settings = OptimiserSettings(learning_rate=1e-3)
    metrics = Learner(policy, None, settings, NO_KL, temperature=0.7).train_step([[group]], 0)
    assert metrics["ratio_deviation"] == pytest.approx(0, abs=1e-4)
