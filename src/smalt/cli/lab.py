"""`smalt lab`: make the lab's problems and its base model."""

from __future__ import annotations

from pathlib import Path

import click

from smalt.cli.errors import readable_errors


@click.group("lab")
def lab() -> None:
    """The miniature: little ambiguous problems and a tiny model."""


@lab.command("problems")
@click.option("--split", type=click.Choice(["train", "validation", "test"]), default="test", show_default=True)
@click.option("--count", type=click.IntRange(min=1), default=100, show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Problem file to write.")
@readable_errors
def lab_problems(split: str, count: int, seed: int, out: Path) -> None:
    """Generate lab problems into a native problem file."""
    from smalt.problems.native import write_native
    from smalt.problems.sources import ProblemSource, load_problems

    write_native(out, load_problems(ProblemSource(path="lab", split=split, limit=count, seed=seed)))
    click.echo(out)


@lab.command("pretrain")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--steps", type=click.IntRange(min=1), help="Optimiser steps; default as shipped.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Model folder to write.")
@readable_errors
def lab_pretrain(seed: int, steps: int | None, out: Path) -> None:
    """Train the lab's base model from nothing, as the shipped one was (37 minutes on one core)."""
    from rich.console import Console

    from smalt.lab.model import save_lab_model
    from smalt.lab.pretrain import PretrainSettings, pretrain
    from smalt.progress import progress

    settings = PretrainSettings(seed=seed, **({"steps": steps} if steps else {}))
    with progress(Console(), "pretrain") as report:
        model, tokenizer = pretrain(settings, lambda step, loss: report(step + 1, settings.steps, {"loss": loss}))
    save_lab_model(out, model, tokenizer)
    click.echo(out)


@lab.command("skills")
@click.option("--model", default="lab", show_default=True, help="Model folder: the lab's base or one trained from it.")
@click.option("--count", type=click.IntRange(min=1), default=240, show_default=True, help="Held-out problems.")
@click.option("--temperature", type=click.FloatRange(min=0), default=1.0, show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@readable_errors
def lab_skills(model: str, count: int, temperature: float, seed: int) -> None:
    """What a model does after one failing program, freely and when told which step is wrong."""
    from rich.console import Console

    from smalt.assembly import make_growth, open_grader
    from smalt.lab.demo import DEMO_RECIPE
    from smalt.lab.generator import generate
    from smalt.lab.skills import SkillTest, skill_table
    from smalt.policy.loading import load_policy
    from smalt.settings import load_recipe

    settings = load_recipe(DEMO_RECIPE, [f"model.path={model}", f"evaluation.sampling.temperature={temperature}"])
    with open_grader(settings.grader) as grader:
        growth = make_growth(
            load_policy(settings.model), settings.dialogue, settings.sampler, grader, settings.evaluation
        )
        Console().print(skill_table(SkillTest(growth, seed).run(generate("test", count, seed))))
