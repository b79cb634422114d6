"""Pass@1 by turn of a method trained with several seeds, and the difference between two methods.

A run is the outcomes of its evaluation, problem id -> samples x turns of bool, as `outcomes_by_problem` gives them.
All runs are evaluated on the same problems, so seeds and problems are crossed: the intervals redraw both, each with
replacement (the pigeonhole bootstrap, Owen 2007, doi 10.1214/07-AOAS122), and say how far another draw of training
seeds and of problems would move the figure. With one seed they are over problems alone; with few seeds they are too
narrow.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from smalt.evaluation.pass_at_k import RESAMPLES, ByTurn, PairedDifference

RunOutcomes = Mapping[str, Sequence[Sequence[bool]]]
"""Problem id -> samples x turns: did that turn's program pass the hidden tests?"""
_INTERVAL = (2.5, 97.5)  # percentiles of a 95 % interval


def by_turn_over_seeds(runs: Sequence[RunOutcomes], *, resamples: int = RESAMPLES, seed: int = 0) -> ByTurn:
    """Mean Pass@1 at each turn over the runs, with its 95 % interval; problems that all runs have.

    Raises ValueError when the runs have no problem in common, or differ in turns.
    """
    problems = shared_problems(runs)
    scores = _scores(runs, problems)
    samples = [len(run[problem]) for run in runs for problem in problems]
    return ByTurn(
        pass_at_1=scores.mean(axis=(0, 1)).tolist(),
        ci95=_intervals(scores, resamples, seed),
        problems=len(problems),
        samples_per_problem=sum(samples) / len(samples),
    )


def paired_over_seeds(
    before: Sequence[RunOutcomes], after: Sequence[RunOutcomes], *, resamples: int = RESAMPLES, seed: int = 0
) -> PairedDifference:
    """Mean of `after` minus `before` at each turn, with its 95 % interval.

    Runs at the same place, and problems of the same id, are compared with each other: give both in the order of
    their seeds. Raises ValueError when the two differ in runs or turns, or share no problem.
    """
    if len(before) != len(after):
        raise ValueError(f"pairs need as many runs on both sides, got {len(before)} and {len(after)}")
    problems = shared_problems([*before, *after])
    differences = _scores(after, problems) - _scores(before, problems)
    return PairedDifference(
        difference=differences.mean(axis=(0, 1)).tolist(),
        ci95=_intervals(differences, resamples, seed),
        problems=len(problems),
    )


def thirds_by_difficulty(runs: Sequence[RunOutcomes]) -> list[list[str]]:
    """Problems that all runs have in three parts, hardest first, by the mean of first programs that pass.

    Give runs of the untrained policy: gains over it are then biased within a part (who was unlucky looks hard), but
    differences between methods are not.
    """
    problems = shared_problems(runs)
    first_turn = dict(zip(problems, _scores(runs, problems)[:, :, 0].mean(axis=0), strict=True))
    ordered = sorted(problems, key=lambda problem: first_turn[problem])
    bounds = [len(ordered) * part // 3 for part in range(4)]
    return [ordered[start:end] for start, end in itertools.pairwise(bounds)]


def shared_problems(runs: Sequence[RunOutcomes]) -> list[str]:
    """Problems that every run has, in the order of the first."""
    if not runs:
        raise ValueError("there are no runs")
    shared = [problem for problem in runs[0] if all(problem in run for run in runs)]
    if not shared:
        raise ValueError("the runs have no problem in common")
    return shared


def _scores(runs: Sequence[RunOutcomes], problems: Sequence[str]) -> NDArray[np.float64]:
    """Share of samples that pass, `[runs, problems, turns]`."""
    turns = {len(sample) for run in runs for problem in problems for sample in run[problem]}
    if len(turns) != 1:
        raise ValueError(f"the runs differ in turns: {sorted(turns)}")
    return np.asarray([[np.mean(run[problem], axis=0) for problem in problems] for run in runs], dtype=np.float64)


def _intervals(scores: NDArray[np.float64], resamples: int, seed: int) -> list[list[float]]:
    """95 % percentile bootstrap of the means over runs and problems; `scores` is `[runs, problems, turns]`."""
    rng = np.random.default_rng(seed)
    runs, problems, turns = scores.shape
    run_weights = rng.multinomial(runs, np.full(runs, 1 / runs), size=resamples) / runs
    problem_weights = rng.multinomial(problems, np.full(problems, 1 / problems), size=resamples) / problems
    # Turn by turn: all at once would hold resamples x problems x turns numbers.
    means = [((run_weights @ scores[:, :, turn]) * problem_weights).sum(axis=1) for turn in range(turns)]
    bounds = np.percentile(means, _INTERVAL, axis=1)
    return [[float(low), float(high)] for low, high in bounds.T]
