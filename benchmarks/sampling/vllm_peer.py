"""Our end of the pipe to `vllm_host.py`: the contender that samples in an engine of its own."""

from __future__ import annotations

import math
import os
from pathlib import Path
from random import Random

from benchmarks.peer_process import PeerProcess
from benchmarks.sampling.contenders import Turn, next_prompts
from benchmarks.sampling.workload import Workload
from smalt.policy.loading import Policy


class VllmPeer(PeerProcess):
    """A process of the peers' interpreter with vLLM's engine, started before anything is timed.

    The engine is told the length of each completion, drawn from the same distribution, and ignores end tokens: it
    does not pay for the hook that ends the others' replies.
    """

    def __init__(self, python: str, model: Path, dtype: str, context: int, threads: int) -> None:
        """Start the engine on a model's folder for texts of at most `context` tokens.

        Raises RuntimeError when it does not come up.
        """
        cores = sorted(os.sched_getaffinity(0))[:threads]
        opening = {"model": str(model), "dtype": dtype, "context": context, "cores": cores}
        super().__init__(python, Path(__file__).with_name("vllm_host.py"), opening)

    def __call__(self, policy: Policy, load: Workload, seed: int) -> list[Turn]:
        """As the other contenders; the weights are the engine's own."""
        random = Random(f"lengths/{seed}")
        turns: list[Turn] = []
        feedback = load.feedback_ids(seed, policy.model.config.vocab_size)
        prompts, count = load.prompt_ids(seed, policy.model.config.vocab_size), load.group
        for _ in range(load.turns):
            lengths = [[drawn_length(random, load) for _ in range(count)] for _ in prompts]
            groups = self.ask({"prompts": prompts, "lengths": lengths})
            turns.append([[tuple(ids) for ids in group] for group in groups])
            prompts, _ = next_prompts(prompts, turns[-1], feedback)
            count = 1
        return turns


def drawn_length(random: Random, load: Workload) -> int:
    """The length of a completion that each token ends with the same probability, cut at the limit."""
    ends = math.ceil(math.log(1 - random.random()) / math.log(1 - 1 / load.mean_tokens))
    return min(max(ends, 1), load.max_new_tokens)
