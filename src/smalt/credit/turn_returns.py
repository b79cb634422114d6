"""RLEF's arithmetic: rewards of the turns of a dialogue, and what follows each turn (arXiv 2410.02089, METHODS 3)."""

from __future__ import annotations

from collections.abc import Sequence


def turn_rewards(has_code: Sequence[bool], is_solved: bool, no_code_reward: float) -> list[float]:
    """Rewards of a dialogue's turns, from whether each has valid code.

    The last turn earns +1 when it solves the problem, else -1; an earlier one `no_code_reward` without code, else 0.
    """
    earlier = [0.0 if is_valid else no_code_reward for is_valid in has_code[:-1]]
    return [*earlier, 1.0 if is_solved else -1.0]


def penalised(rewards: Sequence[float], log_ratios: Sequence[float], coefficient: float) -> list[float]:
    """Rewards minus `coefficient` times each turn's log pi / pi_ref.

    A turn's log-ratio is the mean over its tokens, the logarithm of the geometric mean of the ratios: long turns pay no
    more than short ones.
    """
    return [reward - coefficient * log_ratio for reward, log_ratio in zip(rewards, log_ratios, strict=True)]


def undiscounted_returns(rewards: Sequence[float]) -> list[float]:
    """For each turn the sum of its reward and all later ones (gamma 1)."""
    returns: list[float] = []
    total = 0.0
    for reward in reversed(rewards):
        total += reward
        returns.append(total)
    return returns[::-1]
