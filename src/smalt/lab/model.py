"""The lab's base model as it ships: a transformers folder inside the package, in half precision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_SHIPPED = Path(__file__).parent / "base_model"


def shipped_model_folder() -> Path:
    """Folder of the shipped base model; raises `FileNotFoundError` when the package lacks it."""
    if not (_SHIPPED / "model.safetensors").exists():
        raise FileNotFoundError(f"{_SHIPPED} is missing: make it with `smalt lab pretrain --out {_SHIPPED}`")
    return _SHIPPED


def save_lab_model(folder: Path, model: Any, tokenizer: Any) -> None:
    """Write a lab model; weights are rounded to bfloat16, which halves them. Figures are of the rounded weights."""
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    model.to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
