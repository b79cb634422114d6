"""Supervised fine-tuning on reference solutions: the warm start of a weak base, or of a reference policy."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from smalt.dialogue.chat import ChatFormat
from smalt.dialogue.wording import Wording, task_message
from smalt.policy.loading import Policy
from smalt.problems.problem import Problem
from smalt.training.settings import WarmStartSettings

_IGNORED = -100
_GRADIENT_CLIP = 1.0


@dataclass(frozen=True)
class Example:
    """A prompt and the reply to learn, as ids."""

    prompt_ids: tuple[int, ...]
    reply_ids: tuple[int, ...]

    def __len__(self) -> int:
        """Tokens in all."""
        return len(self.prompt_ids) + len(self.reply_ids)


def examples_of(
    problems: Sequence[Problem], chat: ChatFormat, wording: Wording, show_public_tests: bool, max_tokens: int
) -> list[Example]:
    """One example per reference solution, as the dialogue would have it; overlong ones are left out."""
    examples = []
    for problem in problems:
        prompt = chat.opening(task_message(problem, wording, show_public_tests))
        for solution in problem.solutions:
            reply = f"```python\n{solution.strip()}\n```".removeprefix(chat.reply_prefix)
            ids = chat.tokenizer.encode(reply, add_special_tokens=False)
            examples.append(Example(prompt.ids, (*ids, chat.tokenizer.eos_token_id)))
    return [example for example in examples if len(example) <= max_tokens]


def fine_tune(
    policy: Policy,
    examples: Sequence[Example],
    settings: WarmStartSettings,
    on_step: Callable[[int, int, float], None],
) -> None:
    """Train `policy` in place on the reply tokens; `on_step(step, steps, loss)` is told of each step."""
    if not examples:
        raise ValueError("no problem of the training set has a reference solution to learn from")
    steps = max(1, math.ceil(len(examples) * settings.epochs / settings.batch))
    optimizer = torch.optim.AdamW(policy.trained_parameters, lr=settings.learning_rate, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _rate(step, steps, settings.warm_up_share))
    batches = _batches(examples, settings)
    policy.model.train()
    for step in range(steps):
        loss = _update(policy, next(batches), settings.micro_batch_tokens)
        torch.nn.utils.clip_grad_norm_(policy.trained_parameters, _GRADIENT_CLIP)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        on_step(step, steps, loss)
    policy.model.eval()


def _update(policy: Policy, batch: Sequence[Example], micro_batch_tokens: int) -> float:
    """Accumulate the gradient of the mean loss over the batch's reply tokens; returns that loss."""
    tokens = sum(len(example.reply_ids) for example in batch)
    total = 0.0
    for micro_batch in _split(batch, micro_batch_tokens):
        ids, labels = _padded(micro_batch, policy.device)
        logits = policy.model(input_ids=ids).logits[:, :-1].float()
        loss = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), labels[:, 1:].flatten(), ignore_index=_IGNORED, reduction="sum"
        )
        torch.autograd.backward(loss / tokens)
        total += loss.item()
    return total / tokens


def _batches(examples: Sequence[Example], settings: WarmStartSettings) -> Iterator[list[Example]]:
    """Endless shuffled batches."""
    rng = random.Random(f"warm-start/{settings.seed}")
    order: list[Example] = []
    while True:
        while len(order) < settings.batch:
            order += rng.sample(list(examples), len(examples))
        yield order[: settings.batch]
        order = order[settings.batch :]


def _split(batch: Sequence[Example], micro_batch_tokens: int) -> Iterator[list[Example]]:
    part: list[Example] = []
    for example in sorted(batch, key=len):
        if part and (len(part) + 1) * len(example) > micro_batch_tokens:
            yield part
            part = []
        part.append(example)
    if part:
        yield part


def _padded(batch: Sequence[Example], device: torch.device) -> tuple[Tensor, Tensor]:
    """Ids and labels `[rows, longest]`; padding at the right needs no mask under causal attention."""
    ids = torch.zeros(len(batch), max(map(len, batch)), dtype=torch.long)
    labels = torch.full_like(ids, _IGNORED)
    for place, example in enumerate(batch):
        row = torch.tensor([*example.prompt_ids, *example.reply_ids])
        ids[place, : len(example)] = row
        labels[place, len(example.prompt_ids) : len(example)] = row[len(example.prompt_ids) :]
    return ids.to(device), labels.to(device)


def _rate(step: int, steps: int, warm_up_share: float) -> float:
    warm_up = max(1, round(steps * warm_up_share))
    return min((step + 1) / warm_up, max(0.0, (steps - step) / max(1, steps - warm_up)))
