"""The learner: groups with advantages go in, the policy's weights move.

It does not know which method made the groups.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from smalt.policy.loading import Policy
from smalt.policy.logprobs import CompletionGroup, TokenLogprobs, completion_logprobs
from smalt.training.aggregation import token_weights
from smalt.training.groups import TrainingGroup
from smalt.training.loss import LossInputs, policy_loss
from smalt.training.settings import LossSettings, OptimiserSettings
from smalt.training.turn_value import policy_parameters, prompt_values, value_parameters


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

    def train_step(self, trees: Sequence[Sequence[TrainingGroup]], step: int) -> dict[str, float]:
        """One pass over the groups of `trees` in mini-batches; returns means over tokens for the log.

        A mini-batch is made of whole trees, so that what was compared is updated together.
        """
        for parameters in self.optimizer.param_groups:
            parameters["lr"] = self.learning_rate(step)
        order = [self._with_value_advantages(groups) for groups in trees]
        random.Random(f"mini-batches/{step}").shuffle(order)
        totals = _Totals()
        size = self.settings.groups_per_update
        for start in range(0, len(order), size):
            totals.add(self._update(list(chain.from_iterable(order[start : start + size]))))
        return totals.means() | {"learning_rate": self.learning_rate(step)}

    def _with_value_advantages(self, groups: Sequence[TrainingGroup]) -> list[TrainingGroup]:
        """The groups of a tree; where there are returns, with the advantage over the value as it is before the step."""
        found = []
        for group in groups:
            if group.returns:
                with torch.no_grad():
                    value = prompt_values(self.policy.model, [group.prompt_ids]).item()
                group = replace(group, advantages=tuple(earned - value for earned in group.returns))
            found.append(group)
        return found

    def _update(self, groups: Sequence[TrainingGroup]) -> _Totals:
        """One optimiser step on a mini-batch."""
        rows = [completion for group in groups for completion in group.completions]
        totals = _Totals(updates=1, tokens=sum(len(row.ids) for row in rows), completions=len(rows))
        weights = token_weights(groups, self.loss_settings)
        self.policy.model.train()
        for micro_batch in self._micro_batches(list(zip(groups, weights, strict=True))):
            self._backward(micro_batch, totals)
        # Apart, so that large errors of a young value head do not scale the policy's gradient down.
        torch.nn.utils.clip_grad_norm_(value_parameters(self.policy.model), self.settings.gradient_clip)
        norm = torch.nn.utils.clip_grad_norm_(policy_parameters(self.policy.model), self.settings.gradient_clip)
        totals.gradient_norm = norm.item()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.policy.model.eval()
        return totals

    def _backward(self, batch: Sequence[_Weighted], totals: _Totals) -> None:
        groups = [group for group, _ in batch]
        ids = [CompletionGroup(g.prompt_ids, [completion.ids for completion in g.completions]) for g in groups]
        scored = completion_logprobs(self.policy.model, ids, self.temperature)
        reference = self._reference_logprobs(ids)
        rows = [completion.logprobs for group in groups for completion in group.completions]
        weights = [weight for _, of_group in batch for weight in of_group or ()]
        sums = policy_loss(
            LossInputs(
                logprobs=scored.logprobs,
                old_logprobs=_filled(rows, scored.logprobs),
                reference_logprobs=reference.logprobs if reference is not None else None,
                advantages=scored.logprobs.new_tensor([a for group in groups for a in group.advantages]),
                mask=scored.mask,
                weights=scored.logprobs.new_tensor(weights) if weights else None,
            ),
            self.loss_settings,
        )
        loss = sums.loss if weights else sums.loss / totals.tokens
        if any(group.returns for group in groups):
            squares = self._value_squares(groups)
            totals.value_squares += squares.item()
            loss = loss + self.loss_settings.value_coefficient * squares / totals.completions
        torch.autograd.backward(loss)
        totals.loss += sums.loss.item() * (totals.tokens if weights else 1)
        totals.kl += sums.kl
        totals.clipped += sums.clipped
        totals.ratio_deviation += sums.ratio_deviation
        totals.entropy += scored.entropy.sum().item()

    def _value_squares(self, groups: Sequence[TrainingGroup]) -> Tensor:
        """Sum over completions of (value of the prompt - return)^2."""
        values = prompt_values(self.policy.model, [group.prompt_ids for group in groups])
        rows = values.repeat_interleave(torch.tensor([len(g.returns) for g in groups], device=values.device))
        return (rows - rows.new_tensor([earned for group in groups for earned in group.returns])).square().sum()

    def _reference_logprobs(self, groups: Sequence[CompletionGroup]) -> TokenLogprobs | None:
        if self.reference is None or self.loss_settings.kl_coefficient == 0:
            return None
        with torch.no_grad():
            return completion_logprobs(self.reference, groups, self.temperature)

    def _micro_batches(self, groups: Sequence[_Weighted]) -> Iterator[list[_Weighted]]:
        """Groups of similar length together, within the token budget; a group is never split."""
        batch: list[_Weighted] = []
        for entry in sorted(groups, key=lambda weighted: len(weighted[0].prompt_ids)):
            if batch and _padded_tokens([g for g, _ in (*batch, entry)]) > self.settings.micro_batch_tokens:
                yield batch
                batch = []
            batch.append(entry)
        if batch:
            yield batch


_Weighted = tuple[TrainingGroup, list[float] | None]
"""A group and the weights of its completions' tokens."""


@dataclass
class _Totals:
    """Running sums of one training step."""

    updates: int = 0
    tokens: int = 0
    completions: int = 0
    loss: float = 0.0
    value_squares: float = 0.0
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
        values = {"value_error": self.value_squares / self.completions} if self.value_squares else {}
        return values | {
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
