"""`smalt report`: the HTML report of a run folder."""

from __future__ import annotations

from pathlib import Path

import click

from smalt.cli.errors import readable_errors


@click.command("report")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Where to; RUN/report.html by default.")
@readable_errors
def report(run: Path, out: Path | None) -> None:
    """Write the report of RUN, finished or not, as one HTML file."""
    from smalt.reports.run_report import write_run_report

    click.echo(write_run_report(run, out or run / "report.html"))
