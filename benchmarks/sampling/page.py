"""The results as a page of Markdown."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from benchmarks.sampling.measuring import Comparison
from smalt.policy.loading import Policy

_GOALS = {"generate": 2.0, "vllm": 1.0}
"""How many times the throughput of whom."""


def page(comparisons: Sequence[Comparison], setting: dict[str, str]) -> str:
    """A table a workload, and what it was measured on."""
    lines = ["# Sampling against `generate`", ""]
    for comparison in comparisons:
        lines += [f"## {comparison.load.title}", "", *_table(comparison), "", *_verdicts(comparison), ""]
    lines += ["## Setting", "", *(f"- {name}: {value}" for name, value in setting.items()), ""]
    return "\n".join(lines)


def _table(comparison: Comparison) -> Iterator[str]:
    load = comparison.load
    yield (
        f"{load.prompts} prompts of about {load.prompt_tokens} tokens, {load.group} completions each, {load.turns} "
        f"turn(s); length geometric with mean {load.mean_tokens}, cut at {load.max_new_tokens}; budget of "
        f"{load.batch_tokens:,} tokens in the cache."
    )
    yield ""
    yield "| | tokens/s, median | seconds, each round | tokens a completion | against generate |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for name, readings in comparison.readings.items():
        seconds = ", ".join(f"{reading.seconds:.1f}" for reading in readings)
        length = statistics.mean(reading.tokens / reading.completions for reading in readings)
        ratio = comparison.ratio(name, "generate")
        yield f"| {name} | {comparison.throughput(name):,.0f} | {seconds} | {length:.1f} | {ratio:.2f} |"


def _verdicts(comparison: Comparison) -> Iterator[str]:
    for name, goal in _GOALS.items():
        if name in comparison.readings:
            ratio = comparison.ratio("smalt", name)
            reached = "reached" if ratio >= goal else "**missed**"
            yield f"Goal: {goal:g} times the throughput of {name}; measured {ratio:.2f}: {reached}."
    if "vllm" in comparison.readings:
        yield "vLLM has a cache of its own size, is told each length beforehand and pays for no hook."


def describe_setting(policy: Policy, dtype: str, model: Path | None, agreement: tuple[int, int]) -> dict[str, str]:
    """What the numbers were measured on."""
    parameters = sum(weight.numel() for weight in policy.model.parameters())
    is_cuda = policy.device.type == "cuda"
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("smalt", "torch", "transformers")]
    same, asked = agreement
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "device": torch.cuda.get_device_name(policy.device) if is_cuda else f"{_processor()}, {_threads()}",
        "versions": ", ".join([f"Python {platform.python_version()}", *versions]),
        "model": f"{type(policy.model).__name__}, {parameters / 1e6:.0f} M, {dtype}, {_weights(model)}",
        "check before": f"{same} of {asked} greedy tokens the same as generate's (rounding may part the two)",
        "load when it began": f"{os.getloadavg()[0]:.1f}",
    }


def _weights(model: Path | None) -> str:
    return "random weights" if model is None else f"weights of {model.name}"


def _threads() -> str:
    return f"{torch.get_num_threads()} threads, {len(os.sched_getaffinity(0))} cores usable"


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(": ")[1] for line in lines if line.startswith("model name")), "unknown processor")
