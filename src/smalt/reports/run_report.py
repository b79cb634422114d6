"""The report of a run: one HTML file without scripts that needs no network."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from smalt.evaluation.pass_at_k import ByTurn, PairedDifference
from smalt.reports.charts import by_turn_chart, stage_times_chart
from smalt.reports.dialogue_view import dialogue_views
from smalt.reports.learning_curves import learning_curves, missing_metrics
from smalt.reports.pages import page_templates, write_page
from smalt.reports.run_folder import RunFolder, RunSummary, read_run_folder
from smalt.reports.table import by_turn_rows, gain

MISSING = {
    "summary.json": "summary.json is missing, so there are no evaluations and no stage times.",
    "metrics.jsonl": "metrics.jsonl is missing or empty, so there are no learning curves.",
    "config.yaml": "config.yaml is missing, so the settings of this run are not shown.",
    "dialogues.json": "dialogues.json is missing or empty, so there are no example dialogues.",
    "before": "The evaluation before training is missing from summary.json.",
    "after": "The evaluation after training is missing from summary.json: the run may not be finished.",
    "stages": "summary.json has no stage times.",
    "protocol": "summary.json does not say when a trajectory ends in evaluation (protocol).",
}


@dataclass(frozen=True)
class Headline:
    """Pass@1 at one turn: shares before and after, in percent, with intervals, and the gain in points."""

    turn: int
    before: Figures | None
    after: Figures | None
    gain: str


@dataclass(frozen=True)
class Figures:
    """A percentage and its interval as text."""

    value: str
    interval: str


def write_run_report(run_folder: str | Path, out_path: str | Path, *, training_turns: int | None = None) -> Path:
    """Write the report of a run; `out_path` is replaced as a whole or not at all.

    `training_turns` is the last turn that training saw; by default `training_turns` of summary.json. What the
    run does not have is left out with a sentence that says so.

    Raises NotADirectoryError without the folder and ReportError for a corrupt file, naming file and line.
    """
    folder = Path(run_folder)
    page = render_run_report(read_run_folder(folder), folder.resolve().name, training_turns=training_turns)
    target = Path(out_path)
    write_page(target, page)
    return target


def render_run_report(run: RunFolder, name: str, *, training_turns: int | None = None) -> str:
    """The report as HTML; `name` is its title."""
    sections = {**_evaluation(run.summary, training_turns), **_training(run)}
    return (
        page_templates()
        .get_template("run.html.j2")
        .render(
            name=name,
            config=run.config,
            dialogues=dialogue_views(run.dialogues or []),
            missing=MISSING,
            **sections,
        )
    )


def _evaluation(summary: RunSummary | None, training_turns: int | None) -> dict[str, Any]:
    """Headlines, the chart by turn and its table."""
    summary_or_empty = summary or RunSummary()
    before = summary_or_empty.before.by_turn() if summary_or_empty.before else None
    after = summary_or_empty.after.by_turn() if summary_or_empty.after else None
    paired = summary_or_empty.paired_difference
    difference = paired.paired_difference() if paired else None
    evaluations = {name: it for name, it in (("before", before), ("after", after)) if it is not None}
    horizon = training_turns or summary_or_empty.training_turns
    return {
        "summary": summary,
        "headlines": headlines(before, after, difference),
        "by_turn": Markup(by_turn_chart(evaluations, horizon)) if evaluations else None,
        "rows": by_turn_rows(before, after, difference),
    }


def _training(run: RunFolder) -> dict[str, Any]:
    """Learning curves and stage times. The charts' SVG is our own and must not be escaped."""
    stages = run.summary.stages if run.summary else {}
    return {
        "panels": [(panel.title, Markup(panel.svg)) for panel in learning_curves(run.metrics)],
        "missing_metrics": missing_metrics(run.metrics) if run.metrics else [],
        "steps": len(run.metrics),
        "stages": Markup(stage_times_chart(stages)) if stages else None,
        "seconds": sum(stages.values()),
    }


def headlines(
    before: ByTurn | None, after: ByTurn | None, difference: PairedDifference | None = None
) -> list[Headline]:
    """The first and the last turn that every present evaluation has; none without an evaluation."""
    lengths = [len(evaluation.pass_at_1) for evaluation in (before, after) if evaluation is not None]
    if not lengths:
        return []
    return [
        Headline(
            turn=turn + 1,
            before=_figures(before, turn),
            after=_figures(after, turn),
            gain=gain(before, after, turn, difference),
        )
        for turn in sorted({0, min(lengths) - 1})
    ]


def _figures(evaluation: ByTurn | None, turn: int) -> Figures | None:
    if evaluation is None:
        return None
    low, high = evaluation.ci95[turn]
    return Figures(f"{100 * evaluation.pass_at_1[turn]:.1f}", f"{100 * low:.1f} to {100 * high:.1f}")
