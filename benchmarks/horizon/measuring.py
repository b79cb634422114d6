"""Run one arm through the stages of an ordinary run, and read its costs from what the run logs."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Console

from smalt.assembly import open_grader
from smalt.files import read_json
from smalt.pipeline import Run
from smalt.rollouts.store import read_contexts
from smalt.settings import RunSettings

STAGES = ("sampling", "grading", "training")


@dataclass(frozen=True)
class Collection:
    """The offline part of a method that trains on contexts."""

    seconds: float
    """Of the dialogues, sampled and graded, and of cutting them; the model is loaded twice in them."""
    contexts: int
    attempts: float
    """Programs in a context, a mean."""


@dataclass(frozen=True)
class Cost:
    """What a run cost, all but `row_tokens` a mean over its examples: the prompts that trees were grown from."""

    seconds: Mapping[str, float]
    """By stage."""
    programs: float
    programs_trained: float
    """Programs of groups that carried a signal; the others are not trained on."""
    sampled_tokens: float
    prompt_tokens: float
    """What the policy reads before it writes, a mean over programs."""
    collection: Collection | None

    @property
    def total(self) -> float:
        """Seconds an example."""
        return sum(self.seconds.values())

    @property
    def row_tokens(self) -> float:
        """Tokens of a program with its prompt, a mean over programs."""
        return self.prompt_tokens + self.sampled_tokens / self.programs


def cost_of(settings: RunSettings) -> Cost:
    """Run in a folder that is gone afterwards; no programs are remembered from another run.

    Raises ValueError when no context can be cut.
    """
    with tempfile.TemporaryDirectory() as name, open_grader(settings.grader) as grader:
        folder = Path(name)
        run = Run(settings, folder, Console(quiet=True))
        run.collect(grader)
        run.cut_contexts()
        run.train(grader)
        lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        return _cost([json.loads(line) for line in lines][1:], _collection(folder))


def _cost(steps: Sequence[Mapping[str, Any]], collection: Collection | None) -> Cost:
    def total(name: str) -> float:
        return float(sum(step.get(name, 0.0) for step in steps))

    examples, programs = total("trees"), total("programs")
    return Cost(
        seconds={stage: total(f"seconds_{stage}") / examples for stage in STAGES},
        programs=programs / examples,
        programs_trained=total("trained_programs") / examples,
        sampled_tokens=total("sampled_tokens") / examples,
        prompt_tokens=(total("sampling_tokens_total") - total("sampled_tokens")) / programs,
        collection=collection,
    )


def _collection(folder: Path) -> Collection | None:
    if not (folder / "contexts.parquet").exists():
        return None
    stages = read_json(folder / "stages.json") or {}
    contexts = read_contexts(folder / "contexts.parquet")
    seconds = stages["collect_trajectories"] + stages["contexts"]
    return Collection(seconds, len(contexts), fmean(context.attempts for context in contexts))
