"""The page of a run."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.training_step.workload import Case


@dataclass(frozen=True)
class Measured:
    """What every way gave and took on one case."""

    case: Case
    results: Mapping[str, Mapping[str, float]]
    """Loss and gradient norm of the first run of each way."""
    seconds: Mapping[str, Sequence[float]]
    """Of each round, rounds in the same order for all ways."""


def page(measured: Sequence[Measured], options: Mapping[str, Any], versions: Mapping[str, str]) -> str:
    """Markdown: per case tokens, then each way's median and its ratio to packed, round by round."""
    told = ", ".join(f"{name} {version}" for name, version in versions.items())
    shown = ("dtype", "device", "group", "completion", "prompt", "budget", "repeats")
    lines = [
        "# Training step: forward and backward, without sampling and optimiser",
        "",
        f"{platform.machine()}, {told}; " + ", ".join(f"{name} {options[name]}" for name in shown) + ".",
        "Ratios are medians over rounds of (this way's seconds / packed's seconds of the same round).",
    ]
    for found in measured:
        lines += ["", *_section(found)]
    return "\n".join(lines) + "\n"


def _section(found: Measured) -> list[str]:
    case = found.case
    by_tokens = case.total / case.distinct
    lines = [
        f"## {case.name}: {len(case.rows)} rows",
        "",
        f"{case.total} tokens in rows, {case.distinct} distinct ({by_tokens:.2f} x), {case.scored} scored.",
        "",
        "| way | loss | gradient norm | median s | x packed |",
        "|---|---|---|---|---|",
    ]
    for way, seconds in found.seconds.items():
        result = found.results[way]
        ratio = median(mine / packed for mine, packed in zip(seconds, found.seconds["packed"], strict=True))
        lines.append(f"| {way} | {result['loss']:.5f} | {result['norm']:.5f} | {median(seconds):.3f} | {ratio:.2f} |")
    return lines
