"""Evaluate a policy turn by turn: Pass@1 of the program written at each turn, on the hidden tests."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from smalt.evaluation.pass_at_k import paired_difference, pass_at_1_by_turn
from smalt.files import read_json, write_json
from smalt.problems.problem import Problem
from smalt.rollouts.collection import CollectionSettings, collect
from smalt.rollouts.growth import Growth
from smalt.rollouts.records import Trajectory
from smalt.rollouts.store import TrajectoryStore


def evaluate(
    problems: Sequence[Problem],
    growth: Growth,
    settings: CollectionSettings,
    folder: Path,
    seed: int,
    on_problems: Callable[[int, int], None],
) -> dict[str, Any]:
    """Run dialogues over `problems`, write `folder/trajectories` and `folder/summary.json`, return the summary.

    Turn t's figure is the share of that turn's programs that pass the hidden tests, not the best so far. Where
    dialogues stop at the first public pass, later turns repeat the last program; the summary states the protocol.
    """
    started = time.perf_counter()
    earlier = read_json(folder / "progress.json") or {"seconds": 0.0}
    store = TrajectoryStore(folder / "trajectories")

    def on_shard(done: int, total: int) -> None:
        seconds = earlier["seconds"] + time.perf_counter() - started
        write_json(folder / "progress.json", {"seconds": seconds})
        on_problems(done, total)

    too_long = collect(problems, growth, settings, store, seed, on_shard)
    wanted = {problem.id for problem in problems}
    outcomes, infra_errors = outcomes_by_problem(
        [trajectory for trajectory in store.read() if trajectory.problem_id in wanted], settings.turns
    )
    if not outcomes:
        raise ValueError(
            f"nothing to evaluate: of {len(problems)} problems {too_long} leave no room in the model's context, "
            f"and the grader failed in all {infra_errors} dialogues"
        )
    figures = pass_at_1_by_turn(list(outcomes.values()))
    summary = {
        "pass_at_1": figures.pass_at_1,
        "ci95": figures.ci95,
        "problems": figures.problems,
        "samples_per_problem": figures.samples_per_problem,
        "seconds": round((read_json(folder / "progress.json") or earlier)["seconds"], 2),
        "turns": settings.turns,
        "temperature": settings.sampling.temperature,
        "top_p": settings.sampling.top_p,
        "stops_at_public_pass": settings.stops_at_public_pass,
        "best_of": settings.best_of,
        "problems_too_long": too_long,
        "dialogues_left_out": infra_errors,
    }
    write_json(folder / "summary.json", summary)
    return summary


def compare_by_turn(before: Path, after: Path, turns: int) -> dict[str, Any] | None:
    """Paired difference, by turn, of two evaluations' folders over the problems that both have."""
    outcomes = [
        outcomes_by_problem(list(TrajectoryStore(folder / "trajectories").read()), turns)[0]
        for folder in (before, after)
    ]
    shared = [problem_id for problem_id in outcomes[0] if problem_id in outcomes[1]]
    if not shared:
        return None
    difference = paired_difference(*([by_problem[i] for i in shared] for by_problem in outcomes))
    return asdict(difference)


def outcomes_by_problem(trajectories: Sequence[Trajectory], turns: int) -> tuple[dict[str, list[list[bool]]], int]:
    """For each problem samples x turns: did that turn's program pass the hidden tests?

    A dialogue in which the grader failed is left out and counted. A dialogue that ended early (its public tests
    passed, or the prompt outgrew the context) keeps its last program for the turns that are missing.
    """
    by_problem: dict[str, list[list[bool]]] = defaultdict(list)
    left_out = 0
    for trajectory in trajectories:
        if trajectory.has_infra_error:
            left_out += 1
            continue
        passed = [turn.passes_hidden for turn in trajectory.turns]
        by_problem[trajectory.problem_id].append(passed + [passed[-1]] * (turns - len(passed)))
    return dict(by_problem), left_out
