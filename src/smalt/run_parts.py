"""What the stages of a run share: its folder, its problems, its models, and how a stage shows itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rich.console import Console

from smalt.assembly import claim_folder, make_growth
from smalt.files import read_json, write_json
from smalt.grading.grader import Grader
from smalt.grading.policy import GraderStatistics
from smalt.policy.adapters import check_adapters
from smalt.policy.loading import Policy, load_policy
from smalt.policy.lora_settings import TrainedModelSettings
from smalt.problems.problem import Problem
from smalt.problems.sources import load_problems
from smalt.progress import progress
from smalt.rollouts.collection import CollectionSettings
from smalt.rollouts.growth import Growth
from smalt.rollouts.store import TrajectoryStore
from smalt.settings import RunSettings
from smalt.training.spending import Spent
from smalt.yaml_settings import SettingsError


@dataclass
class RunParts:
    """A run's settings and folder, and what every stage makes of them."""

    settings: RunSettings
    folder: Path
    console: Console

    def __post_init__(self) -> None:
        """Claim the folder; refuse one that belongs to other settings."""
        claim_folder(self.folder, self.settings)

    @property
    def reference_model(self) -> str:
        """Where training starts and trajectories come from: the model, or its warm start."""
        if self.settings.warm_start is None:
            return self.settings.model.path
        return str(self.folder / "warm_start")

    @cached_property
    def training_problems(self) -> list[Problem]:
        """Problems of the training set, in order."""
        return load_problems(self.settings.problems.train)

    @cached_property
    def validation_problems(self) -> list[Problem]:
        """Problems of the validation set; none without one."""
        source = self.settings.problems.validation
        return load_problems(source) if source is not None else []

    @cached_property
    def problems_by_id(self) -> dict[str, Problem]:
        """Training and validation problems; refuses two different ones of the same id."""
        found = {problem.id: problem for problem in self.training_problems}
        for problem in self.validation_problems:
            if found.setdefault(problem.id, problem) != problem:
                raise SettingsError(
                    f"problems.train and problems.validation have different problems with the id {problem.id!r}: "
                    "give each its own"
                )
        return found

    @property
    def wants_contexts(self) -> bool:
        """Whether contexts, the product of collection, are needed and not there yet."""
        is_needed = self.settings.method_class.starts_at == "context"
        return is_needed and not (self.folder / "contexts.parquet").exists()

    def spent_on_trajectories(self) -> Spent:
        """What the training trajectories cost; nothing where none are stored, or where the budget leaves them out."""
        folder, budget = self.folder / "trajectories", self.settings.training.budget
        if not folder.exists() or (budget is not None and not budget.includes_collection):
            return Spent()
        stages = read_json(self.folder / "stages.json") or {}
        return Spent(TrajectoryStore(folder).sampled_tokens(), stages.get("collect_trajectories", 0.0))

    def load(self, path: str) -> Policy:
        """The model in `path`, held in memory as the recipe says."""
        settings: TrainedModelSettings = self.settings.model.model_copy(update={"path": path})
        policy = load_policy(settings)
        if settings.lora is not None:
            check_adapters(policy.model, settings.lora)  # now, and not when hours of collection are over
        return policy

    def growth(self, policy: Policy, grader: Grader, settings: CollectionSettings) -> Growth:
        """Growth with this policy under the recipe's dialogue."""
        return make_growth(policy, self.settings.dialogue, self.settings.sampler, grader, settings)

    @contextmanager
    def stage(self, name: str) -> Iterator[Callable[..., None]]:
        """Show progress; add the stage's seconds to `stages.json` when it ends, or is interrupted."""
        started = time.perf_counter()
        with progress(self.console, name.replace("_", " ")) as report:
            try:
                yield report
            finally:
                stages = read_json(self.folder / "stages.json") or {}
                seconds = stages.get(name, 0.0) + time.perf_counter() - started
                write_json(self.folder / "stages.json", stages | {name: round(seconds, 2)})

    def say_about_verdicts(self, statistics: GraderStatistics) -> None:
        """Warn about verdicts that depend on more than the program."""
        for remark in statistics.remarks():
            self.console.print(f"[yellow]{remark}[/yellow]")

    def say_left_out(self, count: int, what: str, why: str) -> None:
        """Warn about what could not be used."""
        if count:
            self.console.print(f"[yellow]{count} {what} left out: {why}[/yellow]")
