"""From sums over tokens to one loss: what a token of each completion counts in its mini-batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from smalt.training.groups import TrainingGroup
from smalt.training.settings import LossSettings


def token_weights(groups: Sequence[TrainingGroup], settings: LossSettings) -> list[list[float] | None]:
    """For each group the weight of a token of each of its completions; None for 1 / (tokens of the mini-batch).

    The weighted sum over tokens is the loss. `groups` is the whole mini-batch.

    sequences: 1 / (completions * own length), GRPO's paper (arXiv 2402.03300).
    constant: 1 / (completions * constant_length), Dr.GRPO (arXiv 2503.20783).
    turns: 1 / (turns * tokens of that turn), ours for MURPHY: each turn counts alike, however many programs it has.
    tokens: 1 / tokens, DAPO (arXiv 2503.14476).
    """
    completions = sum(len(group.completions) for group in groups)
    if settings.aggregation == "sequences":
        return [[1 / (completions * len(c.ids)) for c in group.completions] for group in groups]
    if settings.aggregation == "constant":
        weight = 1 / (completions * (settings.constant_length or 1))
        return [[weight] * len(group.completions) for group in groups]
    if settings.aggregation == "turns":
        tokens: Counter[int] = Counter()
        for group in groups:
            tokens[group.turn] += sum(len(c.ids) for c in group.completions)
        return [[1 / (len(tokens) * tokens[group.turn])] * len(group.completions) for group in groups]
    return [None] * len(groups)
