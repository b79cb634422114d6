"""From run folders to figures: what each run did, and what the runs of each method did together."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from smalt.evaluation.by_turn import outcomes_by_problem
from smalt.evaluation.over_seeds import RunOutcomes, by_turn_over_seeds, paired_over_seeds, thirds_by_difficulty
from smalt.evaluation.pass_at_k import ByTurn, PairedDifference
from smalt.files import read_json
from smalt.reports.comparison_file import (
    BudgetSummary,
    ComparisonSummary,
    Cost,
    CostSummary,
    Curve,
    MethodSummary,
    PairSummary,
    Quantity,
)
from smalt.reports.learning_curves import series, smoothed
from smalt.reports.run_folder import DifferenceSummary, EvaluationSummary, read_metrics
from smalt.rollouts.store import TrajectoryStore
from smalt.settings import RunSettings
from smalt.training.settings import TrainingBudget

_GRID = 40
"""Points of a curve."""
_TOTALS: dict[Cost, str] = {"sampled_tokens": "sampled_tokens_so_far", "seconds": "seconds_so_far"}
_QUANTITIES: tuple[Quantity, ...] = ("solved_share", "reward_mean")
_SECONDS = ("seconds_sampling", "seconds_grading", "seconds_training")


@dataclass(frozen=True)
class RunResult:
    """What is compared of a run that is done."""

    settings: RunSettings
    before: RunOutcomes
    after: RunOutcomes
    metrics: Sequence[Mapping[str, Any]]
    """One row a training step."""
    collection_tokens: int
    collection_seconds: float
    protocol: str


def read_run(folder: Path, settings: RunSettings) -> RunResult:
    """Read a finished run's folder."""
    turns = settings.evaluation.turns
    before, after = (
        outcomes_by_problem(list(TrajectoryStore(folder / "evaluation" / name / "trajectories").read()), turns)[0]
        for name in ("before", "after")
    )
    store = folder / "trajectories"
    return RunResult(
        settings=settings,
        before=before,
        after=after,
        metrics=read_metrics(folder / "metrics.jsonl"),
        collection_tokens=TrajectoryStore(store).sampled_tokens() if store.exists() else 0,
        collection_seconds=(read_json(folder / "stages.json") or {}).get("collect_trajectories", 0.0),
        protocol=(read_json(folder / "summary.json") or {})["protocol"],
    )


def summarise(budget: TrainingBudget, runs: Mapping[str, Sequence[RunResult]]) -> ComparisonSummary:
    """Figures of a comparison; `runs` has for each method's name its runs in the order of their seeds."""
    first = next(iter(runs.values()))
    thirds = thirds_by_difficulty([run.before for its in runs.values() for run in its])
    return ComparisonSummary(
        budget=_budget(budget),
        seeds=len(first),
        protocol=first[0].protocol,
        before=_evaluation(by_turn_over_seeds([run.before for run in first])),
        methods=[_method(name, its) for name, its in runs.items()],
        pairs=[_pair(*pair, runs, thirds) for pair in itertools.combinations(runs, 2)],
    )


def _method(name: str, runs: Sequence[RunResult]) -> MethodSummary:
    settings, metrics = runs[0].settings, [run.metrics for run in runs]
    return MethodSummary(
        name=name,
        method=settings.method,
        training_turns=settings.training_turns,
        evaluation=_evaluation(by_turn_over_seeds([run.after for run in runs])),
        gain=_difference(paired_over_seeds([run.before for run in runs], [run.after for run in runs])),
        cost=_cost(runs),
        curves=[curve_over_runs(metrics, quantity, cost) for quantity in _QUANTITIES for cost in _TOTALS],
    )


def _pair(
    first: str, second: str, runs: Mapping[str, Sequence[RunResult]], thirds: Sequence[Sequence[str]]
) -> PairSummary:
    sides = [[run.after for run in runs[name]] for name in (first, second)]
    parts = [[[_only(run, part) for run in side] for side in sides] for part in thirds] if all(thirds) else []
    return PairSummary(
        first=first,
        second=second,
        by_difficulty=[_difference(paired_over_seeds(*part)) for part in parts],
        **_difference(paired_over_seeds(*sides)).model_dump(),
    )


def _only(run: RunOutcomes, problems: Sequence[str]) -> RunOutcomes:
    return {problem: run[problem] for problem in problems if problem in run}


def _cost(runs: Sequence[RunResult]) -> CostSummary:
    tokens, seconds, examples, programs = (
        fmean(_sum(run.metrics, *keys) for run in runs)
        for keys in (("sampled_tokens",), _SECONDS, ("trees",), ("programs",))
    )
    method = runs[0].settings.method_class
    compares = not (method.learns_values or method.imitates)
    return CostSummary(
        steps=fmean(len(run.metrics) for run in runs),
        examples=examples,
        programs=programs,
        collection_tokens=fmean(run.collection_tokens for run in runs),
        collection_seconds=fmean(run.collection_seconds for run in runs),
        training_tokens=tokens,
        training_seconds=seconds,
        tokens_per_example=tokens / examples,
        seconds_per_example=seconds / examples,
        groups_without_signal=fmean(_mean(run.metrics, "groups_without_signal") for run in runs) if compares else None,
    )


def curve_over_runs(runs: Sequence[Sequence[Mapping[str, Any]]], quantity: Quantity, cost: Cost) -> Curve:
    """A quantity against a running total, each run smoothed and read off on the stretch that all runs cover."""
    lines = [_line(rows, quantity, _TOTALS[cost]) for rows in runs]
    start, end = max(spent[0] for spent, _ in lines), min(spent[-1] for spent, _ in lines)
    grid = np.linspace(start, max(start, end), _GRID)
    values = np.asarray([np.interp(grid, spent, smoothed(heights)) for spent, heights in lines])
    return Curve(
        quantity=quantity,
        cost=cost,
        spent=grid.tolist(),
        mean=values.mean(axis=0).tolist(),
        low=values.min(axis=0).tolist(),
        high=values.max(axis=0).tolist(),
    )


def _line(rows: Sequence[Mapping[str, Any]], quantity: Quantity, total: str) -> tuple[list[float], list[float]]:
    """The totals of a run's steps and the quantity at each."""
    spent, heights = dict(series(rows, total)), dict(series(rows, quantity))
    steps = [step for step in spent if step in heights]
    return [spent[step] for step in steps], [heights[step] for step in steps]


def _sum(rows: Sequence[Mapping[str, Any]], *keys: str) -> float:
    return float(sum(row[key] for row in rows for key in keys))


def _mean(rows: Sequence[Mapping[str, Any]], key: str) -> float:
    return fmean(row[key] for row in rows)


def _budget(budget: TrainingBudget) -> BudgetSummary:
    cost: Cost = "sampled_tokens" if budget.sampled_tokens is not None else "seconds"
    amount = budget.sampled_tokens or budget.seconds or 0.0
    return BudgetSummary(cost=cost, amount=amount, includes_collection=budget.includes_collection)


def _evaluation(figures: ByTurn) -> EvaluationSummary:
    return EvaluationSummary.model_validate(asdict(figures))


def _difference(figures: PairedDifference) -> DifferenceSummary:
    return DifferenceSummary.model_validate(asdict(figures))
