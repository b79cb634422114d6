"""Cut trajectories into contexts: the partial trajectories that Cobalt trains on (METHODS 1.3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from smalt.credit.selection import max_variance_subset
from smalt.dialogue.chat import ChatFormat, Prompt
from smalt.dialogue.wording import Wording, task_message
from smalt.problems.problem import Problem
from smalt.rollouts.records import Context, Trajectory, TurnRecord
from smalt.rollouts.store import TrajectoryStore


class ContextRules(BaseModel):
    """Which trajectories become contexts, and where they are cut. Defaults are Cobalt's unless marked."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    skip_problems_solved_at_once: bool = Field(
        True, description="Leave out problems whose every first program passes all tests."
    )
    emit_bare_problem: bool = Field(True, description="Emit the turn-0 context of each problem once.")
    require_spread: bool = Field(True, description="Keep only trajectories whose pass rate changes.")
    require_solved: bool = Field(True, description="Keep only trajectories that pass all tests at some turn.")
    max_trajectories: int = Field(4, gt=0, description="Trajectories kept a problem, by max-variance choice.")
    max_attempts: int = Field(3, gt=0, description="Most programs in a context (T_train).")
    max_prompt_tokens: int = Field(10_000, gt=0, description="Cut no context with a longer prompt, in tokens.")
    stop_after_two_public_passes: bool = Field(
        True, description="Stop cutting when the last two feedbacks both say that all public tests pass."
    )
    nothing_left: Literal["next_also_passes", "first_and_third_pass"] = Field(
        "next_also_passes",
        description="When nothing is left to learn: the context's last program and the next one pass everything "
        "(ours), or stop at one attempt when programs 1 and 3 do (the Cobalt authors' code).",
    )


@dataclass(frozen=True)
class ContextCutter:
    """Cuts the trajectories of one problem after the other."""

    chat: ChatFormat
    wording: Wording
    rules: ContextRules
    show_public_tests: bool = False

    def training_contexts(self, problem: Problem, trajectories: Sequence[Trajectory]) -> list[Context]:
        """Contexts of one problem for training, the bare problem first."""
        graded = [trajectory for trajectory in trajectories if not trajectory.has_infra_error]
        if self.rules.skip_problems_solved_at_once and graded and all(t.turns[0].passes_all for t in graded):
            return []
        return self._cut_all(problem, choose_for_training(graded, self.rules))

    def validation_contexts(self, problem: Problem, trajectories: Sequence[Trajectory]) -> list[Context]:
        """Contexts of one trajectory, the one with the smallest positive spread."""
        return self._cut_all(problem, choose_for_validation(trajectories))

    def _cut_all(self, problem: Problem, kept: Sequence[Trajectory]) -> list[Context]:
        bare = self._opening(problem)
        contexts = [Context(problem.id, -1, 0, 0.0, bare.ids)] if self.rules.emit_bare_problem else []
        contexts += [context for trajectory in kept for context in self._cut(problem, trajectory)]
        return [c for c in contexts if len(c.prompt_ids) <= self.rules.max_prompt_tokens]

    def _opening(self, problem: Problem) -> Prompt:
        return self.chat.opening(task_message(problem, self.wording, self.show_public_tests))

    def _cut(self, problem: Problem, trajectory: Trajectory) -> list[Context]:
        """Contexts of one trajectory, each ending with the feedback on its last program."""
        prompt = self._opening(problem)
        contexts: list[Context] = []
        best = 0.0
        for attempts in range(1, _last_cut(trajectory.turns, self.rules) + 1):
            turn = trajectory.turns[attempts - 1]
            prompt = self.chat.next_turn(prompt, turn.completion_ids, turn.feedback)
            best = max(best, turn.pass_rate)
            contexts.append(Context(problem.id, trajectory.sample, attempts, best, prompt.ids))
        return contexts


def cut_store(
    folder: Path, problems: Sequence[Problem], cut: Callable[[Problem, Sequence[Trajectory]], list[Context]]
) -> list[Context]:
    """Cut every trajectory of a store, in the order of `problems`."""
    by_problem: dict[str, list[Trajectory]] = defaultdict(list)
    for trajectory in TrajectoryStore(folder).read():
        by_problem[trajectory.problem_id].append(trajectory)
    found = [(problem, by_problem[problem.id]) for problem in problems if problem.id in by_problem]
    return [context for problem, trajectories in found for context in cut(problem, trajectories)]


def choose_for_training(trajectories: Sequence[Trajectory], rules: ContextRules) -> list[Trajectory]:
    """Trajectories worth cutting: changing and solved; the most varied when there are too many."""
    kept = [
        trajectory
        for trajectory in trajectories
        if (trajectory.spread > 0 or not rules.require_spread)
        and (trajectory.is_solved or not rules.require_solved)
        and not trajectory.has_infra_error
    ]
    if len(kept) <= rules.max_trajectories:
        return kept
    chosen = max_variance_subset([trajectory.spread for trajectory in kept], rules.max_trajectories)
    return [kept[place] for place in sorted(chosen)]


def choose_for_validation(trajectories: Sequence[Trajectory]) -> list[Trajectory]:
    """The one trajectory with the smallest positive spread, if any."""
    changing = [t for t in trajectories if t.spread > 0 and not t.has_infra_error]
    return [min(changing, key=lambda trajectory: trajectory.spread)] if changing else []


def _last_cut(turns: Sequence[TurnRecord], rules: ContextRules) -> int:
    """Number of attempts in the longest context of a trajectory."""
    for attempts in range(1, min(rules.max_attempts, len(turns)) + 1):
        if _nothing_left(turns, attempts, rules):
            return attempts - 1 if rules.nothing_left == "next_also_passes" else attempts
        two_passes = attempts >= 2 and turns[attempts - 1].passes_public and turns[attempts - 2].passes_public
        if rules.stop_after_two_public_passes and two_passes:
            return attempts - 1
    return min(rules.max_attempts, len(turns))


def _nothing_left(turns: Sequence[TurnRecord], attempts: int, rules: ContextRules) -> bool:
    """Whether the context of `attempts` programs has nothing to teach by the rule chosen."""
    if rules.nothing_left == "first_and_third_pass":
        return attempts == 1 and len(turns) >= 3 and turns[0].passes_all and turns[2].passes_all
    return attempts < len(turns) and turns[attempts - 1].passes_all and turns[attempts].passes_all
