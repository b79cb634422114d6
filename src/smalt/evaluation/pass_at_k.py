"""Pass@k by turn, with intervals that say how far the choice of problems moves it.

Outcomes are nested sequences, problems x samples x turns of bool: whether that turn's own program passes the
hidden tests (not the best so far). Problems may have different numbers of samples; every sample has the same
number of turns. A trajectory that stopped early is the caller's to extend, because what its later turns count
as is the evaluation protocol's choice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Outcomes = Sequence[Sequence[Sequence[bool]]]

RESAMPLES = 4000
_INTERVAL = (2.5, 97.5)  # percentiles of a 95 % interval


@dataclass(frozen=True)
class ByTurn:
    """Pass@1 at each turn: the mean over problems of each problem's mean over samples. Shares in [0, 1]."""

    pass_at_1: list[float]
    ci95: list[list[float]]
    """[low, high] per turn: percentile bootstrap over problems. With one problem it has no width."""
    problems: int
    samples_per_problem: float
    """Mean number of samples; a whole number unless problems differ."""


@dataclass(frozen=True)
class PassAtKByTurn:
    """Pass@k at each turn, unbiased within each problem, mean over problems. Shares in [0, 1]."""

    k: int
    pass_at_k: list[float]
    ci95: list[list[float]]
    problems: int
    samples_per_problem: float


@dataclass(frozen=True)
class PairedDifference:
    """Pass@1 after minus before at each turn, on the same problems. In [-1, 1]."""

    difference: list[float]
    ci95: list[list[float]]
    """[low, high] per turn: percentile bootstrap over the problems' differences."""
    problems: int


def pass_at_k(n: int, c: int, k: int) -> float:
    """Probability that k samples drawn from n, of which c are correct, hold a correct one.

    The unbiased estimator 1 - C(n - c, k) / C(n, k) (arXiv 2107.03374, equation 1), in exact integers.

    Raises ValueError unless 0 <= c <= n and 1 <= k <= n.
    """
    if not 0 <= c <= n or not 1 <= k <= n:
        raise ValueError(f"need 0 <= c <= n and 1 <= k <= n, got n={n}, c={c}, k={k}")
    subsets = math.comb(n, k)
    return (subsets - math.comb(n - c, k)) / subsets


def pass_at_1_by_turn(outcomes: Outcomes, *, resamples: int = RESAMPLES, seed: int = 0) -> ByTurn:
    """Pass@1 at each turn with its 95 % interval.

    Raises ValueError when there is no problem, a problem has no samples, or samples differ in turns.
    """
    scores = _scores(outcomes, k=1)
    return ByTurn(
        pass_at_1=scores.mean(axis=0).tolist(),
        ci95=_intervals(scores, resamples, seed),
        problems=len(outcomes),
        samples_per_problem=_samples_per_problem(outcomes),
    )


def pass_at_k_by_turn(outcomes: Outcomes, k: int, *, resamples: int = RESAMPLES, seed: int = 0) -> PassAtKByTurn:
    """Pass@k at each turn with its 95 % interval.

    Raises ValueError as `pass_at_1_by_turn` does, and when a problem has fewer than k samples.
    """
    scores = _scores(outcomes, k)
    return PassAtKByTurn(
        k=k,
        pass_at_k=scores.mean(axis=0).tolist(),
        ci95=_intervals(scores, resamples, seed),
        problems=len(outcomes),
        samples_per_problem=_samples_per_problem(outcomes),
    )


def paired_difference(
    before: Outcomes, after: Outcomes, *, resamples: int = RESAMPLES, seed: int = 0
) -> PairedDifference:
    """Difference of two evaluations on the same problems in the same order, with its 95 % interval.

    Pairing removes the spread between easy and hard problems, which is most of the width of the two separate
    intervals: these may overlap although the difference is clear.

    Raises ValueError when the two differ in problems or turns.
    """
    scores_before, scores_after = _scores(before, k=1), _scores(after, k=1)
    if scores_before.shape != scores_after.shape:
        raise ValueError(f"the evaluations differ in (problems, turns): {scores_before.shape} and {scores_after.shape}")
    differences = scores_after - scores_before
    return PairedDifference(
        difference=differences.mean(axis=0).tolist(),
        ci95=_intervals(differences, resamples, seed),
        problems=len(before),
    )


def _scores(outcomes: Outcomes, k: int) -> NDArray[np.float64]:
    """Pass@k of every problem at every turn, shape (problems, turns)."""
    if len(outcomes) == 0:  # not `if not`: arrays are welcome
        raise ValueError("there are no problems")
    turns = _turns(outcomes)
    rows = []
    for index, samples in enumerate(outcomes):
        if len(samples) == 0:
            raise ValueError(f"problem {index} has no samples")
        if len(samples) < k:
            raise ValueError(f"problem {index} has {len(samples)} samples, pass@{k} needs at least {k}")
        counts = [sum(bool(sample[turn]) for sample in samples) for turn in range(turns)]
        rows.append([pass_at_k(len(samples), count, k) for count in counts])
    return np.asarray(rows, dtype=np.float64)


def _turns(outcomes: Outcomes) -> int:
    """The number of turns that all samples have; ValueError names the first that differs."""
    turns: int | None = None
    for problem, samples in enumerate(outcomes):
        for sample, by_turn in enumerate(samples):
            turns = len(by_turn) if turns is None else turns
            if len(by_turn) != turns or turns == 0:
                raise ValueError(
                    f"problem {problem}, sample {sample} has {len(by_turn)} turns, expected {turns or '>= 1'}"
                )
    return turns or 0


def _samples_per_problem(outcomes: Outcomes) -> float:
    return sum(len(samples) for samples in outcomes) / len(outcomes)


def _intervals(scores: NDArray[np.float64], resamples: int, seed: int) -> list[list[float]]:
    """95 % percentile bootstrap of the column means; `scores` has shape (problems, turns)."""
    if resamples < 1:
        raise ValueError(f"resamples must be at least 1, got {resamples}")
    problems = len(scores)
    # How often each problem is drawn is enough, and is a turns-th of the memory of the drawn scores.
    draws = np.random.default_rng(seed).multinomial(problems, np.full(problems, 1 / problems), size=resamples)
    means = draws @ scores / problems
    bounds = np.percentile(means, _INTERVAL, axis=0)
    return [[float(low), float(high)] for low, high in bounds.T]
