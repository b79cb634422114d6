"""`smalt demo`: the main job on the embedded default."""

from __future__ import annotations

from pathlib import Path

import click

from smalt.cli.errors import readable_errors


@click.command("demo")
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs/demo"), show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--set", "overrides", multiple=True, metavar="A.B=C", help="Change a setting of the demo.")
@readable_errors
def demo(out: Path, seed: int, overrides: tuple[str, ...]) -> None:
    """Train the lab's tiny model with Cobalt and show Pass@1 by turn, before and after.

    Collects dialogues of the base model on little ambiguous problems, cuts them into contexts, trains on them, and
    evaluates held-out problems over 8 turns. Takes some minutes on two CPU cores; a demo that was stopped goes on
    when the same command is given.
    """
    from smalt.cli.run import execute_run
    from smalt.lab.demo import DEMO_RECIPE
    from smalt.settings import load_recipe

    execute_run(load_recipe(DEMO_RECIPE, [f"seed={seed}", *overrides]), out)
