"""The page of a run."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from benchmarks.horizon.arms import Arm
from benchmarks.horizon.measuring import STAGES, Cost

_NOISE = 1.1
"""A growth beyond that of the tokens by less than this factor is not told from noise."""

Costs = Mapping[Arm, Sequence[Cost]]
"""Of each round, rounds in the same order for all arms."""


def page(costs: Costs, options: Mapping[str, object], versions: Mapping[str, str], uses: float) -> str:
    """Markdown: a table a method, Cobalt's collection, and what they say. `uses`: training passes over a context."""
    told = ", ".join(f"{name} {version}" for name, version in versions.items())
    shown = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in options.items())
    cores = len(os.sched_getaffinity(0))
    lines = [
        "# What a training example costs, by horizon",
        "",
        f"{platform.machine()}, {cores} cores usable, {told}; {shown}.",
        "An example is a prompt that a tree was grown from. Figures are medians over rounds, ratios medians of each",
        "round's own. T is the last turn that training sees; at T = 1 GRPO stands for GRPO-MT and MURPHY.",
    ]
    for method in dict.fromkeys(arm.method for arm in costs):
        lines += ["", f"## {method}", "", *_table(costs, method)]
        if any(cost.collection for cost in costs[_arms(costs, method)[0]]):
            lines += ["", *_collections(costs, method, uses)]
    return "\n".join([*lines, "", "## Reading", "", *_reading(costs)]) + "\n"


def _table(costs: Costs, method: str) -> Iterator[str]:
    first, *_ = arms = _arms(costs, method)
    yield (
        "| T | programs | trained on | tokens written | tokens read a program | "
        + " | ".join(f"{stage} s" for stage in STAGES)
        + f" | **s an example** | x T = {first.turns} | s a program | s a program trained on |"
    )
    yield "|" + "---:|" * 12
    for arm in arms:
        found = costs[arm]
        counts = [
            f"{median(cost.programs for cost in found):.1f}",
            f"{median(cost.programs_trained for cost in found):.1f}",
            f"{median(cost.sampled_tokens for cost in found):.0f}",
            f"{median(cost.prompt_tokens for cost in found):.0f}",
        ]
        seconds = [f"{median(cost.seconds[stage] for cost in found):.3f}" for stage in STAGES]
        trained = [cost.total / cost.programs_trained for cost in found if cost.programs_trained]
        rest = [
            f"**{median(cost.total for cost in found):.3f}**",
            f"{_growth(costs, first, arm):.2f}",
            f"{median(cost.total / cost.programs for cost in found):.4f}",
            f"{median(trained):.4f}" if trained else "none",
        ]
        yield f"| {arm.turns} | " + " | ".join([*counts, *seconds, *rest]) + " |"


def _collections(costs: Costs, method: str, uses: float) -> Iterator[str]:
    yield f"Dialogues are collected once; each context is trained on {uses:g} times."
    yield ""
    yield "| T | contexts | programs in one | collection s | s a context | s an example with its share |"
    yield "|" + "---:|" * 6
    for arm in _arms(costs, method):
        found = [(cost, cost.collection) for cost in costs[arm] if cost.collection]
        a_context = median(its.seconds / its.contexts for _, its in found)
        included = median(cost.total + its.seconds / its.contexts / uses for cost, its in found)
        counts = f"{median(its.contexts for _, its in found):.0f} | {median(its.attempts for _, its in found):.2f}"
        seconds = f"{median(its.seconds for _, its in found):.1f} | {a_context:.3f} | {included:.3f}"
        yield f"| {arm.turns} | {counts} | {seconds} |"


def _reading(costs: Costs) -> Iterator[str]:
    """How each method's costs grow from the first horizon to the last, and whether the claim about Cobalt holds."""
    for method in dict.fromkeys(arm.method for arm in costs):
        first, *_, last = [*_arms(costs, method)[:1], *_arms(costs, method)]
        tokens = median(
            late.row_tokens / early.row_tokens for early, late in zip(costs[first], costs[last], strict=True)
        )
        seconds = _growth(costs, first, last)
        text = (
            f"- {method}: from T = {first.turns} to T = {last.turns} an example takes {seconds:.2f} times as long; "
            f"a program with its prompt has {tokens:.2f} times the tokens."
        )
        if method == "cobalt":
            verdict = "holds" if seconds <= tokens * _NOISE else "**does not hold**"
            text += f" The claim that cost grows by the contexts' length alone, within {_NOISE:g} times, {verdict}."
        yield text


def _growth(costs: Costs, first: Arm, arm: Arm) -> float:
    return median(late.total / early.total for early, late in zip(costs[first], costs[arm], strict=True))


def _arms(costs: Costs, method: str) -> list[Arm]:
    return sorted((arm for arm in costs if arm.method == method), key=lambda arm: arm.turns)
