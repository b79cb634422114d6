"""What credit hands to the learner."""

from __future__ import annotations

from dataclasses import dataclass

from smalt.policy.sampling import Completion


@dataclass(frozen=True)
class TrainingGroup:
    """Siblings with their advantages; members without one (infra errors) were taken out before."""

    prompt_ids: tuple[int, ...]
    completions: tuple[Completion, ...]
    advantages: tuple[float, ...]
