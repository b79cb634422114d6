"""Checkpoints: a folder in transformers format with the optimiser's state, written atomically."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import torch

from smalt.policy.loading import Policy

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
        temporary = self.folder / f"step-{step:06d}.tmp"
        shutil.rmtree(temporary, ignore_errors=True)
        save_model(temporary, policy)
        torch.save(optimizer.state_dict(), temporary / _STATE)
        (temporary / _DONE).write_text(json.dumps({"step": step}))
        shutil.rmtree(target, ignore_errors=True)
        temporary.replace(target)
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
        from safetensors.torch import load_model

        load_model(policy.model, folder / "model.safetensors", device=str(policy.device))
        optimizer.load_state_dict(torch.load(folder / _STATE, map_location=policy.device, weights_only=True))

    def _complete(self) -> list[Path]:
        return sorted(p for p in self.folder.glob("step-*") if p.suffix != ".tmp" and (p / _DONE).exists())


def save_model(folder: Path, policy: Policy) -> None:
    """Write model and tokenizer so that `from_pretrained(folder)` reads them. One weights file, whatever its size."""
    folder.mkdir(parents=True, exist_ok=True)
    policy.model.save_pretrained(folder, max_shard_size="1TB")
    policy.tokenizer.save_pretrained(folder)


def save_model_atomically(folder: Path, policy: Policy) -> None:
    """As `save_model`, complete or absent."""
    temporary = folder.with_name(folder.name + ".tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    save_model(temporary, policy)
    shutil.rmtree(folder, ignore_errors=True)
    temporary.replace(folder)
