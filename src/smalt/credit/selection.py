"""Choosing a few of many by the variance of their values.

Source: max-variance down-sampling, arXiv 2504.13818: the subset of m values with the largest variance is
always "the k highest and the m - k lowest" for some k, so m + 1 candidates suffice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

_TIE = 1e-12  # relative; below it two variances differ by rounding only


def max_variance_subset(values: Sequence[float], m: int) -> list[int]:
    """Indices, ascending, of the m values with the largest variance; all indices when there are at most m.

    Ties: among equal variances the candidate with more high values wins; among equal values the low end takes
    earlier positions and the high end later ones. The same input thus always gives the same answer.

    Raises ValueError when m is negative or a value is not finite.
    """
    if m < 0:
        raise ValueError(f"m must not be negative, got {m}")
    if not all(math.isfinite(value) for value in values):
        raise ValueError("values must be finite")
    if m >= len(values):
        return list(range(len(values)))
    order = sorted(range(len(values)), key=lambda index: (values[index], index))
    best: list[int] = []
    best_variance = -1.0
    for high in range(m, -1, -1):
        chosen = order[: m - high] + order[len(order) - high :]
        variance = _variance([values[index] for index in chosen])
        if variance > best_variance * (1 + _TIE):
            best, best_variance = chosen, variance
    return sorted(best)


def _variance(values: Sequence[float]) -> float:
    """Variance around the mean, divided by n; 0 for no values."""
    if not values:
        return 0.0
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / len(values)
