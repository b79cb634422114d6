"""Tiny random models of several architectures, as policies without a tokenizer's text."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from transformers import AutoModelForCausalLM
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from smalt.policy.loading import Policy

ENDS = (3, 14, 30, 45, 88)
SIZES = {
    "vocab_size": 97,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "bos_token_id": None,
    "eos_token_id": [*ENDS],
    "pad_token_id": 0,
}
ARCHITECTURES = {
    "llama": {"model_type": "llama"},
    "llama, tied, no grouped heads": {"model_type": "llama", "tie_word_embeddings": True, "num_key_value_heads": 4},
    "qwen2": {"model_type": "qwen2", "tie_word_embeddings": True},
    "qwen3": {"model_type": "qwen3", "head_dim": 8},
    "gpt2": {"model_type": "gpt2", "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 512},
    "gemma2, sliding windows": {
        "model_type": "gemma2",
        "head_dim": 8,
        "tie_word_embeddings": False,
        "sliding_window": 6,
    },
    "gemma3, sliding windows": {
        "model_type": "gemma3_text",
        "head_dim": 8,
        "tie_word_embeddings": False,
        "sliding_window": 6,
    },
    "mistral, sliding windows": {"model_type": "mistral", "sliding_window": 6},
    "bamba, recurrent": {
        "model_type": "bamba",
        "attn_layer_indices": [1],
        "mamba_n_heads": 4,
        "mamba_d_head": 16,
        "mamba_n_groups": 1,
        "mamba_d_state": 8,
        "mamba_chunk_size": 8,
    },
}
KEEPS_EVERY_TOKEN = ("llama", "llama, tied, no grouped heads", "qwen2", "qwen3", "gpt2")


def tiny_policy(architecture: str, seed: int = 0, **sizes) -> Policy:
    """Random weights, large enough for clear preferences; several tokens end a reply."""
    options = {**SIZES, **ARCHITECTURES[architecture], **sizes}
    config = CONFIG_MAPPING[options.pop("model_type")](**options)
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(
        config, attn_implementation="eager" if "gemma2" in architecture else "sdpa"
    )
    for weight in model.parameters():
        if weight.dim() > 1:
            weight.data.normal_(std=0.25)
    return Policy(model.eval(), SimpleNamespace(eos_token_id=ENDS[0]), torch.device("cpu"), 512)
