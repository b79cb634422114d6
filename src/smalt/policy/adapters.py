"""LoRA adapters (arXiv 2106.09685), by peft: what trains in a model whose own weights stay as they are.

Adapters hang in the policy's own model, so that sampling, packing and losses compute with it as with any other. They
begin as no change at all (B = 0), and without them the model is the one that training began with: the reference
policy costs no second copy of the weights. peft keeps them in float32 beside weights of 16 bits, in which small steps
would round away.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from smalt.policy.loading import ModelLoadError, Policy
from smalt.policy.lora_settings import LoraSettings

_ALL = "all-linear"
_WEIGHTS = "adapter_model.safetensors"


@dataclass(frozen=True)
class Adapters:
    """The adapters of one model, and peft's handle on them."""

    peft: Any
    """A `PeftModel`, of which the policy's model is the inner one."""

    @contextmanager
    def disabled(self) -> Iterator[None]:
        """Within the block the model computes without them. No other thread may compute with it then."""
        with self.peft.disable_adapter():
            yield

    def save(self, folder: Path) -> None:
        """Write them as a folder that peft loads onto the base model."""
        # The embeddings are never trained; peft's "auto" would ask the hub whether they were.
        self.peft.save_pretrained(folder, save_embedding_layers=False)

    def load(self, folder: Path) -> None:
        """Give them the values that `save` wrote."""
        from peft import set_peft_model_state_dict
        from safetensors.torch import load_file

        set_peft_model_state_dict(self.peft, load_file(folder / _WEIGHTS))


def add_adapters(policy: Policy, settings: LoraSettings, seed: int) -> None:
    """Hang fresh adapters into the policy's model and freeze its weights; equal seeds give equal adapters.

    Raises `ModelLoadError` when peft is missing or the model has no place for them.
    """
    check_adapters(policy.model, settings)
    from peft import LoraConfig, get_peft_model

    targets = settings.targets if isinstance(settings.targets, str) else list(settings.targets)
    config = LoraConfig(
        task_type="CAUSAL_LM", r=settings.rank, lora_alpha=settings.alpha, target_modules=targets, lora_dropout=0.0
    )
    devices = [policy.device] if policy.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        try:
            peft = get_peft_model(policy.model, config)
        except ValueError as error:
            raise ModelLoadError(f"model.lora: {type(policy.model).__name__} takes no adapters: {error}") from error
    policy.adapters = Adapters(peft.eval())


def merge_adapters(policy: Policy) -> None:
    """Add the adapters, if there are any, to the weights and take them out of the model, which is whole again.

    Each weight is rounded to its own type once more.
    """
    if policy.adapters is not None:
        policy.adapters.peft.merge_and_unload()
        policy.adapters = None


def check_adapters(model: Any, settings: LoraSettings) -> None:
    """Raise `ModelLoadError` when such adapters cannot be: peft is missing, or a target is no layer of the model."""
    if importlib.util.find_spec("peft") is None:
        raise ModelLoadError("model.lora needs peft, which cannot be imported: pip install 'smalt[lora]'")
    if settings.targets == _ALL:
        return
    linear = _linear_layers(model)
    for target in settings.targets:
        found = [module for name, module in linear.items() if f".{name}".endswith(f".{target}")]
        if not found:
            known = ", ".join(sorted({name.rpartition(".")[2] for name in linear}))
            raise ModelLoadError(f"model.lora.targets: no linear layer is called {target!r}; there are {known}")
        if any(_is_embedding(module, model) for module in found):
            raise ModelLoadError(
                f"model.lora.targets: {target!r} shares its weights with the embedding, which merging would change too"
            )


def _linear_layers(model: Any) -> dict[str, Any]:
    from transformers.pytorch_utils import Conv1D

    kinds = (torch.nn.Linear, Conv1D)
    return {name: module for name, module in model.named_modules() if isinstance(module, kinds)}


def _is_embedding(module: Any, model: Any) -> bool:
    return module.weight is model.get_input_embeddings().weight
