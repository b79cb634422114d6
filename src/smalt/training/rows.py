"""Groups as rows: one prompt and completion each, with all that the loss needs to know of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from smalt.policy.layouts import Row
from smalt.policy.sampling import Completion
from smalt.training.aggregation import token_weights
from smalt.training.groups import TrainingGroup
from smalt.training.settings import LossSettings


@dataclass(frozen=True)
class TrainingRow:
    """One completion of a mini-batch. Rows of a group may go to different micro-batches: their losses add up."""

    prompt_ids: tuple[int, ...]
    completion: Completion
    advantage: float
    weight: float
    """What each of its tokens counts in the mini-batch's loss."""
    earned: float | None
    """The return, for methods that learn values."""

    @property
    def tokens(self) -> Row:
        """What the model is run on."""
        return Row(self.prompt_ids, self.completion.ids)

    def carries_gradient(self, loss: LossSettings) -> bool:
        """Whether the row can move any weight; one that cannot needs no forward pass.

        Without an advantage an objective is flat, except OAPL's, which regresses on it; penalty and value are not.
        """
        is_flat = self.advantage == 0 and loss.objective != "oapl"
        return not is_flat or loss.kl_coefficient > 0 or self.earned is not None


def training_rows(groups: Sequence[TrainingGroup], loss: LossSettings) -> list[TrainingRow]:
    """The rows of a whole mini-batch, in order."""
    tokens = sum(len(completion.ids) for group in groups for completion in group.completions)
    rows = []
    for group, weights in zip(groups, token_weights(groups, loss), strict=True):
        for place, (completion, advantage) in enumerate(zip(group.completions, group.advantages, strict=True)):
            weight = weights[place] if weights else 1 / tokens
            earned = group.returns[place] if group.returns else None
            rows.append(TrainingRow(group.prompt_ids, completion, advantage, weight, earned))
    return rows
