"""`smalt train`: a whole run by a recipe."""

from __future__ import annotations

from pathlib import Path

import click

from smalt.cli.errors import readable_errors


@click.command("train")
@click.argument("recipe", type=click.Path(path_type=Path))
@click.option("--set", "overrides", multiple=True, metavar="A.B=C", help="Set a field of the recipe; repeatable.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Run folder.")
@readable_errors
def train(recipe: Path, overrides: tuple[str, ...], out: Path) -> None:
    """Run RECIPE: warm start, collection, contexts, training, evaluation before and after.

    Can be stopped at any moment; the same command goes on where it was.
    """
    from smalt.cli.run import execute_run
    from smalt.settings import load_recipe

    execute_run(load_recipe(recipe, overrides), out)
