"""Time both contenders on the same prompts, one after the other, in an order that changes from round to round."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from benchmarks.sampling.contenders import Contender
from benchmarks.sampling.workload import Workload, end_with_probability
from smalt.policy.loading import Policy


@dataclass(frozen=True)
class Reading:
    """One contender's run of one round."""

    seconds: float
    tokens: int
    """Sampled: the contenders draw differently, so that neither the tokens nor their number are the same."""
    completions: int

    @property
    def tokens_a_second(self) -> float:
        """Throughput."""
        return self.tokens / self.seconds


@dataclass(frozen=True)
class Comparison:
    """All readings of one workload."""

    load: Workload
    readings: dict[str, list[Reading]]

    def throughput(self, name: str) -> float:
        """Median over rounds, in tokens a second."""
        return statistics.median(reading.tokens_a_second for reading in self.readings[name])

    def ratio(self, name: str, base: str) -> float:
        """How many times the throughput of `base`: median of each round's own ratio, free of the machine's drift."""
        rounds = zip(self.readings[name], self.readings[base], strict=True)
        return statistics.median(one.tokens_a_second / other.tokens_a_second for one, other in rounds)


def compare(policy: Policy, load: Workload, contenders: Mapping[str, Contender], rounds: int) -> Comparison:
    """Run all contenders so many times; the warm-up is a short run that is not counted."""
    names = list(contenders)
    readings: dict[str, list[Reading]] = {name: [] for name in names}
    hook = end_with_probability(policy.model, 1 / load.mean_tokens)
    try:
        for name in names:
            _read(policy, Workload("warm-up", 2, 16, 2, 1, 4, 8, 4), contenders[name], seed=0)
        for number in range(rounds):
            for name in names if number % 2 == 0 else reversed(names):
                readings[name].append(_read(policy, load, contenders[name], seed=number))
    finally:
        hook.remove()
    return Comparison(load, readings)


def _read(policy: Policy, load: Workload, contender: Contender, seed: int) -> Reading:
    _wait(policy.device)
    started = time.perf_counter()
    turns = contender(policy, load, seed)
    _wait(policy.device)
    seconds = time.perf_counter() - started
    lengths = [len(ids) for turn in turns for group in turn for ids in group]
    return Reading(seconds, sum(lengths), len(lengths))


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
