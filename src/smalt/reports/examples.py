"""Example dialogues for the report: held-out problems that the policy solves late, before and after training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from smalt.problems.problem import Problem
from smalt.rollouts.records import Trajectory
from smalt.rollouts.store import TrajectoryStore

_MOST_EXAMPLES = 4
_MOST_TURNS = 4


def example_dialogues(problems: Sequence[Problem], before: Path, after: Path) -> list[dict[str, Any]]:
    """Dialogues in which the first program fails and a later one passes, and the same problem before training."""
    statements = {problem.id: problem.statement for problem in problems}
    later = [t for t in TrajectoryStore(after / "trajectories").read() if _is_repair(t)][:_MOST_EXAMPLES]
    first = {(t.problem_id, t.sample): t for t in TrajectoryStore(before / "trajectories").read()}
    examples: list[dict[str, Any]] = []
    for trajectory in later:
        for name, shown in (
            ("before training", first.get((trajectory.problem_id, trajectory.sample))),
            ("after training", trajectory),
        ):
            if shown is not None:
                examples.append(_dialogue(shown, statements[shown.problem_id], name))
    return examples


def _is_repair(trajectory: Trajectory) -> bool:
    turns = trajectory.turns[:_MOST_TURNS]
    return not trajectory.has_infra_error and not turns[0].passes_hidden and turns[-1].passes_hidden


def _dialogue(trajectory: Trajectory, statement: str, name: str) -> dict[str, Any]:
    turns = [{"role": "user", "text": statement, "verdict": None}]
    for turn in trajectory.turns[:_MOST_TURNS]:
        turns.append({"role": "assistant", "text": turn.reply, "verdict": _verdict(turn.passes_hidden)})
        if turn.passes_hidden:
            break
        turns.append({"role": "user", "text": turn.feedback, "verdict": None})
    return {"problem_id": f"{trajectory.problem_id}, {name}", "turns": turns}


def _verdict(passes_hidden: bool) -> str:
    return "passed" if passes_hidden else "failed"
