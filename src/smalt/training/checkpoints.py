"""Checkpoints: what trains, with the optimiser's state, written atomically.

A model is a folder in transformers format; adapters are one in peft's, with the value head, if any, beside them.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_model

from smalt.files import whole_folder
from smalt.policy.loading import Policy
from smalt.training.turn_value import has_value_head, load_value_head, save_value_head, without_value_head

_STATE = "training_state.pt"
_DONE = "step.json"


@dataclass(frozen=True)
class CheckpointStore:
    """Checkpoints of one run, `step-000100` and so on; the newest `keep` stay."""

    folder: Path
    keep: int = 2

    def save(self, step: int, policy: Policy, optimizer: torch.optim.Optimizer) -> Path:
        """Save the state after `step` training steps."""
        target = self.folder / f"step-{step:06d}"
        with whole_folder(target) as temporary:
            _save_trained(temporary, policy)
            torch.save(optimizer.state_dict(), temporary / _STATE)
            (temporary / _DONE).write_text(json.dumps({"step": step}))
        for old in self._complete()[: -self.keep]:
            shutil.rmtree(old)
        return target

    def newest(self) -> tuple[int, Path] | None:
        """Step and folder of the newest complete checkpoint."""
        complete = self._complete()
        if not complete:
            return None
        return int(json.loads((complete[-1] / _DONE).read_text())["step"]), complete[-1]

    def restore(self, folder: Path, policy: Policy, optimizer: torch.optim.Optimizer) -> None:
        """Load weights and optimiser state into the objects given."""
        _load_trained(folder, policy)
        optimizer.load_state_dict(torch.load(folder / _STATE, map_location=policy.device, weights_only=True))

    def _complete(self) -> list[Path]:
        return sorted(p for p in self.folder.glob("step-*") if p.suffix != ".tmp" and (p / _DONE).exists())


def save_model(folder: Path, policy: Policy) -> None:
    """Write model and tokenizer so that `from_pretrained(folder)` reads them. One weights file, whatever its size.

    Adapters are to be merged before.
    """
    folder.mkdir(parents=True, exist_ok=True)
    policy.model.save_pretrained(folder, max_shard_size="1TB")
    policy.tokenizer.save_pretrained(folder)


def save_model_atomically(folder: Path, policy: Policy) -> None:
    """As `save_model`, complete or absent."""
    with whole_folder(folder) as temporary:
        save_model(temporary, policy)


def _save_trained(folder: Path, policy: Policy) -> None:
    if policy.adapters is None:
        save_model(folder, policy)
        return
    policy.adapters.save(folder)
    if has_value_head(policy.model):
        with without_value_head(policy.model) as head:
            save_value_head(folder, head)


def _load_trained(folder: Path, policy: Policy) -> None:
    if policy.adapters is None:
        load_model(policy.model, folder / "model.safetensors", device=str(policy.device))
        return
    policy.adapters.load(folder)
    if has_value_head(policy.model):
        load_value_head(policy.model, folder)
