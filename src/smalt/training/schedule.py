"""When training ends, what is due after which step, and which steps may be sampled ahead."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from smalt.training.settings import TrainingSettings
from smalt.training.spending import Spent


@dataclass(frozen=True)
class Schedule:
    """The steps of one training."""

    settings: TrainingSettings
    contexts: int
    """How many contexts there are to train on."""
    spent_before: Spent
    """What was spent before the first step."""

    def __post_init__(self) -> None:
        """Refuse a budget of which nothing is left."""
        budget = self.settings.budget
        if budget is not None and self.spent_before.reaches(budget):
            raise ValueError(
                f"training.budget is used up by the stored trajectories ({self.spent_before.sampled_tokens:,.0f} "
                f"tokens, {self.spent_before.seconds:.0f} s): raise it, collect less, or set "
                "training.budget.includes_collection to false"
            )

    def steps(self, done: int, spent: Spent) -> int:
        """Steps in all: `done` when the budget is reached, an estimate from what `done` steps cost while it is not."""
        steps, budget = self.settings.steps(self.contexts), self.settings.budget
        if budget is None:
            return steps
        if spent.reaches(budget):
            return done
        before = self.spent_before.share_of(budget)
        share_a_step = (spent.share_of(budget) - before) / done if done else 0.0
        left = math.ceil((1 - spent.share_of(budget)) / share_a_step) if share_a_step else steps
        return min(steps, done + left)

    def is_due(self, every: int, step: int, steps: int) -> bool:
        """Whether something done every so many steps is due after this one; the last step always is."""
        return every > 0 and ((step + 1) % every == 0 or step + 1 == steps)

    def goes_ahead(self, step: int, spent: Spent, sampled_tokens: int) -> bool:
        """Whether the step after `step` is sampled beside its update; `spent` lacks the step's `sampled_tokens`.

        Not behind a checkpoint, for the checkpoint could not tell a resumed run what was sampled, and not where no
        step follows. The end of a budget in seconds is not foreseen: a roll-out may then be for nothing.
        """
        if not self.settings.steps_ahead or (step + 1) % self.settings.checkpoint_every == 0:
            return False
        tokens = replace(spent, sampled_tokens=spent.sampled_tokens + sampled_tokens)
        return step + 1 < self.settings.steps(self.contexts) and not tokens.reaches(self.settings.budget)
