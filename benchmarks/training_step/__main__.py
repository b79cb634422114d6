"""The command `python -m benchmarks.training_step`."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import torch
import transformers

from benchmarks.training_step.page import Measured, page
from benchmarks.training_step.trl_peer import TrlPeer
from benchmarks.training_step.ways import step
from benchmarks.training_step.workload import Author, Case, floor_of
from smalt.files import write_text
from smalt.policy.loading import ModelSettings, load_policy

_SIZE = click.IntRange(min=1)


@click.command()
@click.option("--model", required=True, help="Model folder.")
@click.option("--dtype", type=click.Choice(["float32", "bfloat16"]), default="float32", show_default=True)
@click.option("--device", default="cpu", show_default=True)
@click.option("--cases", default="group-256,group-512,group-1024,murphy,cobalt", show_default=True)
@click.option("--group", type=_SIZE, default=8, show_default=True, help="Completions of a prompt (MURPHY: half).")
@click.option("--completion", type=_SIZE, default=96, show_default=True, help="Tokens of a completion.")
@click.option("--prompt", type=_SIZE, default=256, show_default=True, help="Tokens of a tree's first prompt.")
@click.option("--budget", type=_SIZE, default=16384, show_default=True, help="Tokens computed at once.")
@click.option("--repeats", type=_SIZE, default=5, show_default=True)
@click.option("--skip", default="", help="Ways to leave out: padded, 'one mask', cache, floor, separated by commas.")
@click.option("--peers", "python", help="An interpreter that has trl 1.16: TRL takes part in the groups.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Folder for training-step.md.")
def main(**options: Any) -> None:
    """Measure, and print a page."""
    text = _measured(options)
    click.echo(text)
    if options["out"]:
        options["out"].mkdir(parents=True, exist_ok=True)
        write_text(options["out"] / "training-step.md", text)


def _measured(options: dict[str, Any]) -> str:
    settings = ModelSettings(path=options["model"], dtype=options["dtype"], device=options["device"])
    model = load_policy(settings).model.train()
    author = Author(model.config.get_text_config().vocab_size)
    cases = [_case(author, name, options) for name in options["cases"].split(",")]
    with _peer(options) as trl:
        found = [_compare(model, case, author, trl, options) for case in cases]
        versions = {"torch": torch.__version__, "transformers": transformers.__version__}
        return page(found, options, versions | ({"trl": trl.versions["trl"]} if trl else {}))


def _case(author: Author, name: str, options: dict[str, Any]) -> Case:
    group, completion, prompt = options["group"], options["completion"], options["prompt"]
    if name == "murphy":
        return author.murphy(max(2, group // 2), 3, prompt, completion)
    if name == "cobalt":
        return author.cobalt(group, 3, prompt, completion)
    kind, _, length = name.partition("-")
    if kind != "group" or not length.isdigit():
        raise click.BadParameter(f"{name!r} is no case: take group-LENGTH, murphy or cobalt", param_hint="--cases")
    return author.group(group, int(length), completion)


def _compare(model: Any, case: Case, author: Author, trl: TrlPeer | None, options: dict[str, Any]) -> Measured:
    """All ways on one case: once to compare results (and to warm up), then in a new order each round."""
    skipped = set(options["skip"].split(","))
    names = {"packed", "padded", "one mask", "floor", *(["cache"] if case.name.startswith("group") else [])} - skipped
    floor = floor_of(case, author)

    def ours(way: str, rows: Case) -> Callable[[], dict[str, float]]:
        return lambda: _timed(model, way, rows, options["budget"])

    runs = {name: ours(name, case) for name in sorted(names - {"floor"})}
    if "floor" in names:
        runs["floor"] = ours("padded", floor)
    if trl is not None and case.name.startswith("group"):
        runs["TRL"] = lambda: trl.step(case)
    results = {name: run() for name, run in runs.items()}
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for round_ in range(options["repeats"]):
        for name in random.Random(round_).sample(sorted(runs), len(runs)):
            seconds[name].append(runs[name]()["seconds"])
    return Measured(case, results, seconds)


def _timed(model: Any, way: str, case: Case, budget: int) -> dict[str, float]:
    model.zero_grad()
    started = time.perf_counter()
    loss = step(model, way, case, budget)
    if model.device.type == "cuda":
        torch.cuda.synchronize()
    seconds = time.perf_counter() - started
    norm = sum(p.grad.float().square().sum().item() for p in model.parameters() if p.grad is not None) ** 0.5
    return {"seconds": seconds, "loss": loss, "norm": norm}


@contextlib.contextmanager
def _peer(options: dict[str, Any]) -> Iterator[TrlPeer | None]:
    if options["python"] is None:
        yield None
        return
    model, dtype, device = (options[name] for name in ("model", "dtype", "device"))
    with TrlPeer(options["python"], model, dtype, device, threads=torch.get_num_threads()) as peer:
        yield peer


if __name__ == "__main__":
    main()
