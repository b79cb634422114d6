"""What is sampled: a model of SmolLM2-135M's shape, prompts of random tokens, completions of geometric length.

How long a reply gets must depend neither on the weights nor on who samples. So the end token's logit is set, whenever
the model has run, such that each token ends the reply with the same probability. Both contenders run this same model
and pay for that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import torch

from smalt.policy.loading import Policy

END = 2
# HuggingFaceTB/SmolLM2-135M-Instruct's config.json.
_SHAPE = {
    "vocab_size": 49152,
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": True,
    "rope_theta": 100000.0,
}
_SMALL_SHAPE = {**_SHAPE, "vocab_size": 512, "hidden_size": 72, "intermediate_size": 96, "num_hidden_layers": 2}


@dataclass(frozen=True)
class Workload:
    """Dialogues: each prompt gets a group of completions, each of which gets one completion at every later turn."""

    title: str
    prompts: int
    prompt_tokens: int
    """On average; from half to one and a half of it, evenly."""
    group: int
    turns: int
    mean_tokens: int
    """Of a completion that nothing cuts."""
    max_new_tokens: int
    rows: int
    """Rows that the budget of tokens has room for, at the last turn's length."""
    feedback_tokens: int = 48

    @property
    def longest(self) -> int:
        """Tokens of the longest text: its prompt and the completion of the last turn."""
        earlier = (self.turns - 1) * (self.max_new_tokens + self.feedback_tokens)
        return self.prompt_tokens * 3 // 2 + earlier + self.max_new_tokens

    @property
    def batch_tokens(self) -> int:
        """The budget of the contenders in this process."""
        return self.rows * self.longest

    def prompt_ids(self, seed: int, vocabulary: int) -> list[tuple[int, ...]]:
        """Random prompts."""
        random = Random(seed)
        lengths = [random.randint(self.prompt_tokens // 2, self.prompt_tokens * 3 // 2) for _ in range(self.prompts)]
        return [_random_ids(random, length, vocabulary) for length in lengths]

    def feedback_ids(self, seed: int, vocabulary: int) -> tuple[int, ...]:
        """What follows every reply."""
        return _random_ids(Random(~seed), self.feedback_tokens, vocabulary)


def load_model(path: Path | None, device: str, dtype: str, is_small: bool) -> Policy:
    """The model of a folder, or random weights."""
    from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

    if path is not None:
        model: Any = AutoModelForCausalLM.from_pretrained(path, dtype=getattr(torch, dtype))
    else:
        torch.manual_seed(0)
        config = LlamaConfig(**(_SMALL_SHAPE if is_small else _SHAPE))
        model = LlamaForCausalLM(config).to(getattr(torch, dtype))
    model.to(device).eval()
    model.generation_config.eos_token_id = END
    model.generation_config.pad_token_id = END
    tokenizer = SimpleNamespace(eos_token_id=END)
    return Policy(model, tokenizer, torch.device(device), model.config.max_position_embeddings)


def end_with_probability(model: Any, probability: float) -> Any:
    """Let each token end the reply with this probability; returns the hook's handle."""
    odds = math.log(probability / (1 - probability))

    def set_end(module: Any, arguments: Any, output: Any) -> None:
        output.logits[..., END] = -torch.inf
        output.logits[..., END] = output.logits.float().logsumexp(-1).add_(odds)

    return model.register_forward_hook(set_end)


def _random_ids(random: Random, length: int, vocabulary: int) -> tuple[int, ...]:
    return tuple(random.randrange(END + 1, vocabulary) for _ in range(length))
