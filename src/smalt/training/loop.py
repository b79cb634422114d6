"""The training loop: contexts -> trees -> credit -> update, until the steps are done.

It can be killed at any moment. Everything random in a step follows from the seed and the step's number, so a run
resumed from its newest checkpoint ends with the weights of an undisturbed one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from smalt.credit.advantages import has_signal
from smalt.methods.method import Method
from smalt.policy.sampling import SamplingSettings
from smalt.problems.problem import Problem
from smalt.rollouts.growth import Growth, Shape, stop_at_public_pass
from smalt.rollouts.records import Context
from smalt.rollouts.tree import Node, Tree
from smalt.training.batches import batch_of_step
from smalt.training.checkpoints import CheckpointStore
from smalt.training.cost import sampling_tokens, time_shares
from smalt.training.groups import TrainingGroup, whiten_batch
from smalt.training.learner import Learner
from smalt.training.metrics_log import MetricsLog
from smalt.training.persistence import FailedPrompt, Persistence
from smalt.training.settings import TrainingSettings

_ROUND_SEED = 7_919_000_003
"""Between the seeds of a step's rounds of sampling; larger than any seed * 1,000,003 + step of a usual run."""


@dataclass
class TrainingLoop:
    """Trains one policy with one method."""

    method: Method[Any]
    growth: Growth
    learner: Learner
    settings: TrainingSettings
    problems: Mapping[str, Problem]
    folder: Path
    seed: int
    on_step: Callable[[int, int, Mapping[str, float]], None]
    """Told (step, steps, metrics) after each step, for progress display."""
    persistence: Persistence | None = field(init=False)
    """NGU's failed prompts, if they are to come back."""

    def __post_init__(self) -> None:
        """Begin with no failed prompts."""
        persists = self.settings.never_give_up
        self.persistence = Persistence(persists, self.folder / "failed_prompts") if persists else None

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
                first_batch, *spare = self._batches(contexts, step)
                metrics = self.train_step(first_batch, step, spare)
                if validation and self._is_due(self.settings.validate_every, step, steps):
                    metrics["validation_score"] = self.validate(validation)
                log.write(step, metrics)
                self.on_step(step, steps, metrics)
                if self._is_due(self.settings.checkpoint_every, step, steps):
                    self._save(checkpoints, step + 1)
        finally:
            log.close()
        return given - len(contexts)

    def train_step(
        self, contexts: Sequence[Context], step: int, spare: Iterable[Sequence[Context]] = ()
    ) -> dict[str, float]:
        """Sample, grade, credit and update once; returns the step's metrics.

        `spare` batches are sampled while fewer trees carry a signal than `contexts` has (DAPO's dynamic sampling).
        """
        started = time.perf_counter()
        trees, credited = self._sampled(contexts, step, spare)
        sampled = time.perf_counter()
        metrics = _tree_metrics(trees)
        # No group with mixed outcomes: there is nothing to learn from this batch, the step is skipped.
        metrics["is_skipped"] = float(not credited)
        if credited:
            whitens = self.method.tools.estimator.whitens_batch
            metrics |= self.learner.train_step(whiten_batch(credited) if whitens else credited, step)
        ended = time.perf_counter()
        seconds_grading = self.growth.seconds_grading
        self.growth.seconds_grading = 0.0
        seconds = {
            "sampling": sampled - started - seconds_grading,
            "grading": seconds_grading,
            "training": ended - sampled,
        }
        return metrics | time_shares(seconds) | sampling_tokens(trees)

    def validate(self, contexts: Sequence[Context]) -> float:
        """Mean validation score of the last program of one dialogue a context; the same draws each time.

        A dialogue has as many turns as the method's trees, and ends when its public tests pass.
        """
        trees = [self._tree(context) for context in contexts]
        growth = self.growth.with_sampling(self.settings.validation_sampling)
        turns = len(self.method.shape.branching)
        growth.grow(trees, Shape.chains(1, turns, stop_at_public_pass), seed=self.seed)
        last = [chain[-1] for tree in trees for chain in tree.chains()]
        scores = [self.method.validation_score(node) for node in last if not node.is_infra_error]
        return fmean(scores) if scores else 0.0

    def _sampled(
        self, contexts: Sequence[Context], step: int, spare: Iterable[Sequence[Context]]
    ) -> tuple[list[Tree], list[list[TrainingGroup]]]:
        """All trees of a step, and the groups of those that carry a signal, at most as many as prompts were meant."""
        prompts = [*map(FailedPrompt, contexts), *(self.persistence.waiting if self.persistence else ())]
        trees: list[Tree] = []
        credited: list[list[TrainingGroup]] = []
        for number, batch in enumerate((prompts, *([*map(FailedPrompt, other)] for other in spare))):
            grown = self._grown(batch, self.seed * 1_000_003 + step + number * _ROUND_SEED)
            trees += grown
            credited += [groups for tree in grown if (groups := self.method.credit(tree))]
            if len(credited) >= len(prompts):
                break
        if self.persistence:
            self.persistence.remember(prompts, trees, step)
        return trees, credited[: len(prompts)]

    def _batches(self, contexts: Sequence[Context], step: int) -> list[list[Context]]:
        """The step's batch and its spare ones, from the step's number alone."""
        rounds, size = self.settings.dynamic_sampling_rounds, self.settings.contexts_per_step
        return [batch_of_step(contexts, size, step * rounds + number, self.seed) for number in range(rounds)]

    def _grown(self, prompts: Sequence[FailedPrompt], seed: int) -> list[Tree]:
        """Trees grown from prompts; those that were tried before begin with what is kept of it."""
        trees = [self._tree(prompt.context) for prompt in prompts]
        for tree, prompt in zip(trees, prompts, strict=True):
            if prompt.rounds:
                self.growth.attach(tree, prompt.completions)
                tree.kept, tree.forgotten = len(tree.children), prompt.forgotten
        self.growth.grow(trees, self.method.shape, seed=seed)
        return trees

    def _tree(self, context: Context) -> Tree:
        problem = self.problems[context.problem_id]
        if self.method.starts_at == "problem":  # later turns need the messages, which a context does not keep
            return self.growth.seed_of(problem)
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
        if self.persistence:
            self.persistence.load(step)
        return step

    def _save(self, checkpoints: CheckpointStore, step: int) -> None:
        """Save the state after `step` steps; the memory first, as a checkpoint without it could not go on."""
        if self.persistence:
            self.persistence.save(step)
        checkpoints.save(step, self.learner.policy, self.learner.optimizer)
        if self.persistence:
            self.persistence.forget_before(self.settings.keep_checkpoints)

    def _is_due(self, every: int, step: int, steps: int) -> bool:
        """Whether something done every so many steps is due after this one; the last step always is."""
        return every > 0 and ((step + 1) % every == 0 or step + 1 == steps)


def _tree_metrics(trees: Sequence[Tree]) -> dict[str, float]:
    """What the samples of a step were like."""
    nodes = [node for tree in trees for node in [*tree.nodes()][tree.kept :]]
    scored = [node for node in nodes if node.reward is not None]
    first_turn = [n for tree in trees if not tree.attempts for n in tree.children if n.reward is not None]
    after_failure = [node for tree in trees for node in _after_failure(tree) if node.reward is not None]
    compared = [group for tree in trees for group in tree.groups() if len(group) > 1]
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
        "sampled_tokens": float(sum(len(node.completion.ids) for node in nodes)),
        "groups_without_signal": _mean([float(not has_signal([n.credit for n in group])) for group in compared]),
    }


def _after_failure(tree: Tree) -> list[Node]:
    """The nodes of a tree that were written after an unsolved program."""
    starts_failed = tree.attempts > 0 and tree.previous_best < 1
    return [
        node
        for node in tree.nodes()
        if (starts_failed if node.parent is None else not node.parent.passes_all and not node.parent.is_infra_error)
    ]


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0
