"""The learner: groups with advantages go in, the policy's weights move.

It does not know which method made the groups.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from smalt.policy.loading import Policy
from smalt.policy.logprobs import CompletionGroup, TokenLogprobs, completion_logprobs
from smalt.training.groups import TrainingGroup
from smalt.training.loss import LossInputs, policy_loss
from smalt.training.settings import LossSettings, OptimiserSettings


class Learner:
    """Updates `policy` in place with AdamW on the clipped loss."""

    def __init__(
        self,
        policy: Policy,
        reference: Any | None,
        optimiser: OptimiserSettings,
        loss: LossSettings,
        temperature: float,
    ) -> None:
        """`reference` is the model of the KL penalty; None when its coefficient is 0."""
        if loss.kl_coefficient > 0 and reference is None:
            raise ValueError("kl_coefficient > 0 needs a reference policy")
        self.policy = policy
        self.reference = reference
        self.settings = optimiser
        self.loss_settings = loss
        self.temperature = temperature
        self.optimizer = torch.optim.AdamW(
            policy.model.parameters(),
            lr=optimiser.learning_rate,
            betas=(optimiser.beta1, optimiser.beta2),
            weight_decay=optimiser.weight_decay,
        )

    def learning_rate(self, step: int) -> float:
        """Learning rate of training step `step`, counted from 0."""
        return self.settings.learning_rate * min(1.0, (step + 1) / max(1, self.settings.warm_up_steps))

    def train_step(self, groups: Sequence[TrainingGroup], step: int) -> dict[str, float]:
        """One pass over `groups` in mini-batches; returns means over tokens for the log."""
        for parameters in self.optimizer.param_groups:
            parameters["lr"] = self.learning_rate(step)
        order = list(groups)
        random.Random(f"mini-batches/{step}").shuffle(order)
        totals = _Totals()
        size = self.settings.groups_per_update
        for start in range(0, len(order), size):
            totals.add(self._update(order[start : start + size]))
        return totals.means() | {"learning_rate": self.learning_rate(step)}

    def _update(self, groups: Sequence[TrainingGroup]) -> _Totals:
        """One optimiser step; the loss is the mean over the mini-batch's tokens."""
        totals = _Totals(updates=1, tokens=sum(len(c.ids) for g in groups for c in g.completions))
        self.policy.model.train()
        for micro_batch in self._micro_batches(groups):
            self._backward(micro_batch, totals)
        norm = torch.nn.utils.clip_grad_norm_(self.policy.model.parameters(), self.settings.gradient_clip)
        totals.gradient_norm = norm.item()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.policy.model.eval()
        return totals

    def _backward(self, groups: Sequence[TrainingGroup], totals: _Totals) -> None:
        ids = [CompletionGroup(g.prompt_ids, [completion.ids for completion in g.completions]) for g in groups]
        scored = completion_logprobs(self.policy.model, ids, self.temperature)
        reference = self._reference_logprobs(ids)
        rows = [completion.logprobs for group in groups for completion in group.completions]
        sums = policy_loss(
            LossInputs(
                logprobs=scored.logprobs,
                old_logprobs=_filled(rows, scored.logprobs),
                reference_logprobs=reference.logprobs if reference is not None else None,
                advantages=scored.logprobs.new_tensor([a for group in groups for a in group.advantages]),
                mask=scored.mask,
            ),
            self.loss_settings,
        )
        torch.autograd.backward(sums.loss / totals.tokens)
        totals.loss += sums.loss.item()
        totals.kl += sums.kl
        totals.clipped += sums.clipped
        totals.ratio_deviation += sums.ratio_deviation
        totals.entropy += scored.entropy.sum().item()

    def _reference_logprobs(self, groups: Sequence[CompletionGroup]) -> TokenLogprobs | None:
        if self.reference is None or self.loss_settings.kl_coefficient == 0:
            return None
        with torch.no_grad():
            return completion_logprobs(self.reference, groups, self.temperature)

    def _micro_batches(self, groups: Sequence[TrainingGroup]) -> Iterator[list[TrainingGroup]]:
        """Groups of similar length together, within the token budget; a group is never split."""
        batch: list[TrainingGroup] = []
        for group in sorted(groups, key=lambda g: len(g.prompt_ids)):
            if batch and _padded_tokens([*batch, group]) > self.settings.micro_batch_tokens:
                yield batch
                batch = []
            batch.append(group)
        if batch:
            yield batch


@dataclass
class _Totals:
    """Running sums of one training step."""

    updates: int = 0
    tokens: int = 0
    loss: float = 0.0
    kl: float = 0.0
    clipped: int = 0
    ratio_deviation: float = 0.0
    entropy: float = 0.0
    gradient_norm: float = 0.0

    def add(self, other: _Totals) -> None:
        """Add another update's sums."""
        for name in vars(self):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def means(self) -> dict[str, float]:
        """Means over tokens; the gradient norm is a mean over updates."""
        tokens = max(1, self.tokens)
        return {
            "loss": self.loss / tokens,
            "kl": self.kl / tokens,
            "clip_fraction": self.clipped / tokens,
            "ratio_deviation": self.ratio_deviation / tokens,
            "entropy": self.entropy / tokens,
            "grad_norm": self.gradient_norm / max(1, self.updates),
            "trained_tokens": float(self.tokens),
        }


def _padded_tokens(groups: Sequence[TrainingGroup]) -> int:
    """Tokens that a batch of groups occupies: prompts once, completions padded to the longest."""
    rows = sum(len(group.completions) for group in groups)
    longest = max(len(completion.ids) for group in groups for completion in group.completions)
    prompt = max(len(group.prompt_ids) for group in groups)
    # The repeated cache of the prompts counts too: attention of each row reads it.
    return rows * (prompt + longest)


def _filled(rows: Sequence[Sequence[float]], like: Tensor) -> Tensor:
    """Ragged rows as a tensor of the shape of `like`, 0 where a row has ended."""
    filled = torch.zeros(like.shape, dtype=torch.float32)
    for place, row in enumerate(rows):
        filled[place, : len(row)] = torch.tensor(row)
    return filled.to(like.device)
