"""What a step costs, whoever takes it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StepCost:
    """One step; times in seconds of wall time."""

    sampling: float
    grading: float
    training: float
    """All the rest: forward, backward, optimiser."""
    tokens: int
    """Sampled."""
    programs: int
    """Graded: replies without a program are not."""

    @property
    def seconds(self) -> float:
        """Of the whole step."""
        return self.sampling + self.grading + self.training

    @property
    def seconds_a_thousand_tokens(self) -> float:
        """Of the whole step, by the tokens that were sampled in it."""
        return 1000 * self.seconds / self.tokens
