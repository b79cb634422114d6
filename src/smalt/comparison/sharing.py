"""What runs have in common is done once: a run takes over the products of stages that another has finished.

The evaluation before training and the stored trajectories of one seed depend on the base and not on the method. They
are copied, so that every run folder stays whole by itself; their seconds are taken over too, as a method's costs do
not depend on which run came first.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smalt.files import read_json, write_json
from smalt.settings import RunSettings

_STAGES_FILE = "stages.json"
_ROOTS = ("seed", "model", "warm_start", "problems", "dialogue", "grader")
"""Sections that every shared stage depends on."""


@dataclass(frozen=True)
class SharedStage:
    """A stage whose product another run can take over."""

    name: str
    """As `stages.json` has it."""
    product: str
    """Folder of the run that holds the product."""
    proof: str
    """File in the product's folder that exists once it is complete."""
    section: str | None = None
    """The section that the product depends on beside the roots."""

    def depends_on(self, settings: RunSettings) -> dict[str, Any]:
        """The settings that decide about the product; of the trajectories also whether the method wants any."""
        sections = (*_ROOTS, *([self.section] if self.section else ()))
        found = {section: getattr(settings, section) for section in sections}
        return found | ({"starts_at": settings.method_class.starts_at} if self.section == "collection" else {})


SHARED_STAGES = (
    SharedStage("warm_start", "warm_start", "config.json"),
    SharedStage("evaluate_before", "evaluation/before", "summary.json", "evaluation"),
    SharedStage("collect_trajectories", "trajectories", "complete.json", "collection"),
    SharedStage("collect_validation_trajectories", "validation_trajectories", "complete.json", "collection"),
)


def take_over(folder: Path, settings: RunSettings, others: Iterable[tuple[Path, RunSettings]]) -> list[str]:
    """Copy into a run's folder what other runs have done for it; returns the names of the stages.

    What the run has begun itself is left alone. Can be killed at any moment: a product is there as a whole or not
    at all, and never without its seconds.
    """
    others = [(place, theirs) for place, theirs in others if place != folder]
    taken = []
    for stage in SHARED_STAGES:
        donor = next((place for place, theirs in others if _is_done_for(settings, stage, place, theirs)), None)
        if donor is not None and not (folder / stage.product).exists():
            _copy(stage, donor, folder)
            taken.append(stage.name)
    return taken


def _is_done_for(settings: RunSettings, stage: SharedStage, place: Path, theirs: RunSettings) -> bool:
    is_complete = (place / stage.product / stage.proof).exists()
    return is_complete and stage.depends_on(theirs) == stage.depends_on(settings)


def _copy(stage: SharedStage, donor: Path, folder: Path) -> None:
    target = folder / stage.product
    temporary = target.with_name(target.name + ".tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    shutil.copytree(donor / stage.product, temporary)
    theirs = read_json(donor / _STAGES_FILE) or {}
    stages = read_json(folder / _STAGES_FILE) or {}
    write_json(folder / _STAGES_FILE, stages | {stage.name: theirs.get(stage.name, 0.0)})
    temporary.replace(target)
