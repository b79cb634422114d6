"""`smalt compare`: methods side by side at an equal budget."""

from __future__ import annotations

from pathlib import Path

import click

from smalt.cli.errors import readable_errors


@click.command("compare")
@click.argument("recipe", required=False, type=click.Path(path_type=Path))
@click.option("--methods", help="Names with commas: some of RECIPE's, or of the catalogue without a comparison file.")
@click.option("--seeds", type=click.IntRange(min=1), help="Runs of each method; RECIPE's number or 5 by default.")
@click.option("--tokens", type=click.IntRange(min=1), help="Budget of a run: tokens that the policy writes.")
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True), help="Budget of a run: seconds of training.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Seeds run at once.")
@click.option("--set", "overrides", multiple=True, metavar="A.B=C", help="Set a field of every run; repeatable.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder of the runs and the report.")
@readable_errors
def compare(
    recipe: Path | None,
    methods: str | None,
    seeds: int | None,
    tokens: int | None,
    seconds: float | None,
    jobs: int,
    overrides: tuple[str, ...],
    out: Path,
) -> None:
    """Train several methods at an equal budget over several seeds, and compare them.

    RECIPE is a comparison file, which lists methods with their settings (recipes/compare-lab.yaml), or a plain
    recipe, whose model and problems the methods then get; without it, the demo's. Leaves a run folder for each method
    and seed, and comparison.json, .md and .html. Can be stopped at any moment; the same command goes on where it was.
    """
    from rich.console import Console

    from smalt.comparison.plan import Wishes, load_plan
    from smalt.comparison.runs import Comparison
    from smalt.reports.comparison_tables import overview_rows
    from smalt.reports.table import text_table

    names = tuple(name.strip() for name in methods.split(",") if name.strip()) if methods else ()
    amounts = {"sampled_tokens": tokens, "seconds": seconds}
    budget = {cost: amount for cost, amount in amounts.items() if amount is not None}
    plan = load_plan(recipe, Wishes(names, seeds, budget, overrides))
    console = Console()
    summary = Comparison(plan, out, console).execute(jobs)
    console.print(text_table("Pass@1 by turn, % (95 % interval)", overview_rows(summary)))
    console.print(f"Report: {out / 'comparison.html'}", highlight=False)
