"""The command; see the package."""

from __future__ import annotations

import inspect
import itertools
import sys
from pathlib import Path

import click

from benchmarks.agreement.comparison import Outcome, compare_cases, read_outcomes
from benchmarks.agreement.data_sets import DATA_SETS
from benchmarks.agreement.page import render_page
from benchmarks.agreement.reasons import Reasons, load_reasons
from smalt.files import write_text
from smalt.grading.grader import Grader
from smalt.grading.policy import GradingPolicy
from smalt.problems.problem import Limits
from smalt.sandbox.forkserver import ForkServerSandbox

_LIMITS = Limits(wall_seconds=300)
"""The default of CPU time, and so much wall time that a busy machine does not count."""
_POLICY = GradingPolicy(stops_at_first_failure=True)


@click.command()
@click.option("--data", type=click.Path(exists=True, path_type=Path), required=True, help="Folder of the data sets.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder for the verdicts; kept on a rerun.")
@click.option("--only", multiple=True, type=click.Choice(list(DATA_SETS)), help="Only this data set; may repeat.")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many programs of each data set.")
@click.option("--stride", type=click.IntRange(min=1), default=1, help="Every so many-th program of each data set.")
@click.option("--page", type=click.Path(path_type=Path), help="Write the report of all verdicts in --out to this file.")
def main(data: Path, out: Path, only: tuple[str, ...], limit: int | None, stride: int, page: Path | None) -> None:
    """Grade programs with known verdicts and compare.

    Exit status 1 when a verdict differs without a reason in reasons.yaml.
    """
    reasons = load_reasons()
    unexplained = 0
    with ForkServerSandbox(workers=1) as sandbox:
        for name in only or DATA_SETS:
            cases = itertools.islice(DATA_SETS[name](data), 0, None, stride)
            grader = Grader(sandbox, default_limits=_LIMITS, workers=1, policy=_POLICY)
            outcomes = compare_cases(itertools.islice(cases, limit), grader, out / f"{name}.jsonl")
            unexplained += _report(name, list(outcomes), reasons)
    if page is not None:
        found = {name: read_outcomes(out / f"{name}.jsonl") for name in DATA_SETS}
        totals = {name: sum(1 for _ in DATA_SETS[name](data)) for name, outcomes in found.items() if outcomes}
        write_text(page, render_page(found, totals, reasons, _descriptions()))
    sys.exit(1 if unexplained else 0)


def _descriptions() -> dict[str, str]:
    return {name: inspect.getdoc(cases) or "" for name, cases in DATA_SETS.items()}


def _report(name: str, outcomes: list[Outcome], reasons: Reasons) -> int:
    """Print one data set's agreement; return the number of differences without a reason."""
    differing = [outcome for outcome in outcomes if not outcome.agrees]
    open_ones = [outcome for outcome in differing if reasons.reason_for(name, outcome.program_id) is None]
    click.echo(
        f"{name}: {len(outcomes)} programs, {len(outcomes) - len(differing)} agree, "
        f"{len(differing) - len(open_ones)} differ for a known reason, {len(open_ones)} without"
    )
    for outcome in open_ones:
        known = f"{outcome.known} ({outcome.recorded_as})" if outcome.recorded_as else outcome.known
        click.echo(f"  {outcome.program_id}: known {known}, ours {outcome.ours}: {outcome.detail[-200:]!r}")
    return len(open_ones)


if __name__ == "__main__":
    main()
