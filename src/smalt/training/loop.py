"""The training loop: contexts -> trees -> credit -> update, until the steps are done.

It can be killed at any moment. Everything random in a step follows from the seed and the step's number, so a run
resumed from its newest checkpoint ends with the weights of an undisturbed one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from smalt.methods.method import Method
from smalt.policy.sampling import SamplingSettings
from smalt.problems.problem import Problem
from smalt.rollouts.growth import Growth, Shape, stop_at_public_pass
from smalt.rollouts.records import Context
from smalt.rollouts.tree import Tree
from smalt.training.batches import batch_of_step
from smalt.training.checkpoints import CheckpointStore
from smalt.training.companions import Companion
from smalt.training.cost import sampling_tokens, sampling_work, time_shares
from smalt.training.groups import TrainingGroup, whiten_batch
from smalt.training.learner import Learner
from smalt.training.metrics_log import MetricsLog
from smalt.training.persistence import FailedPrompt, Persistence
from smalt.training.settings import TrainingSettings
from smalt.training.spending import Spent
from smalt.training.step_metrics import tree_metrics

_ROUND_SEED = 7_919_000_003
"""Between the seeds of a step's rounds of sampling; larger than any seed * 1,000,003 + step of a usual run."""


@dataclass
class _Sample:
    """What a step sampled."""

    trees: list[Tree] = field(default_factory=list)
    credited: list[list[TrainingGroup]] = field(default_factory=list)
    """Groups of the trees that carry a signal."""
    learnt: dict[str, float] = field(default_factory=dict)
    """What the method itself learnt from the trees, as numbers for the log."""
    seconds: float = 0.0
    """Wall time of sampling and grading."""


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
    """Told (step, steps, metrics) after each step, for progress display; with a budget, steps is an estimate."""
    spent_before: Spent = field(default_factory=Spent)
    """What was spent before the first step, on the trajectories that contexts were cut from."""
    persistence: Persistence | None = field(init=False)
    """NGU's failed prompts, if they are to come back."""

    def __post_init__(self) -> None:
        """Begin with no failed prompts."""
        persists = self.settings.never_give_up
        self.persistence = Persistence(persists, self.folder / "failed_prompts") if persists else None

    def run(self, contexts: Sequence[Context], validation: Sequence[Context]) -> int:
        """Train, from the newest checkpoint if there is one, until the steps are done or the budget is reached.

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
        self._refuse_a_spent_budget()
        checkpoints = CheckpointStore(self.folder / "checkpoints", self.settings.keep_checkpoints)
        step = self._resume(checkpoints)
        log = MetricsLog(self.folder, step)
        spent = Spent.from_metrics(log.last) if log.last else self.spent_before
        try:
            while step < self._steps(len(contexts), step, spent):
                first_batch, *spare = self._batches(contexts, step)
                metrics = self.train_step(first_batch, step, spare)
                spent = spent.after(metrics)
                metrics |= spent.metrics()
                steps = self._steps(len(contexts), step + 1, spent)
                if validation and self._is_due(self.settings.validate_every, step, steps):
                    metrics["validation_score"] = self.validate(validation)
                log.write(step, metrics)
                self.on_step(step, steps, metrics)
                if self._is_due(self.settings.checkpoint_every, step, steps):
                    self._save(checkpoints, step + 1)
                step += 1
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
        sample = self._sampled(contexts, step, spare)
        metrics = tree_metrics(sample.trees) | sample.learnt
        # No group with mixed outcomes: there is nothing to learn from this batch, the step is skipped.
        metrics["is_skipped"] = float(not sample.credited)
        if sample.credited:
            whitens = self.method.tools.estimator.whitens_batch
            groups = whiten_batch(sample.credited) if whitens else sample.credited
            metrics |= self.learner.train_step(groups, step)
        seconds = {
            "sampling": sample.seconds - self.growth.seconds_grading,
            "grading": self.growth.seconds_grading,
            "training": time.perf_counter() - started - sample.seconds,
        }
        self.growth.seconds_grading = 0.0
        work = sampling_work(self.growth.sampler)
        return metrics | time_shares(seconds) | sampling_tokens(sample.trees) | work

    def validate(self, contexts: Sequence[Context]) -> float:
        """Mean validation score of the last program of one dialogue a context; the same draws each time.

        A dialogue has as many turns as the method's trees, and ends when its public tests pass.
        """
        trees = [self._tree(context) for context in contexts]
        growth = self.growth.with_sampling(self.settings.validation_sampling)
        turns = len(self.method.shape.branching)
        growth.grow(trees, Shape.chains(1, turns, stop_at_public_pass), seed=self.seed)
        sampling_work(self.growth.sampler)  # is no step's
        last = [chain[-1] for tree in trees for chain in tree.chains()]
        scores = [self.method.validation_score(node) for node in last if not node.is_infra_error]
        return fmean(scores) if scores else 0.0

    def _sampled(self, contexts: Sequence[Context], step: int, spare: Iterable[Sequence[Context]]) -> _Sample:
        """Everything that a step samples, credited; groups of at most as many trees as prompts were meant."""
        prompts = [*map(FailedPrompt, contexts), *(self.persistence.waiting if self.persistence else ())]
        sample = _Sample()
        for number, batch in enumerate((prompts, *([*map(FailedPrompt, other)] for other in spare))):
            started = time.perf_counter()
            grown = self._grown(batch, self.seed * 1_000_003 + step + number * _ROUND_SEED)
            sample.seconds += time.perf_counter() - started
            sample.trees += grown
            sample.learnt |= self.method.learn_from(grown)
            sample.credited += [groups for tree in grown if (groups := self.method.credit(tree))]
            if len(sample.credited) >= len(prompts):
                break
        if self.persistence:
            self.persistence.remember(prompts, sample.trees, step)
        del sample.credited[len(prompts) :]
        return sample

    def _steps(self, contexts: int, done: int, spent: Spent) -> int:
        """Steps in all: `done` when the budget is reached, an estimate from what `done` steps cost while it is not."""
        steps, budget = self.settings.steps(contexts), self.settings.budget
        if budget is None:
            return steps
        if spent.reaches(budget):
            return done
        before = self.spent_before.share_of(budget)
        share_a_step = (spent.share_of(budget) - before) / done if done else 0.0
        left = math.ceil((1 - spent.share_of(budget)) / share_a_step) if share_a_step else steps
        return min(steps, done + left)

    def _refuse_a_spent_budget(self) -> None:
        budget = self.settings.budget
        if budget is not None and self.spent_before.reaches(budget):
            raise ValueError(
                f"training.budget is used up by the stored trajectories ({self.spent_before.sampled_tokens:,.0f} "
                f"tokens, {self.spent_before.seconds:.0f} s): raise it, collect less, or set "
                "training.budget.includes_collection to false"
            )

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
        for companion in self._companions():
            companion.load(step)
        return step

    def _save(self, checkpoints: CheckpointStore, step: int) -> None:
        """Save the state after `step` steps; the companions first, as a checkpoint without them could not go on."""
        for companion in self._companions():
            companion.save(step)
        checkpoints.save(step, self.learner.policy, self.learner.optimizer)
        for companion in self._companions():
            companion.forget_before(self.settings.keep_checkpoints)

    def _companions(self) -> list[Companion]:
        """What has to be saved beside the policy."""
        return [companion for companion in (self.persistence, self.method.tools.verifier) if companion is not None]

    def _is_due(self, every: int, step: int, steps: int) -> bool:
        """Whether something done every so many steps is due after this one; the last step always is."""
        return every > 0 and ((step + 1) % every == 0 or step + 1 == steps)
