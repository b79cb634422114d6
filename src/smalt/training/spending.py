"""What training has cost so far, beside the budget that ends it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from smalt.training.settings import TrainingBudget

_TOKENS = "sampled_tokens_so_far"
_SECONDS = "seconds_so_far"
_PARTS = ("seconds_sampling", "seconds_grading", "seconds_training")


@dataclass(frozen=True)
class Spent:
    """Tokens that the policy wrote and seconds of wall time, from the first trajectory on."""

    sampled_tokens: float = 0.0
    seconds: float = 0.0

    @classmethod
    def from_metrics(cls, row: Mapping[str, float]) -> Spent:
        """What had been spent after a logged step."""
        return cls(row[_TOKENS], row[_SECONDS])

    def after(self, step: Mapping[str, float]) -> Spent:
        """With the costs of one more step, from its metrics."""
        seconds = sum(step[part] for part in _PARTS)
        return Spent(self.sampled_tokens + step["sampled_tokens"], self.seconds + seconds)

    def metrics(self) -> dict[str, float]:
        """For the log of a step."""
        return {_TOKENS: self.sampled_tokens, _SECONDS: self.seconds}

    def share_of(self, budget: TrainingBudget) -> float:
        """The share of the budget that is spent; 1 or more when it is reached."""
        if budget.sampled_tokens is not None:
            return self.sampled_tokens / budget.sampled_tokens
        return self.seconds / (budget.seconds or math.inf)

    def reaches(self, budget: TrainingBudget | None) -> bool:
        """Whether nothing is left of the budget; never without one."""
        return budget is not None and self.share_of(budget) >= 1
