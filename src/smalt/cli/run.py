"""What `demo` and `train` share: execute a run and show its table."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from smalt.pipeline import Run
from smalt.reports.run_folder import read_run_folder
from smalt.reports.table import by_turn_table
from smalt.settings import RunSettings


def execute_run(settings: RunSettings, out: Path) -> None:
    """Execute all stages of a run that are not done, then print Pass@1 by turn and where the report is."""
    console = Console()
    Run(settings, out, console).execute()
    summary = read_run_folder(out).summary
    if summary is None:
        return
    console.print(
        by_turn_table(
            summary.before.by_turn() if summary.before else None,
            summary.after.by_turn() if summary.after else None,
            summary.paired_difference.paired_difference() if summary.paired_difference else None,
        )
    )
    seconds = "  ".join(f"{stage.replace('_', ' ')} {value:.0f} s" for stage, value in summary.stages.items())
    console.print(f"Stages: {seconds}", highlight=False)
    console.print(f"Report: {out / 'report.html'}", highlight=False)
