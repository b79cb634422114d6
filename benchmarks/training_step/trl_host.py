"""TRL's GRPOTrainer behind a pipe: run by the peers' interpreter, which has TRL and not this project.

Reads one JSON object a line. The first says which model, then each is a case: rows of ids and their advantages. The
answer is the loss, the gradient's norm and the seconds of compute_loss + backward: no sampling, no optimiser.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from typing import Any

import torch
import trl
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer


def make_trainer(model: str, dtype: str, device: str) -> GRPOTrainer:
    """A trainer whose loss is the mean over tokens of the clipped objective, as ours, without checkpointing."""
    settings = GRPOConfig(
        output_dir=tempfile.mkdtemp(),
        use_cpu=device == "cpu",
        bf16=dtype == "bfloat16",
        gradient_checkpointing=False,
        per_device_train_batch_size=8,
        num_generations=8,
        loss_type="bnpo",
        epsilon=0.2,
        epsilon_high=0.4,
        beta=0.0,
        report_to="none",
        model_init_kwargs={"dtype": dtype},
    )
    prompts = Dataset.from_list([{"prompt": "a"}] * 8)
    trainer = GRPOTrainer(model=model, reward_funcs=lambda **_: [0.0], args=settings, train_dataset=prompts)
    trainer.current_gradient_accumulation_steps = 1
    trainer.model.to(device).train()
    return trainer


def inputs_of(case: dict[str, Any], device: str) -> dict[str, torch.Tensor]:
    """The batch that TRL's own sampling would have handed over: prompts padded left, completions right."""
    prompts, completions = case["prompts"], case["completions"]
    longest_prompt, longest = max(map(len, prompts)), max(map(len, completions))
    return {
        "prompt_ids": torch.tensor([[0] * (longest_prompt - len(p)) + p for p in prompts], device=device),
        "prompt_mask": torch.tensor([[0] * (longest_prompt - len(p)) + [1] * len(p) for p in prompts], device=device),
        "completion_ids": torch.tensor([c + [0] * (longest - len(c)) for c in completions], device=device),
        "completion_mask": torch.tensor([[1] * len(c) + [0] * (longest - len(c)) for c in completions], device=device),
        "advantages": torch.tensor(case["advantages"], device=device),
        "num_items_in_batch": torch.tensor(sum(map(len, completions)), device=device),
    }


def answer(trainer: GRPOTrainer, case: dict[str, Any], device: str) -> dict[str, float]:
    """One step."""
    inputs = inputs_of(case, device)
    trainer.model.zero_grad()
    started = time.perf_counter()
    loss = trainer.compute_loss(trainer.model, inputs)
    trainer.accelerator.backward(loss)
    if device != "cpu":
        torch.cuda.synchronize()
    seconds = time.perf_counter() - started
    squares = sum(p.grad.float().square().sum().item() for p in trainer.model.parameters() if p.grad is not None)
    return {"seconds": seconds, "loss": loss.item(), "norm": squares**0.5}


def main() -> None:
    """Serve until the input ends."""
    asked = json.loads(sys.stdin.readline())
    torch.set_num_threads(asked["threads"])
    trainer = make_trainer(asked["model"], asked["dtype"], asked["device"])
    print("ready", json.dumps({"trl": trl.__version__, "torch": torch.__version__}), flush=True)
    for line in sys.stdin:
        print("result", json.dumps(answer(trainer, json.loads(line), asked["device"])), flush=True)


if __name__ == "__main__":
    main()
