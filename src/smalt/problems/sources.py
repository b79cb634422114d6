"""Where a run's problems come from: a file of any known format, or the lab's generator."""

from __future__ import annotations

from typing import get_args

from pydantic import BaseModel, ConfigDict, Field

from smalt.problems.problem import Problem
from smalt.problems.reading import read_problems


class ProblemSource(BaseModel):
    """A set of problems."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str = Field(description="A file (see docs/formats.md), or 'lab' for generated lab problems.")
    format: str = Field("auto", description="Reader, or 'auto' to tell from the first record.")
    split: str | None = Field(None, description="Split of the data set, where its reader knows splits.")
    limit: int | None = Field(None, gt=0, description="Take the first so many problems (lab: make so many).")
    seed: int = Field(0, ge=0, description="Seed of generated problems.")


def load_problems(source: ProblemSource) -> list[Problem]:
    """The problems of a source, in a fixed order."""
    if source.path == "lab":
        return _lab_problems(source)
    return read_problems(source.path, format=source.format, split=source.split)[: source.limit]


def _lab_problems(source: ProblemSource) -> list[Problem]:
    from smalt.lab.generator import Split, generate

    splits: tuple[Split, ...] = get_args(Split)
    found = [split for split in splits if split == (source.split or "test")]
    if not found:
        raise ValueError(f"problems.split {source.split!r}: lab problems come in {', '.join(splits)}")
    return [made.problem for made in generate(found[0], source.limit or 100, source.seed)]
