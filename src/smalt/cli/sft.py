"""`smalt sft`: the supervised warm start by itself."""

from __future__ import annotations

from pathlib import Path

import click

from smalt.cli.errors import readable_errors


@click.command("sft")
@click.argument("recipe", type=click.Path(path_type=Path))
@click.option("--set", "overrides", multiple=True, metavar="A.B=C", help="Set a field of the recipe; repeatable.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Run folder; the model is warm_start/.")
@readable_errors
def sft(recipe: Path, overrides: tuple[str, ...], out: Path) -> None:
    """Fine-tune RECIPE's model on the reference solutions of its training problems.

    `smalt train` with the same recipe and folder goes on from there.
    """
    from rich.console import Console

    from smalt.pipeline import Run
    from smalt.settings import load_recipe
    from smalt.yaml_settings import SettingsError

    settings = load_recipe(recipe, overrides)
    if settings.warm_start is None:
        raise SettingsError(f"{recipe}: warm_start: missing; `--set warm_start.epochs=2` gives the defaults")
    console = Console()
    Run(settings, out, console).warm_start()
    console.print(f"Model: {out / 'warm_start'}", highlight=False)
