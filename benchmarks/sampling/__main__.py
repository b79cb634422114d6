"""The command `python -m benchmarks.sampling`."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import torch

from benchmarks.sampling.contenders import Contender, generate, greedy_agreement, smalt
from benchmarks.sampling.measuring import compare
from benchmarks.sampling.page import describe_setting, page
from benchmarks.sampling.vllm_peer import VllmPeer
from benchmarks.sampling.workload import Workload, load_model
from smalt.files import write_text
from smalt.policy.loading import Policy

_FOLDER = click.Path(file_okay=False, path_type=Path)
_ONE_TURN = Workload("One turn", 16, 256, 8, 1, mean_tokens=32, max_new_tokens=192, rows=64)
_FOUR_TURNS = Workload("Four turns", 8, 256, 4, 4, mean_tokens=32, max_new_tokens=192, rows=32)
_SMOKE = (
    Workload("One turn", 3, 12, 3, 1, mean_tokens=6, max_new_tokens=20, rows=4),
    Workload("Two turns", 2, 12, 2, 2, mean_tokens=6, max_new_tokens=20, rows=4, feedback_tokens=4),
)


@click.command()
@click.option("--out", type=_FOLDER, help="Folder for sampling-speed.md and sampling-speed.json.")
@click.option("--model", type=click.Path(exists=True, file_okay=False, path_type=Path), help="A model's folder.")
@click.option("--device", default="cpu", show_default=True)
@click.option("--dtype", type=click.Choice(["bfloat16", "float32"]), default="bfloat16", show_default=True)
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True)
@click.option("--prompts", type=click.IntRange(1), help="Prompts of each workload.")
@click.option("--rows", type=click.IntRange(1), help="Rows that the budget has room for.")
@click.option("--mean-tokens", type=click.IntRange(2), help="Mean length of a completion; cut at six times as many.")
@click.option("--vllm", "python", help="An interpreter that has vLLM: it takes part, with its own engine.")
@click.option("--smoke", is_flag=True, help="Does it run? A tiny model, seconds; the numbers mean nothing.")
def main(
    out: Path | None,
    model: Path | None,
    device: str,
    dtype: str,
    rounds: int,
    prompts: int | None,
    rows: int | None,
    mean_tokens: int | None,
    python: str | None,
    smoke: bool,
) -> None:
    """Measure sampling beside generate(num_return_sequences=G) and vLLM, completions being of very different length.

    Without --model the weights are random, in the shape of SmolLM2-135M. Run it on an idle machine.
    """
    if os.getloadavg()[0] > 0.5:
        click.echo(f"the machine is busy (load {os.getloadavg()[0]:.1f}): times will be wrong", err=True)
    changes: dict[str, Any] = {name: value for name, value in (("prompts", prompts), ("rows", rows)) if value}
    if mean_tokens:
        changes |= {"mean_tokens": mean_tokens, "max_new_tokens": 6 * mean_tokens}
    loads = [dataclasses.replace(load, **changes) for load in (_SMOKE if smoke else (_ONE_TURN, _FOUR_TURNS))]
    policy = load_model(model, device, dtype, is_small=smoke)
    torch.manual_seed(0)
    setting = describe_setting(policy, dtype, model, greedy_agreement(policy, loads[0]))
    with _vllm(python, policy, model, dtype, loads) as peers:
        contenders: dict[str, Contender] = {"smalt": smalt, "generate": generate, **peers}
        comparisons = [compare(policy, load, contenders, rounds) for load in loads]
        setting["versions"] += "".join(f", vllm {peer.versions['vllm']}" for peer in peers.values())
    text = page(comparisons, setting)
    click.echo(text)
    if out:
        out.mkdir(parents=True, exist_ok=True)
        write_text(out / "sampling-speed.md", text)
        numbers = {"setting": setting, "comparisons": [dataclasses.asdict(found) for found in comparisons]}
        write_text(out / "sampling-speed.json", json.dumps(numbers, indent=1))


@contextlib.contextmanager
def _vllm(
    python: str | None, policy: Policy, model: Path | None, dtype: str, loads: Sequence[Workload]
) -> Iterator[dict[str, VllmPeer]]:
    """vLLM's contender, if an interpreter is given; random weights are handed over in a folder."""
    if python is None:
        yield {}
        return
    with tempfile.TemporaryDirectory() as folder:
        if model is None:
            policy.model.save_pretrained(folder)
        context = max(load.longest for load in loads)
        with VllmPeer(python, model or Path(folder), dtype, context, torch.get_num_threads()) as peer:
            yield {"vllm": peer}


if __name__ == "__main__":
    main()
