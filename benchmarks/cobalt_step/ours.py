"""Our step: the training loop's own, on a policy that can be told never to end a reply."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.cobalt_step.step_cost import StepCost
from smalt.assembly import make_growth, make_method_and_learner
from smalt.grading.grader import Grader
from smalt.policy.loading import Policy, load_policy
from smalt.problems.problem import Problem
from smalt.rollouts.growth import Growth
from smalt.rollouts.records import Context
from smalt.settings import RunSettings
from smalt.training.loop import TrainingLoop


@dataclass
class LengthwisePolicy(Policy):
    """A policy whose replies may all be made of one length, as generate's `min_new_tokens` does."""

    never_stops: bool = False

    @property
    def stop_ids(self) -> frozenset[int]:
        """Ids that end a reply; none while it never stops."""
        return frozenset() if self.never_stops else super().stop_ids


class Ours:
    """A training loop that takes a step when it is asked."""

    def __init__(self, settings: RunSettings, problems: Sequence[Problem], grader: Grader, folder: Path) -> None:
        """Load the policy. `folder` is the loop's; nothing is written to it."""
        self.policy = LengthwisePolicy(**vars(load_policy(settings.model)))
        method, learner = make_method_and_learner(settings, self.policy, folder)
        growth = make_growth(self.policy, settings.dialogue, settings.sampler, grader, settings.collection)
        self.growth: Growth = growth.with_sampling(settings.training.sampling)
        self._loop = TrainingLoop(
            method=method,
            growth=self.growth,
            learner=learner,
            settings=settings.training,
            problems={problem.id: problem for problem in problems},
            folder=folder,
            seed=settings.seed,
            on_step=lambda step, steps, metrics: None,
        )

    def step(self, contexts: Sequence[Context], number: int, has_fixed_length: bool) -> StepCost:
        """Sample, grade, train once."""
        self.policy.never_stops = has_fixed_length
        started = time.perf_counter()
        metrics = self._loop.train_step(contexts, number)
        if self.policy.device.type == "cuda":
            torch.cuda.synchronize()  # the optimiser's kernels
        seconds = time.perf_counter() - started
        sampling, grading = metrics["seconds_sampling"], metrics["seconds_grading"]
        return StepCost(
            sampling=sampling,
            grading=grading,
            training=seconds - sampling - grading,
            tokens=round(metrics["sampled_tokens"]),
            programs=round(metrics["programs"] * (1 - metrics["without_program"])),
        )
