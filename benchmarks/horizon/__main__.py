"""The command `python -m benchmarks.horizon`."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import click
import torch
import transformers

import smalt
from benchmarks.horizon.arms import METHODS, Arm, Sizes, settings_of
from benchmarks.horizon.measuring import Cost, cost_of
from benchmarks.horizon.page import page
from smalt.files import write_text
from smalt.lab.demo import DEMO_RECIPE
from smalt.yaml_settings import SettingsError, read_yaml

_SIZE = click.IntRange(min=1)
_GROUP = click.IntRange(min=2)


@click.command()
@click.option("--base", type=click.Path(exists=True, path_type=Path), default=DEMO_RECIPE, help="Recipe; the demo's.")
@click.option("--model", help="Model folder in place of the recipe's.")
@click.option("--device", default="cpu", show_default=True)
@click.option("--methods", default=",".join(METHODS), show_default=True)
@click.option("--turns", default="1,3,5,8", show_default=True, help="Horizons.")
@click.option("--group", type=_GROUP, default=8, show_default=True, help="Completions or dialogues an example.")
@click.option("--murphy-group", type=_GROUP, default=2, show_default=True, help="Up to G + G^2 + .. + G^T programs.")
@click.option("--examples", type=_SIZE, default=8, show_default=True, help="Trees a step.")
@click.option("--steps", type=_SIZE, default=3, show_default=True, help="Counted steps a round; one more goes before.")
@click.option("--rounds", type=_SIZE, default=3, show_default=True)
@click.option("--problems", type=_SIZE, default=60, show_default=True, help="Training problems, the recipe's first.")
@click.option("--samples", type=_SIZE, default=4, show_default=True, help="Dialogues a problem that Cobalt stores.")
@click.option("--uses", type=click.FloatRange(0, min_open=True), default=2.0, show_default=True, help="Of a context.")
@click.option("--set", "overrides", multiple=True, help="Any other field, as section.field=value.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Folder for horizon.md.")
def main(**options: Any) -> None:
    """Seconds of a training example by method and by horizon, on the public path of a run. Wants an idle machine."""
    try:
        text = _measured(options)
    except (SettingsError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(text)
    if options["out"]:
        write_text(options["out"] / "horizon.md", text)


def _measured(options: dict[str, Any]) -> str:
    arms = _arms(options)
    sizes = Sizes(**{name: options[name] for name in Sizes.__dataclass_fields__})
    base = read_yaml(options["base"])
    overrides = [f"model.device={options['device']}", *options["overrides"]]
    if options["model"]:
        overrides.append(f"model.path={options['model']}")
    plans = [{arm: settings_of(arm, sizes, base, seed, overrides) for arm in arms} for seed in range(options["rounds"])]
    costs: dict[Arm, list[Cost]] = {arm: [] for arm in arms}
    for number, plan in enumerate(plans):
        for arm in random.Random(number).sample(arms, len(arms)):
            costs[arm].append(cost_of(plan[arm]))
            click.echo(f"round {number + 1}: {arm.method}, T = {arm.turns}: {costs[arm][-1].total:.3f} s", err=True)
    shown = ("base", "model", "device", "group", "murphy_group", "examples", "steps", "rounds", "problems", "samples")
    told = {name: options[name] for name in shown} | {
        "base": options["base"].name,
        "model": Path(plans[0][arms[0]].model.path).name,
    }
    versions = {"smalt": smalt.__version__, "torch": torch.__version__, "transformers": transformers.__version__}
    return page(costs, told, versions, options["uses"])


def _arms(options: dict[str, Any]) -> list[Arm]:
    methods, turns = options["methods"].split(","), options["turns"].split(",")
    for method in methods:
        if method not in METHODS:
            raise click.BadParameter(f"{method!r} is none of {', '.join(METHODS)}", param_hint="--methods")
    for number in turns:
        if not number.isdigit() or int(number) < 1:
            raise click.BadParameter(f"{number!r} is no number of turns", param_hint="--turns")
    return [Arm(method, int(number)) for method in methods for number in turns]


if __name__ == "__main__":
    main()
