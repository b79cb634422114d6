"""The training loop: contexts -> trees -> credit -> update, until the steps are done.

It can be killed at any moment. Everything random in a step follows from the seed and the step's number, so a run
resumed from its newest checkpoint ends with the weights of an undisturbed one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from smalt.methods.method import Method
from smalt.policy.sampling import SamplingSettings
from smalt.problems.problem import Problem
from smalt.rollouts.growth import Growth, Shape
from smalt.rollouts.records import Context
from smalt.rollouts.tree import Tree
from smalt.training.batches import batch_of_step
from smalt.training.checkpoints import CheckpointStore
from smalt.training.groups import TrainingGroup
from smalt.training.learner import Learner
from smalt.training.metrics_log import MetricsLog
from smalt.training.settings import TrainingSettings


@dataclass
class TrainingLoop:
    """Trains one policy with one method."""

    method: Method
    growth: Growth
    learner: Learner
    settings: TrainingSettings
    problems: Mapping[str, Problem]
    folder: Path
    seed: int
    on_step: Callable[[int, int, Mapping[str, float]], None]
    """Told (step, steps, metrics) after each step, for progress display."""

    def run(self, contexts: Sequence[Context], validation: Sequence[Context]) -> int:
        """Train, from the newest checkpoint if there is one.

        Returns the number of contexts left out because their prompt leaves no room for a completion.
        """
        given = len(contexts)
        contexts = self._that_fit(contexts, self.settings.sampling)
        validation = self._that_fit(validation, self.settings.validation_sampling)
        validation = validation[: self.settings.validation_contexts]
        if given and not contexts:
            raise ValueError(
                f"none of the {given} contexts leaves room for {self.settings.sampling.max_new_tokens} new tokens "
                "in the model's context: lower training.sampling.max_new_tokens or contexts.max_prompt_tokens"
            )
        steps = self.settings.steps(len(contexts))
        checkpoints = CheckpointStore(self.folder / "checkpoints", self.settings.keep_checkpoints)
        first = self._resume(checkpoints)
        log = MetricsLog(self.folder, first)
        try:
            for step in range(first, steps):
                batch = batch_of_step(contexts, self.settings.contexts_per_step, step, self.seed)
                metrics = self.train_step(batch, step)
                if validation and self._is_due(self.settings.validate_every, step, steps):
                    metrics["validation_score"] = self.validate(validation)
                log.write(step, metrics)
                self.on_step(step, steps, metrics)
                if self._is_due(self.settings.checkpoint_every, step, steps):
                    checkpoints.save(step + 1, self.learner.policy, self.learner.optimizer)
        finally:
            log.close()
        return given - len(contexts)

    def train_step(self, contexts: Sequence[Context], step: int) -> dict[str, float]:
        """Sample, grade, credit and update once; returns the step's metrics."""
        started = time.perf_counter()
        trees = [self._tree(context) for context in contexts]
        self.growth.grow(trees, self.method.shape, seed=self.seed * 1_000_003 + step)
        grown = time.perf_counter()
        groups = [group for tree in trees for group in self.method.credit(tree)]
        metrics = _tree_metrics(trees, groups)
        # No group with mixed outcomes: there is nothing to learn from this batch, the step is skipped.
        metrics["is_skipped"] = float(not groups)
        if groups:
            metrics |= self.learner.train_step(groups, step)
        ended = time.perf_counter()
        seconds_grading = self.growth.seconds_grading
        self.growth.seconds_grading = 0.0
        metrics["seconds_sampling"] = grown - started - seconds_grading
        metrics["seconds_grading"] = seconds_grading
        metrics["seconds_training"] = ended - grown
        return metrics

    def validate(self, contexts: Sequence[Context]) -> float:
        """Mean validation score of one program a context; the same draws each time."""
        trees = [self._tree(context) for context in contexts]
        growth = self.growth.with_sampling(self.settings.validation_sampling)
        growth.grow(trees, Shape.group(1), seed=self.seed)
        scores = [self.method.validation_score(n) for t in trees for n in t.nodes() if not n.is_infra_error]
        return fmean(scores) if scores else 0.0

    def _tree(self, context: Context) -> Tree:
        problem = self.problems[context.problem_id]
        return Tree(problem, context.prompt, context.previous_best, context.attempts)

    def _that_fit(self, contexts: Sequence[Context], sampling: SamplingSettings) -> list[Context]:
        return [c for c in contexts if self.growth.sampler.fits(c.prompt_ids, sampling)]

    def _resume(self, checkpoints: CheckpointStore) -> int:
        """Restore the newest checkpoint; returns the step to go on with."""
        newest = checkpoints.newest()
        if newest is None:
            return 0
        step, folder = newest
        checkpoints.restore(folder, self.learner.policy, self.learner.optimizer)
        return step

    def _is_due(self, every: int, step: int, steps: int) -> bool:
        """Whether something done every so many steps is due after this one; the last step always is."""
        return every > 0 and ((step + 1) % every == 0 or step + 1 == steps)


def _tree_metrics(trees: Sequence[Tree], groups: Sequence[TrainingGroup]) -> dict[str, float]:
    """What the samples of a step were like."""
    nodes = [node for tree in trees for node in tree.nodes()]
    scored = [node for node in nodes if node.reward is not None]
    first_turn = [n for tree in trees if not tree.attempts for n in tree.nodes() if n.reward is not None]
    after_failure = [
        node
        for tree in trees
        if tree.attempts and tree.previous_best < 1
        for node in tree.nodes()
        if node.reward is not None
    ]
    return {
        "reward_mean": _mean([node.reward or 0.0 for node in scored]),
        "pass_rate_mean": _mean([node.pass_rate for node in scored]),
        "solved_share": _mean([float(node.passes_all) for node in scored]),
        "solved_share_first_turn": _mean([float(node.passes_all) for node in first_turn]),
        "solved_share_after_failure": _mean([float(node.passes_all) for node in after_failure]),
        "without_program": _mean([float(node.program is None) for node in nodes]),
        "cut_off": _mean([float(not node.completion.is_finished) for node in nodes]),
        "infra_errors": float(sum(node.is_infra_error for node in nodes)),
        "completion_tokens_mean": _mean([float(len(node.completion.ids)) for node in nodes]),
        "groups_without_signal": 1.0 - len(groups) / max(1, sum(len(list(tree.groups())) for tree in trees)),
    }


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0
