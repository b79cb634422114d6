"""The roll-outs of training steps: prompts grown into trees, at their step or beside the update of the step before.

**One step ahead.** While step k trains, a thread grows the trees of step k + 1, with a copy of the weights as they were
before that update: sampling and grading cost what they take longer than the update. The samples are then from a policy
that is one training step older than the one they train; the loss corrects for it, as old log-probabilities are those
that the tokens were drawn with, and each step logs its staleness. What it costs is the copy, and on one device that
sampling and training compete for it. The thread lives only as long as the update: nothing else ever runs beside it, and
it uses neither the learner nor the method's credit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from smalt.methods.method import Method
from smalt.policy.sampling import FreezableSampler
from smalt.problems.problem import Problem
from smalt.rollouts.growth import Growth
from smalt.rollouts.level_grading import GradingTime
from smalt.rollouts.records import Context
from smalt.rollouts.tree import Tree
from smalt.training.cost import sampling_work
from smalt.training.persistence import FailedPrompt

Result = TypeVar("Result")


@dataclass
class StepRollout:
    """What was sampled for a step; nothing of it is credited yet."""

    prompts: Sequence[FailedPrompt]
    trees: list[Tree]
    updates_before: int
    """Updates that the policy had had when it was sampled."""
    seconds: float
    """Wall time of sampling and grading."""
    grading: GradingTime
    waited: float
    """The part of `seconds` that nothing else was done in."""
    work: Mapping[str, float] = field(default_factory=dict)
    """What the sampler did for it, for the log."""

    @property
    def sampled_tokens(self) -> int:
        """Tokens that the policy wrote."""
        return sum(len(node.completion.ids) for tree in self.trees for node in [*tree.nodes()][tree.kept :])


@dataclass(frozen=True)
class RolloutGrower:
    """Grows the trees of steps."""

    method: Method[Any]
    growth: Growth
    problems: Mapping[str, Problem]

    def grow(self, prompts: Sequence[FailedPrompt], seed: int, updates: int) -> StepRollout:
        """Trees grown from prompts; those that were tried before begin with what is kept of it."""
        started = time.perf_counter()
        growth = replace(self.growth, grading_time=GradingTime())
        trees = [self.tree(prompt.context) for prompt in prompts]
        for tree, prompt in zip(trees, prompts, strict=True):
            if prompt.rounds:
                growth.attach(tree, prompt.completions)
                tree.kept, tree.forgotten = len(tree.children), prompt.forgotten
        growth.grow(trees, self.method.shape, seed=seed)
        seconds = time.perf_counter() - started
        work = sampling_work(self.growth.sampler)
        return StepRollout(prompts, trees, updates, seconds, growth.grading_time, waited=seconds, work=work)

    def grow_beside(
        self, work: Callable[[], Result], prompts: Sequence[FailedPrompt], seed: int, updates: int
    ) -> tuple[Result, StepRollout]:
        """Grow with the weights as they are, while `work` changes them; returns when both are done."""
        frozen = replace(self, growth=replace(self.growth, sampler=self._freezable_sampler().frozen()))
        with ThreadPoolExecutor(1, thread_name_prefix="one-step-ahead") as pool:
            growing = pool.submit(frozen.grow, prompts, seed, updates)
            result = work()
            done = time.perf_counter()
            rollout = growing.result()
        return result, replace(rollout, waited=min(time.perf_counter() - done, rollout.seconds))

    def tree(self, context: Context) -> Tree:
        """The tree that starts where the method wants it to."""
        problem = self.problems[context.problem_id]
        if self.method.starts_at == "problem":  # later turns need the messages, which a context does not keep
            return self.growth.seed_of(problem)
        return Tree(problem, context.prompt, context.previous_best, context.attempts)

    def check_that_it_freezes(self) -> None:
        """Raise ValueError if it cannot grow beside an update, for want of weights that stay as they are."""
        self._freezable_sampler()

    def _freezable_sampler(self) -> FreezableSampler:
        sampler = self.growth.sampler
        if not isinstance(sampler, FreezableSampler):
            raise ValueError(
                f"training.steps_ahead: {type(sampler).__name__} cannot sample with the weights of a step before; "
                "set it to 0"
            )
        return sampler


def rollout_seconds(rollouts: Sequence[StepRollout]) -> tuple[dict[str, float], dict[str, float]]:
    """Seconds that a step waited for sampling and for grading, and seconds that were hidden; for the log.

    What was waited for of a roll-out grown beside an update is split as the whole of it was.
    """
    waited = {"sampling": 0.0, "grading": 0.0}
    for rollout in rollouts:
        share = rollout.waited / rollout.seconds
        waited["sampling"] += share * (rollout.seconds - rollout.grading.waited)
        waited["grading"] += share * rollout.grading.waited
    hidden = {
        "seconds_grading_overlapped": sum(rollout.grading.overlapped for rollout in rollouts),
        "seconds_ahead": sum(rollout.seconds - rollout.waited for rollout in rollouts),
    }
    return waited, hidden
