"""Reading what a run left behind. Every file may be missing; none may be corrupt.

summary.json     before, after: {pass_at_1, ci95, problems, samples_per_problem, seconds}; stages: {name: s}
metrics.jsonl    one object per training step, `step` and numeric fields
config.yaml      shown as it is
dialogues.json   [{problem_id, turns: [{role, text, verdict}]}]
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from smalt.evaluation.pass_at_k import ByTurn, PairedDifference

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Change = Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Parsed = TypeVar("Parsed")


class ReportError(ValueError):
    """A file of the run cannot be read; the message names the file and, where there is one, the line."""


class _FromFile(BaseModel):
    """Fields that are not known are passed over: a newer run stays readable."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class EvaluationSummary(_FromFile):
    """One evaluation by turn."""

    pass_at_1: list[Share] = Field(min_length=1)
    ci95: list[tuple[Share, Share]]
    problems: int = Field(ge=1)
    samples_per_problem: float = Field(gt=0)
    seconds: Seconds | None = None

    @model_validator(mode="after")
    def _one_interval_a_turn(self) -> EvaluationSummary:
        if len(self.ci95) != len(self.pass_at_1):
            raise ValueError(f"ci95 has {len(self.ci95)} turns, pass_at_1 has {len(self.pass_at_1)}")
        return self

    def by_turn(self) -> ByTurn:
        """The evaluation as the charts and tables take it."""
        intervals = [list(bounds) for bounds in self.ci95]
        return ByTurn(list(self.pass_at_1), intervals, self.problems, self.samples_per_problem)


class DifferenceSummary(_FromFile):
    """After minus before on the same problems, by turn."""

    difference: list[Change]
    ci95: list[tuple[Change, Change]]
    problems: int = Field(ge=1)

    @model_validator(mode="after")
    def _one_interval_a_turn(self) -> DifferenceSummary:
        if len(self.ci95) != len(self.difference):
            raise ValueError(f"ci95 has {len(self.ci95)} turns, difference has {len(self.difference)}")
        return self

    def paired_difference(self) -> PairedDifference:
        """The difference as the tables take it."""
        return PairedDifference(list(self.difference), [list(pair) for pair in self.ci95], self.problems)


class RunSummary(_FromFile):
    """`summary.json`. All of it is optional, as a run in progress has only some of it."""

    before: EvaluationSummary | None = None
    after: EvaluationSummary | None = None
    paired_difference: DifferenceSummary | None = None
    stages: dict[str, Seconds] = Field(default_factory=dict)
    training_turns: int | None = Field(None, ge=1)
    """Last turn that training saw; drawn into the chart by turn."""
    protocol: str | None = None
    """When a trajectory ends in evaluation, in words."""


class DialogueTurn(_FromFile):
    """One message; `verdict` is that of the program in it."""

    role: str
    text: str
    verdict: str | None = None


class Dialogue(_FromFile):
    """An example dialogue."""

    problem_id: str
    turns: list[DialogueTurn]


@dataclass(frozen=True)
class RunFolder:
    """Everything the report shows; None or empty is what the run does not have."""

    summary: RunSummary | None
    metrics: list[dict[str, Any]]
    config: str | None
    dialogues: list[Dialogue] | None


def read_run_folder(folder: Path) -> RunFolder:
    """Read a run. Raises NotADirectoryError without the folder, ReportError for a file that is corrupt."""
    if not folder.is_dir():
        raise NotADirectoryError(f"there is no run folder {folder}")
    return RunFolder(
        summary=_read_json(folder / "summary.json", TypeAdapter(RunSummary)),
        metrics=read_metrics(folder / "metrics.jsonl"),
        config=_read_config(folder / "config.yaml"),
        dialogues=_read_json(folder / "dialogues.json", TypeAdapter(list[Dialogue])),
    )


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Rows by ascending step; rows of the same step are merged and the later one wins.

    A step comes twice when validation writes a row of its own, or when a run was resumed from a checkpoint
    and took the step again.
    """
    if not path.exists():
        return []
    rows: dict[float, dict[str, Any]] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        if line.strip():
            row = _metrics_row(line, f"{path}:{number}")
            rows[row["step"]] = {**rows.get(row["step"], {}), **row}
    return [rows[step] for step in sorted(rows)]


def _metrics_row(line: bytes, place: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise ReportError(f"{place}: not JSON: {error}") from error
    step = row.get("step") if isinstance(row, dict) else None
    is_number = isinstance(step, int | float) and not isinstance(step, bool) and math.isfinite(step)
    if not isinstance(row, dict) or not is_number:
        raise ReportError(f"{place}: not an object with a numeric 'step'")
    return row


def _read_json(path: Path, adapter: TypeAdapter[Parsed]) -> Parsed | None:
    if not path.exists():
        return None
    try:
        return adapter.validate_python(json.loads(path.read_bytes()))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "top level"
        raise ReportError(f"{path}: {where}: {first['msg']}") from error
    except ValueError as error:
        line = f":{error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise ReportError(f"{path}{line}: not JSON: {error}") from error


def _read_config(path: Path) -> str | None:
    """The configuration as text, after a look that it is YAML at all."""
    if not path.exists():
        return None
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise ReportError(f"{path}{line}: not YAML: {error}") from error
    return text
