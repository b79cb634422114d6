"""Load a causal language model and its tokenizer from a folder or a hub name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    import torch

    from smalt.policy.adapters import Adapters

_ALIGNMENT = 64
"""Bytes; what torch's CPU allocator gives, and a cache line."""


class ModelSettings(BaseModel):
    """Which model is trained or evaluated, and how it is held in memory."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str = Field(description="Folder in transformers format, a name on the hub, or 'lab'.")
    dtype: Literal["float32", "bfloat16"] = Field(
        "float32",
        description="Weights and arithmetic. Training in bfloat16 loses steps below about 1 %, but for adapters, which "
        "are float32 anyway.",
    )
    device: str = Field("auto", description="'cpu', 'cuda', 'cuda:1', ..; 'auto' takes CUDA where it is.")
    attention: Literal["sdpa", "eager"] = Field("sdpa", description="Attention implementation.")


class ModelLoadError(ValueError):
    """A model folder is unusable; the message says what is missing."""


@dataclass
class Policy:
    """A language model with its tokenizer."""

    model: Any
    tokenizer: Any
    device: torch.device
    context_length: int
    """Most tokens of prompt and reply together."""
    adapters: Adapters | None = None
    """What trains instead of the model's own weights, if something does."""

    @property
    def trained_parameters(self) -> list[torch.nn.Parameter]:
        """What an optimiser may move: all weights, or those of the adapters and of a value head."""
        return [weight for weight in self.model.parameters() if weight.requires_grad]

    @property
    def stop_ids(self) -> frozenset[int]:
        """Ids that end a reply."""
        configured = self.model.generation_config.eos_token_id
        several = configured if isinstance(configured, list) else [configured]
        return frozenset(i for i in (*several, self.tokenizer.eos_token_id) if i is not None)


def load_policy(settings: ModelSettings) -> Policy:
    """Load model and tokenizer.

    Raises `ModelLoadError` when the folder lacks weights, a tokenizer, a chat template or an end token, or holds
    adapters only.
    """
    import torch
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    path = resolve_path(settings.path)
    device = _device(settings.device)
    if (Path(path) / "adapter_config.json").exists():
        raise ModelLoadError(f"{path!r} holds adapters, no model: a run leaves them merged in final/")
    tokenizer = load_tokenizer(path)
    try:
        model = AutoModelForCausalLM.from_pretrained(
            path, dtype=getattr(torch, settings.dtype), attn_implementation=settings.attention
        )
    except (OSError, ValueError, SafetensorError) as error:
        raise ModelLoadError(f"cannot load a causal language model from {path!r}: {error}") from error
    model.to(device).eval()
    _align(model)
    return Policy(model, tokenizer, device, int(getattr(model.config, "max_position_embeddings", 1 << 30)))


def _align(model: Any) -> None:
    """Move weights that lie in a mapped file at odd addresses into memory of torch's own.

    Vectorised CPU kernels add in an order that depends on the address, so that equal weights, one set read from a
    file and one copied, would train to different ones: a resumed run could not be bit-identical.
    """
    for weight in model.parameters():
        if weight.device.type == "cpu" and weight.data_ptr() % _ALIGNMENT:
            weight.data = weight.data.clone()


def load_tokenizer(path: str) -> Any:
    """The tokenizer of a model folder, checked to be able to hold a dialogue."""
    from transformers import AutoTokenizer

    if Path(path).is_dir() and not any(Path(path).glob("tokenizer*")):
        raise ModelLoadError(f"{path!r} has no tokenizer: copy tokenizer.json and tokenizer_config.json into it")
    try:
        tokenizer = AutoTokenizer.from_pretrained(path)
    except (OSError, ValueError) as error:
        raise ModelLoadError(f"cannot load a tokenizer from {path!r}: {error}") from error
    if not tokenizer.chat_template:
        raise ModelLoadError(f"the tokenizer of {path!r} has no chat template: add chat_template.jinja to it")
    if tokenizer.eos_token_id is None:
        raise ModelLoadError(f"the tokenizer of {path!r} names no end token: set eos_token in its config")
    return tokenizer


def resolve_path(path: str) -> str:
    """Turn the shipped lab model's name into its folder; leave other names as they are."""
    if path == "lab":
        from smalt.lab.model import shipped_model_folder

        return str(shipped_model_folder())
    looks_local = path.startswith((".", "/", "~")) or path.count("/") != 1
    if looks_local and not Path(path).expanduser().exists():
        raise ModelLoadError(f"model folder {path!r} does not exist")
    return str(Path(path).expanduser()) if Path(path).expanduser().exists() else path


def _device(name: str) -> torch.device:
    import torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise ModelLoadError("device 'cuda' was asked for but this torch build sees none: use device cpu")
    return torch.device(name)
