"""The command `python -m benchmarks.cobalt_step`."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import torch
import transformers

import smalt
from benchmarks.cobalt_step.ours import Ours
from benchmarks.cobalt_step.page import page
from benchmarks.cobalt_step.plan import make_contexts, settings_of
from benchmarks.cobalt_step.step_cost import StepCost
from benchmarks.cobalt_step.trl_peer import TrlPeer
from smalt.assembly import open_grader
from smalt.files import write_text
from smalt.problems.sources import load_problems
from smalt.rollouts.records import Context
from smalt.yaml_settings import SettingsError

_SIZE = click.IntRange(min=1)
_LENGTHS = ("fixed", "free")


@click.command()
@click.option("--model", required=True, help="Model folder, or 'lab'.")
@click.option("--problems", required=True, help="Problem file with solutions: native, MBPP, ..; or 'lab'.")
@click.option("--base", type=click.Path(exists=True, path_type=Path), help="Recipe; by default the problems decide.")
@click.option("--dtype", type=click.Choice(["float32", "bfloat16"]), default="float32", show_default=True)
@click.option("--device", default="cpu", show_default=True)
@click.option("--contexts", type=_SIZE, default=4, show_default=True, help="Prompts a step.")
@click.option("--group", type=click.IntRange(min=2), default=8, show_default=True, help="Completions of a prompt.")
@click.option("--completion", type=_SIZE, default=128, show_default=True, help="Most tokens of a completion.")
@click.option("--lengths", default=",".join(_LENGTHS), show_default=True, help="fixed: all as long as they may be.")
@click.option("--rounds", type=_SIZE, default=3, show_default=True, help="One more goes before, as a warm-up.")
@click.option("--rows", type=_SIZE, help="Rows that TRL trains on at once; a group by default.")
@click.option("--peers", "python", help="An interpreter that has trl 1.16, datasets and what Smalt needs.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Folder for cobalt-step.md.")
def main(**options: Any) -> None:
    """Whole steps of Cobalt: ours, and TRL's with a reward function that does the same grading.

    Run it on an idle machine.
    """
    try:
        text = _measured(options)
    except (SettingsError, ValueError, RuntimeError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(text)
    if options["out"]:
        write_text(options["out"] / "cobalt-step.md", text)


def _measured(options: dict[str, Any]) -> str:
    lengths, rows = options["lengths"].split(","), options["rows"] or options["group"]
    if unknown := set(lengths) - set(_LENGTHS):
        raise click.BadParameter(f"{unknown.pop()!r} is none of {', '.join(_LENGTHS)}", param_hint="--lengths")
    if options["contexts"] * options["group"] % rows:
        raise click.BadParameter(f"{rows} does not divide the rows of a step", param_hint="--rows")
    settings = settings_of(options)
    problems = load_problems(settings.problems.train)
    steps = 1 + len(lengths) * options["rounds"]
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        grader = stack.enter_context(open_grader(settings.grader))
        ours = Ours(settings, problems, grader, folder)
        contexts = make_contexts(problems, ours.growth, steps * options["contexts"])
        sides: dict[str, Ours | TrlPeer] = {"Smalt": ours}
        versions = {"smalt": smalt.__version__, "torch": torch.__version__, "transformers": transformers.__version__}
        if options["python"]:
            threads = torch.get_num_threads()
            peer = TrlPeer(options["python"], settings, contexts, rows, threads, folder)
            sides["TRL"] = stack.enter_context(peer)
            versions["trl"] = peer.versions["trl"]
        measured = _rounds(sides, contexts, lengths, options)
    shown = ("dtype", "device", "contexts", "group", "completion", "rounds")
    told = {"model": Path(options["model"]).name, "problems": Path(options["problems"]).name}
    return page(measured, contexts, told | {name: options[name] for name in shown} | {"TRL's rows": rows}, versions)


def _rounds(
    sides: dict[str, Ours | TrlPeer], contexts: list[Context], lengths: list[str], options: dict[str, Any]
) -> dict[str, dict[str, list[StepCost]]]:
    """A step that warms up, then rounds by each rule of lengths; who begins a round changes."""
    batches = _batches(contexts, options["contexts"])
    number, first = next(batches)
    for side in sides.values():
        side.step(first, number, has_fixed_length=True)
    measured: dict[str, dict[str, list[StepCost]]] = {rule: {name: [] for name in sides} for rule in lengths}
    for rule in lengths:
        for round_ in range(options["rounds"]):
            number, batch = next(batches)
            for name in sides if round_ % 2 == 0 else reversed(sides):
                cost = sides[name].step(batch, number, has_fixed_length=rule == "fixed")
                measured[rule][name].append(cost)
                click.echo(f"{rule}, round {round_ + 1}: {name} {cost.seconds:.2f} s", err=True)
    return measured


def _batches(contexts: list[Context], size: int) -> Iterator[tuple[int, list[Context]]]:
    for number, start in enumerate(range(0, len(contexts), size)):
        yield number, contexts[start : start + size]


if __name__ == "__main__":
    main()
