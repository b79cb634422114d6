"""VeRPO's arithmetic: tests weighted by how seldom they pass, and the two advantages made of it.

Source: arXiv 2601.03525 as described in METHODS 3 (second-hand). All numbers are plain floats; a turn is described
by one boolean per test.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Passed = Sequence[bool]
"""One turn: whether it passes each test of the problem, in the tests' order."""


def passing_shares(turns: Sequence[Passed]) -> list[float]:
    """rho_j: the share of all turns of all trajectories of a group that pass test j, in [0, 1]."""
    return [math.fsum(passed) / len(turns) for passed in zip(*turns, strict=True)]


def hardness_weights(shares: Sequence[float], alpha: float) -> list[float]:
    """w_j = exp(-alpha rho_j): the seldom passed weigh most."""
    return [math.exp(-alpha * share) for share in shares]


def hardness_densities(shares: Sequence[float], sigma: float, delta: float) -> list[float]:
    """N_j = sum over j' of exp(-(rho_j - rho_j')^2 / (2 sigma^2)) + delta: how many tests are as hard as test j."""
    return [math.fsum(math.exp(-((own - other) ** 2) / (2 * sigma**2)) for other in shares) + delta for own in shares]


def turn_rewards(turns: Sequence[Passed], weights: Sequence[float]) -> list[float]:
    """For each turn the sum of the weights of the tests it passes."""
    return [math.fsum(w for w, is_passed in zip(weights, passed, strict=True) if is_passed) for passed in turns]


def discounted_outcome(is_solved: bool, turns: int, gamma: float) -> float:
    """R gamma^turns with R = 1 for a solved trajectory, else 0; `turns` is its length."""
    return gamma**turns if is_solved else 0.0


def turn_advantages(outcomes: Sequence[float], rewards: Sequence[Sequence[float]], beta: float) -> list[list[float]]:
    """A = A_outcome + beta A_turn for each (trajectory, turn), neither divided by a deviation.

    `outcomes` has one value a trajectory, centred on their mean; `rewards` one a turn of each trajectory, centred on
    the mean over all turns of all trajectories.
    """
    outcome_mean = math.fsum(outcomes) / len(outcomes)
    every_turn = [reward for trajectory in rewards for reward in trajectory]
    turn_mean = math.fsum(every_turn) / len(every_turn)
    return [
        [outcome - outcome_mean + beta * (reward - turn_mean) for reward in trajectory]
        for outcome, trajectory in zip(outcomes, rewards, strict=True)
    ]
