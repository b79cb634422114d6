"""Sampling one step ahead: old by one update and no more, the same after a kill, hidden behind the update."""

import time
from functools import partial
from types import SimpleNamespace

import pytest
import torch

from smalt.credit.advantage_settings import AdvantageSettings
from smalt.policy.local_sampler import LocalSampler
from smalt.rollouts.level_grading import GradingTime
from smalt.training.settings import LossSettings, TrainingBudget
from smalt.training.step_rollouts import RolloutGrower, StepRollout, rollout_seconds
from tests.scripted import RIGHT, WRONG
from tests.training.test_loop import (
    PROBLEMS,
    SETTINGS,
    KilledError,
    contexts_of,
    kill_after,
    metrics_of,
    persistent,
    real_loop,
    real_ngu_loop,
    run,
    same,
    scripted_loop,
    weights,
    without_seconds,
)

AHEAD = SETTINGS.model_copy(update={"steps_ahead": 1, "checkpoint_every": 4, "validate_every": 3})


@pytest.fixture(scope="module")
def ahead(model_folder, tmp_path_factory):
    loop = real_loop(tmp_path_factory.mktemp("ahead") / "whole", model_folder, settings=AHEAD)
    run(loop)
    return loop


def test_staleness_is_the_updates_since_sampling_and_none_behind_a_checkpoint(ahead):
    rows = metrics_of(ahead.folder)
    updated = [1 - row["is_skipped"] for row in rows]
    assert [row["staleness"] for row in rows] == [0, updated[0], updated[1], updated[2], 0, updated[4]]
    assert sum(row["staleness"] for row in rows) >= 2
    assert all(row["seconds_ahead"] == 0 for row in rows if row["step"] in (0, 4))


def test_a_sample_ahead_trains_with_the_ratio_to_the_policy_that_drew_it(ahead):
    deviations = {bool(row["staleness"]): row["ratio_deviation"] for row in metrics_of(ahead.folder) if "loss" in row}
    assert deviations[True] > 10 * deviations[False]


def test_without_it_every_sample_is_of_the_newest_weights(ahead, model_folder, tmp_path):
    loop = real_loop(tmp_path, model_folder, settings=AHEAD.model_copy(update={"steps_ahead": 0}))
    run(loop)
    assert {row["staleness"] for row in metrics_of(tmp_path)} == {0}
    assert not same(weights(loop), weights(ahead))


@pytest.mark.parametrize("last", [0, 2, 3, 4])
def test_killed_and_resumed_it_ends_bit_for_bit_the_same(ahead, model_folder, tmp_path, last):
    with pytest.raises(KilledError):
        run(real_loop(tmp_path, model_folder, settings=AHEAD, on_step=kill_after(last)))
    resumed = real_loop(tmp_path, model_folder, settings=AHEAD)
    run(resumed)
    assert same(weights(resumed), weights(ahead))
    assert without_seconds(metrics_of(tmp_path)) == without_seconds(metrics_of(ahead.folder))


def test_killed_in_the_middle_of_an_update_too(ahead, model_folder, tmp_path):
    loop = real_loop(tmp_path, model_folder, settings=AHEAD)
    train = loop.learner.train_step

    def killed(groups, step):
        found = train(groups, step)
        if step >= 4:
            raise KilledError
        return found

    loop.learner.train_step = killed
    with pytest.raises(KilledError):
        run(loop)
    resumed = real_loop(tmp_path, model_folder, settings=AHEAD)
    run(resumed)
    assert same(weights(resumed), weights(ahead))


def test_failed_prompts_come_back_in_the_step_sampled_ahead(model_folder, tmp_path):
    settings = persistent(
        advantages=AdvantageSettings(estimator="ngu"),
        loss=LossSettings(kl_coefficient=0),
        steps_ahead=1,
        checkpoint_every=3,
    )

    ngu_loop = partial(real_ngu_loop, model_folder=model_folder, settings=settings)

    whole = ngu_loop(tmp_path / "whole")
    run(whole)
    assert max(row["trees"] for row in metrics_of(tmp_path / "whole")) > 2
    with pytest.raises(KilledError):
        run(ngu_loop(tmp_path / "killed", on_step=kill_after(4)))
    resumed = ngu_loop(tmp_path / "killed")
    run(resumed)
    assert same(weights(resumed), weights(whole))
    assert without_seconds(metrics_of(tmp_path / "killed")) == without_seconds(metrics_of(tmp_path / "whole"))


def test_nothing_is_sampled_behind_the_last_step_of_a_budget(ahead, model_folder, tmp_path, monkeypatch):
    costs = [row["sampled_tokens_so_far"] for row in metrics_of(ahead.folder)]
    settings = AHEAD.model_copy(update={"budget": TrainingBudget(sampled_tokens=int(costs[1]))})
    grown = []
    grow = RolloutGrower.grow
    monkeypatch.setattr(RolloutGrower, "grow", lambda *given: grown.append(grow(*given)) or grown[-1])
    run(real_loop(tmp_path, model_folder, settings=settings))
    assert [row["sampled_tokens_so_far"] for row in metrics_of(tmp_path)] == costs[:2]
    assert sum(rollout.sampled_tokens for rollout in grown) == costs[1]


def test_a_sampler_without_weights_of_its_own_is_refused(policy, chat, tmp_path):
    loop = scripted_loop(policy, chat, tmp_path, settings=AHEAD)
    with pytest.raises(ValueError, match=r"training\.steps_ahead: ScriptedSampler cannot sample with the weights"):
        run(loop)


class SlowSampler:
    """Takes a while; says what the weights were when it was frozen."""

    def __init__(self, growth, policy, seconds):
        self.inner, self.policy, self.seconds = growth.sampler, policy, seconds
        self.weights = []

    def fits(self, prompt_ids, settings):
        return True

    def frozen(self):
        self.weights.append(next(self.policy.model.parameters()).detach().clone())
        return SimpleNamespace(fits=self.fits, sample=self.sample)

    def sample(self, requests, settings, seed):
        time.sleep(self.seconds)
        return self.inner.sample(requests, settings, seed)


def test_wall_time_is_the_longer_of_update_and_roll_out_not_their_sum(policy, chat, tmp_path):
    each = 0.4
    loop = scripted_loop(policy, chat, tmp_path, [RIGHT, WRONG], group_size=2)
    loop.growth.sampler = SlowSampler(loop.growth, policy, each)
    grower = RolloutGrower(loop.method, loop.growth, PROBLEMS)
    prompts = [SimpleNamespace(context=context, rounds=()) for context in contexts_of(chat, "a")]
    started = time.perf_counter()
    result, rollout = grower.grow_beside(lambda: time.sleep(each) or "done", prompts, seed=0, updates=7)
    elapsed = time.perf_counter() - started
    assert elapsed < 1.75 * each
    assert (result, rollout.updates_before) == ("done", 7)
    assert rollout.seconds >= each
    assert rollout.waited < 0.75 * each
    assert [node.passes_all for node in rollout.trees[0].children] == [True, False]


def test_the_thread_samples_with_the_weights_before_the_update(model_folder, tmp_path):
    loop = real_loop(tmp_path, model_folder)
    grower = RolloutGrower(loop.method, loop.growth, PROBLEMS)
    prompts = [SimpleNamespace(context=context, rounds=()) for context in contexts_of(loop.growth.chat)]
    expected = grower.grow(prompts, 3, 0)

    def change():
        with torch.no_grad():
            for weight in loop.learner.policy.model.parameters():
                weight.add_(torch.randn_like(weight))

    _, rollout = grower.grow_beside(change, prompts, 3, 0)
    assert isinstance(loop.growth.sampler, LocalSampler)
    assert [n.completion for t in rollout.trees for n in t.nodes()] == [
        n.completion for t in expected.trees for n in t.nodes()
    ]


def test_an_update_that_fails_is_not_hidden_by_the_thread(model_folder, tmp_path):
    loop = real_loop(tmp_path, model_folder)
    with pytest.raises(ZeroDivisionError):
        RolloutGrower(loop.method, loop.growth, PROBLEMS).grow_beside(lambda: 1 / 0, [], 0, 0)


def test_seconds_waited_and_hidden_add_up_to_what_the_roll_outs_took():
    here = StepRollout([], [], 0, seconds=4.0, grading=GradingTime(waited=1.0, overlapped=2.0), waited=4.0)
    beside = StepRollout([], [], 0, seconds=8.0, grading=GradingTime(waited=2.0), waited=2.0)
    waited, hidden = rollout_seconds([here, beside])
    assert waited == {"sampling": 3.0 + 1.5, "grading": 1.0 + 0.5}
    assert hidden == {"seconds_grading_overlapped": 2.0, "seconds_ahead": 6.0}
