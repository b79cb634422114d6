"""Advantages inside one group: the completions sampled from one identical prompt.

Source: GRPO, A_i = (r_i - mean) / (std + eps) with the unbiased standard deviation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

SMALLEST_SPREAD = 1e-9
"""Rewards closer than this are equal: sums in another order differ by rounding, and rounding is no signal.

The finest real difference, one token of thinking just below Cobalt's limit, is about 1e-7.
"""


def group_advantages(rewards: Sequence[float | None], eps: float = 1e-6) -> list[float]:
    """GRPO advantages of a group, one per reward, in the same order.

    None or NaN marks a sample that left the batch (the grader failed on it): it enters neither mean nor
    deviation and its advantage is 0.0; the caller drops it from the batch as well. Equal rewards, or fewer
    than two present, give all zeros.

    Raises ValueError for an infinite reward.
    """
    if not has_signal(rewards):
        return [0.0] * len(rewards)
    present = _present(rewards)
    mean = math.fsum(present) / len(present)
    std = math.sqrt(math.fsum((reward - mean) ** 2 for reward in present) / (len(present) - 1))
    return [
        (reward - mean) / (std + eps) if reward is not None and not math.isnan(reward) else 0.0 for reward in rewards
    ]


def has_signal(rewards: Sequence[float | None]) -> bool:
    """Whether the rewards that are present differ, so that the group gives a gradient.

    Raises ValueError for an infinite reward.
    """
    present = _present(rewards)
    return len(present) > 1 and max(present) - min(present) > SMALLEST_SPREAD


def _present(rewards: Sequence[float | None]) -> list[float]:
    """Rewards of the samples that are still in the batch."""
    present = [reward for reward in rewards if reward is not None and not math.isnan(reward)]
    if any(math.isinf(reward) for reward in present):
        raise ValueError(f"a reward is infinite: {present}")
    return present
