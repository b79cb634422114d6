"""vLLM's engine behind a pipe: run by an interpreter that has vLLM and not this project.

Reads one JSON object a line. The first says which model; each other one is a call of the engine: prompts of ids and,
for each, the lengths of its completions. The answer is the completions' ids, prompt by prompt.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

_CACHE_BYTES = 2 << 30
"""More than the budget of the others, for a model of SmolLM2's size: 24 KiB a token."""


def make_engine(asked: dict[str, Any]) -> Any:
    """An engine that shares prefixes and leaves text to its caller; how many rows it takes at once is left to it."""
    from vllm import LLM

    return LLM(
        model=asked["model"],
        dtype=asked["dtype"],
        max_model_len=asked["context"],
        skip_tokenizer_init=True,
        enable_prefix_caching=True,
        kv_cache_memory_bytes=_CACHE_BYTES,
        gpu_memory_utilization=0.5,  # by default it wants nine tenths to be free
        seed=0,
    )


def answer(engine: Any, asked: dict[str, Any]) -> list[list[list[int]]]:
    """Completions of exactly the lengths asked for, drawn at temperature 1 from the whole distribution."""
    from vllm import SamplingParams

    prompts, settings = [], []
    for ids, lengths in zip(asked["prompts"], asked["lengths"], strict=True):
        for length in lengths:
            prompts.append({"prompt_token_ids": ids})
            settings.append(SamplingParams(temperature=1.0, max_tokens=length, ignore_eos=True, detokenize=False))
    outputs = iter(engine.generate(prompts, settings, use_tqdm=False))
    return [[list(next(outputs).outputs[0].token_ids) for _ in lengths] for lengths in asked["lengths"]]


def main() -> None:
    """Serve until the input ends."""
    asked = json.loads(sys.stdin.readline())
    # On a CPU it would leave one core to its scheduler.
    os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", ",".join(map(str, asked["cores"])))
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    os.environ.setdefault("VLLM_LOGGING_STREAM", "ext://sys.stderr")  # its log must not break an answer's line
    import vllm

    engine = make_engine(asked)
    print("ready", json.dumps({"vllm": vllm.__version__}), flush=True)
    for line in sys.stdin:
        print("result", json.dumps(answer(engine, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
