"""The training loop: contexts -> trees -> credit -> update, until the steps are done.

It can be killed at any moment. Everything random in a step follows from the seed and the step's number, so a run
resumed from its newest checkpoint ends with the weights of an undisturbed one. For the same reason no step behind a
checkpoint is sampled ahead: its roll-out could not be made again from what the checkpoint holds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
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
from smalt.training.cost import sampling_tokens, sampling_work, time_shares, total_work
from smalt.training.groups import TrainingGroup, whiten_batch
from smalt.training.learner import Learner
from smalt.training.metrics_log import MetricsLog
from smalt.training.persistence import FailedPrompt, Persistence
from smalt.training.schedule import Schedule
from smalt.training.settings import TrainingSettings
from smalt.training.spending import Spent
from smalt.training.step_metrics import tree_metrics
from smalt.training.step_rollouts import RolloutGrower, StepRollout, rollout_seconds

_ROUND_SEED = 7_919_000_003
"""Between the seeds of a step's rounds of sampling; larger than any seed * 1,000,003 + step of a usual run."""


@dataclass
class _Sample:
    """What a step trains on."""

    rollouts: list[StepRollout] = field(default_factory=list)
    credited: list[list[TrainingGroup]] = field(default_factory=list)
    """Groups of the trees that carry a signal."""
    learnt: dict[str, float] = field(default_factory=dict)
    """What the method itself learnt from the trees, as numbers for the log."""

    @property
    def trees(self) -> list[Tree]:
        """All trees, those without a signal too."""
        return [tree for rollout in self.rollouts for tree in rollout.trees]


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
        schedule = Schedule(self.settings, len(contexts), self.spent_before)
        if self.settings.steps_ahead:
            self._grower.check_that_it_freezes()
        checkpoints = CheckpointStore(self.folder / "checkpoints", self.settings.keep_checkpoints)
        step = self._resume(checkpoints)
        log = MetricsLog(self.folder, step)
        spent = Spent.from_metrics(log.last) if log.last else self.spent_before
        ahead: StepRollout | None = None
        try:
            while step < schedule.steps(step, spent):
                first_batch, *spare = self._batches(contexts, step)
                rollout = ahead or self._roll_out(first_batch, step)
                goes_ahead = schedule.goes_ahead(step, spent, rollout.sampled_tokens)
                following = self._batches(contexts, step + 1)[0] if goes_ahead else None
                metrics, ahead = self._train_on(rollout, step, spare, following)
                spent = spent.after(metrics)
                metrics |= spent.metrics()
                steps = schedule.steps(step + 1, spent)
                if validation and schedule.is_due(self.settings.validate_every, step, steps):
                    metrics["validation_score"] = self.validate(validation)
                log.write(step, metrics)
                self.on_step(step, steps, metrics)
                if schedule.is_due(self.settings.checkpoint_every, step, steps):
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
        return self._train_on(self._roll_out(contexts, step), step, spare)[0]

    def _train_on(
        self,
        rollout: StepRollout,
        step: int,
        spare: Iterable[Sequence[Context]],
        following: Sequence[Context] | None = None,
    ) -> tuple[dict[str, float], StepRollout | None]:
        """Credit a roll-out and update once, beside which the `following` step is sampled, if it is given."""
        started = time.perf_counter()
        staleness = self.learner.updates - rollout.updates_before
        sample = self._credited(rollout, step, spare)
        metrics = tree_metrics(sample.trees) | sample.learnt | {"staleness": float(staleness)}
        ahead = None
        if following is None:
            metrics |= self._update(sample, step)
        else:
            updated, ahead = self._grower.grow_beside(
                partial(self._update, sample, step), *self._start_of(following, step + 1)
            )
            metrics |= updated
        waited, hidden = rollout_seconds(sample.rollouts)
        not_training = sum(other.waited for other in [*sample.rollouts[1:], *([ahead] if ahead else [])])
        waited["training"] = time.perf_counter() - started - not_training
        tokens = sampling_tokens(sample.trees) | total_work([rollout.work for rollout in sample.rollouts])
        return metrics | time_shares(waited) | hidden | tokens, ahead

    def _update(self, sample: _Sample, step: int) -> dict[str, float]:
        """The learner's step on what carries a signal, and its numbers.

        Where no group has mixed outcomes there is nothing to learn from the batch, and the step is skipped.
        """
        metrics = {"is_skipped": float(not sample.credited)}
        if sample.credited:
            whitens = self.method.tools.estimator.whitens_batch
            groups = whiten_batch(sample.credited) if whitens else sample.credited
            metrics |= self.learner.train_step(groups, step)
        return metrics

    def validate(self, contexts: Sequence[Context]) -> float:
        """Mean validation score of the last program of one dialogue a context; the same draws each time.

        A dialogue has as many turns as the method's trees, and ends when its public tests pass.
        """
        trees = [self._grower.tree(context) for context in contexts]
        growth = self.growth.with_sampling(self.settings.validation_sampling)
        turns = len(self.method.shape.branching)
        growth.grow(trees, Shape.chains(1, turns, stop_at_public_pass), seed=self.seed)
        sampling_work(self.growth.sampler)  # is no step's
        last = [chain[-1] for tree in trees for chain in tree.chains()]
        scores = [self.method.validation_score(node) for node in last if not node.is_infra_error]
        return fmean(scores) if scores else 0.0

    @property
    def _grower(self) -> RolloutGrower:
        return RolloutGrower(self.method, self.growth, self.problems)

    def _start_of(
        self, contexts: Sequence[Context], step: int, number: int = 0
    ) -> tuple[Sequence[FailedPrompt], int, int]:
        """What a step's roll-out number `number` starts from: prompts, seed, and the updates there have been."""
        waiting = self.persistence.waiting if self.persistence and number == 0 else ()
        seed = self.seed * 1_000_003 + step + number * _ROUND_SEED
        return [*map(FailedPrompt, contexts), *waiting], seed, self.learner.updates

    def _roll_out(self, contexts: Sequence[Context], step: int, number: int = 0) -> StepRollout:
        return self._grower.grow(*self._start_of(contexts, step, number))

    def _credited(self, rollout: StepRollout, step: int, spare: Iterable[Sequence[Context]]) -> _Sample:
        """All that a step trains on, credited; groups of at most as many trees as prompts were meant."""
        meant, sample = len(rollout.prompts), _Sample()
        later = (self._roll_out(batch, step, number) for number, batch in enumerate(spare, start=1))
        for one in chain([rollout], later):
            sample.rollouts.append(one)
            sample.learnt |= self.method.learn_from(one.trees)
            sample.credited += [groups for tree in one.trees if (groups := self.method.credit(tree))]
            if len(sample.credited) >= meant:
                break
        if self.persistence:
            self.persistence.remember(rollout.prompts, sample.trees, step)
        del sample.credited[meant:]
        return sample

    def _batches(self, contexts: Sequence[Context], step: int) -> list[list[Context]]:
        """The step's batch and its spare ones, from the step's number alone."""
        rounds, size = self.settings.dynamic_sampling_rounds, self.settings.contexts_per_step
        return [batch_of_step(contexts, size, step * rounds + number, self.seed) for number in range(rounds)]

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
