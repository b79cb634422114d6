"""What a finished run says about itself: its figures, example dialogues, and the report made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from smalt.evaluation.by_turn import compare_by_turn
from smalt.files import read_json, write_json
from smalt.problems.sources import load_problems
from smalt.reports.examples import example_dialogues
from smalt.reports.run_report import write_run_report
from smalt.rollouts.collection import CollectionSettings
from smalt.settings import RunSettings


def write_summary(settings: RunSettings, folder: Path) -> dict[str, Any]:
    """Write summary.json, dialogues.json and, last, report.html of a run that is evaluated; returns the summary."""
    before, after = (folder / "evaluation" / name for name in ("before", "after"))
    summary = {
        "method": settings.method,
        "seed": settings.seed,
        "before": read_json(before / "summary.json"),
        "after": read_json(after / "summary.json"),
        "paired_difference": compare_by_turn(before, after, settings.evaluation.turns),
        "stages": read_json(folder / "stages.json"),
        "training_turns": settings.training_turns,
        "protocol": _protocol(settings.evaluation),
    }
    write_json(folder / "summary.json", summary)
    problems = load_problems(settings.problems.evaluation)
    write_json(folder / "dialogues.json", example_dialogues(problems, before, after))
    write_run_report(folder, folder / "report.html")
    return summary


def _protocol(settings: CollectionSettings) -> str:
    ending = "ends at the first public pass" if settings.stops_at_public_pass else "goes on to the last turn"
    chosen = f"; each program is the best of {settings.best_of}" if settings.best_of > 1 else ""
    return f"each dialogue {ending}; temperature {settings.sampling.temperature:g}{chosen}"
