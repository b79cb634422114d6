"""The page of a run."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean, median

from benchmarks.cobalt_step.step_cost import StepCost
from smalt.rollouts.records import Context

_GOAL = 2.0
_TITLES = {"fixed": "All completions of one length", "free": "Completions of their own length"}

Costs = Mapping[str, Sequence[StepCost]]
"""By who took the step; of each round, rounds in the same order for all."""


def page(
    measured: Mapping[str, Costs],
    contexts: Sequence[Context],
    options: Mapping[str, object],
    versions: Mapping[str, str],
) -> str:
    """Markdown: a table for each rule of lengths, ours first."""
    told = ", ".join(f"{name} {version}" for name, version in versions.items())
    shown = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in options.items())
    prompt = fmean(len(context.prompt_ids) for context in contexts)
    lines = [
        "# A whole step of Cobalt: sample, grade, train",
        "",
        f"{platform.machine()}, {len(os.sched_getaffinity(0))} cores usable, {told}; {shown}.",
        f"Prompts have {prompt:.0f} tokens on average. Both sides have the same prompts, model, optimiser, reward and",
        "grader, train on every row of every group and use no gradient checkpointing. Figures are medians over rounds,",
        "ratios medians of each round's own. TRL samples with transformers' `generate`.",
    ]
    for lengths, costs in measured.items():
        lines += ["", f"## {_TITLES[lengths]}", "", *_table(costs), *_verdict(costs)]
    return "\n".join(lines) + "\n"


def _table(costs: Costs) -> Iterator[str]:
    yield "| | sampling s | grading s | training s | **step s** | tokens sampled | s a thousand | programs graded |"
    yield "|---|" + "---:|" * 7
    for name, steps in costs.items():
        seconds = [f"{median(map(part, steps)):.2f}" for part in _PARTS]
        tokens = f"{median(step.tokens for step in steps):.0f}"
        thousand = f"{median(map(_by_tokens, steps)):.2f}"
        programs = f"{median(step.programs for step in steps):.0f}"
        yield f"| {name} | " + " | ".join([*seconds, tokens, thousand, programs]) + " |"
    ours, *others = costs
    for name in others:
        ratios = [f"{_ratio(costs[name], costs[ours], part):.2f}" for part in _PARTS]
        thousand = f"{_ratio(costs[name], costs[ours], _by_tokens):.2f}"
        yield f"| {name} / {ours} | " + " | ".join([*ratios, "", thousand, ""]) + " |"


def _verdict(costs: Costs) -> Iterator[str]:
    ours, *others = costs
    for name in others:
        ratio = _ratio(costs[name], costs[ours], _by_tokens)
        yield ""
        yield (
            f"Goal: {_GOAL:g} times as fast as {name}, by seconds a thousand tokens; measured {ratio:.2f}: "
            f"{'reached' if ratio >= _GOAL else '**missed**'}."
        )


def _ratio(theirs: Sequence[StepCost], ours: Sequence[StepCost], part: Callable[[StepCost], float]) -> float:
    """Median over rounds; not a number where ours is 0."""
    pairs = [(part(other), part(own)) for other, own in zip(theirs, ours, strict=True)]
    return median(other / own if own else float("nan") for other, own in pairs)


def _by_tokens(step: StepCost) -> float:
    return step.seconds_a_thousand_tokens


_PARTS: tuple[Callable[[StepCost], float], ...] = (
    lambda step: step.sampling,
    lambda step: step.grading,
    lambda step: step.training,
    lambda step: step.seconds,
)
