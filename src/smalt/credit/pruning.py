"""Which groups and members of a grown tree train: MURPHY's two prunings (METHODS 2).

Both come after credit and change none of it; they save update cost, not sampling.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def best_groups(groups: Sequence[Sequence[float]], budget: int, mean_weight: float, std_weight: float) -> list[int]:
    """InterP: places, ascending, of the `budget` groups with the highest mean_weight * mean + std_weight * std.

    The deviation is the unbiased one, 0 for a group of one. Among equals the earlier stays. An empty group, one on
    which the grader failed altogether, comes last.
    """
    ranked = sorted(range(len(groups)), key=lambda place: (-_score(groups[place], mean_weight, std_weight), place))
    return sorted(ranked[:budget])


def _score(values: Sequence[float], mean_weight: float, std_weight: float) -> float:
    if not values:
        return -math.inf
    mean = math.fsum(values) / len(values)
    squares = math.fsum((value - mean) ** 2 for value in values)
    std = math.sqrt(squares / (len(values) - 1)) if len(values) > 1 else 0.0
    return mean_weight * mean + std_weight * std
