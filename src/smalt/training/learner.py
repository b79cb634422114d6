"""The learner: groups with advantages go in, the policy's weights move.

It does not know which method made the groups.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

import torch
from torch import Tensor

from smalt.policy.loading import Policy
from smalt.policy.logprobs import TokenLogprobs, micro_batches, row_logprobs
from smalt.policy.reference import ReferencePolicy
from smalt.training.groups import TrainingGroup
from smalt.training.loss import LossInputs, policy_loss
from smalt.training.rows import TrainingRow, training_rows
from smalt.training.settings import LossSettings, OptimiserSettings
from smalt.training.turn_value import detached_values, policy_parameters, prompt_values, value_parameters


class Learner:
    """Updates `policy` in place with AdamW on the clipped loss."""

    def __init__(
        self,
        policy: Policy,
        reference: ReferencePolicy | None,
        optimiser: OptimiserSettings,
        loss: LossSettings,
        temperature: float,
    ) -> None:
        """`reference` is the policy of the KL penalty; None when its coefficient is 0."""
        if loss.kl_coefficient > 0 and reference is None:
            raise ValueError("kl_coefficient > 0 needs a reference policy")
        self.policy = policy
        self.reference = reference
        self.settings = optimiser
        self.loss_settings = loss
        self.temperature = temperature
        self.updates = 0
        """Optimiser steps taken since it was made."""
        if optimiser.gradient_checkpointing:
            policy.model.gradient_checkpointing_enable()
        self.optimizer = torch.optim.AdamW(
            policy.trained_parameters,
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
        order = self._with_value_advantages(trees)
        random.Random(f"mini-batches/{step}").shuffle(order)
        totals = _Totals()
        size = self.settings.groups_per_update
        for start in range(0, len(order), size):
            totals.add(self._update(list(chain.from_iterable(order[start : start + size]))))
        return totals.means() | {"learning_rate": self.learning_rate(step)}

    def _with_value_advantages(self, trees: Sequence[Sequence[TrainingGroup]]) -> list[list[TrainingGroup]]:
        """The trees' groups; those with returns get the advantage over the value as it is before the step."""
        prompts = list(dict.fromkeys(group.prompt_ids for groups in trees for group in groups if group.returns))
        budget = self.settings.micro_batch_tokens
        value_of = dict(zip(prompts, detached_values(self.policy.model, prompts, budget), strict=True))

        def valued(group: TrainingGroup) -> TrainingGroup:
            if not group.returns:
                return group
            value = value_of[group.prompt_ids]
            return replace(group, advantages=tuple(earned - value for earned in group.returns))

        return [[valued(group) for group in groups] for groups in trees]

    def _update(self, groups: Sequence[TrainingGroup]) -> _Totals:
        """One optimiser step on a mini-batch."""
        rows = training_rows(groups, self.loss_settings)
        totals = _Totals(updates=1, completions=len(rows))
        totals.tokens = sum(len(row.completion.ids) for row in rows)
        totals.row_tokens = totals.tokens + sum(len(row.prompt_ids) for row in rows)
        rows = [row for row in rows if row.carries_gradient(self.loss_settings)]
        self.policy.model.train()
        for part in micro_batches(self.policy.model, [row.tokens for row in rows], self.settings.micro_batch_tokens):
            self._backward([rows[place] for place in part], totals)
        # Apart, so that large errors of a young value head do not scale the policy's gradient down.
        torch.nn.utils.clip_grad_norm_(value_parameters(self.policy.model), self.settings.gradient_clip)
        norm = torch.nn.utils.clip_grad_norm_(policy_parameters(self.policy.model), self.settings.gradient_clip)
        totals.gradient_norm = norm.item()
        self.optimizer.step()
        self.updates += 1
        self.optimizer.zero_grad()
        self.policy.model.eval()
        return totals

    def _backward(self, rows: Sequence[TrainingRow], totals: _Totals) -> None:
        """Add a micro-batch's gradient, and its sums to `totals`, which know the whole mini-batch's counts."""
        scored = row_logprobs(self.policy.model, [row.tokens for row in rows], self.temperature)
        reference = self._reference_logprobs(rows)
        sums = policy_loss(
            LossInputs(
                logprobs=scored.logprobs,
                old_logprobs=_filled([row.completion.logprobs for row in rows], scored.logprobs),
                reference_logprobs=reference.logprobs if reference is not None else None,
                advantages=scored.logprobs.new_tensor([row.advantage for row in rows]),
                mask=scored.mask,
                weights=scored.logprobs.new_tensor([row.weight for row in rows]),
            ),
            self.loss_settings,
        )
        loss = sums.loss
        if any(row.earned is not None for row in rows):
            squares = self._value_squares(rows)
            totals.value_squares += squares.item()
            loss = loss + self.loss_settings.value_coefficient * squares / totals.completions
        torch.autograd.backward(loss)
        totals.loss += sums.loss.item() * totals.tokens
        totals.kl += sums.kl
        totals.clipped += sums.clipped
        totals.ratio_deviation += sums.ratio_deviation
        totals.entropy += scored.entropy.sum().item()
        totals.scored_tokens += sum(len(row.completion.ids) for row in rows)
        totals.computed_tokens += scored.computed_tokens

    def _value_squares(self, rows: Sequence[TrainingRow]) -> Tensor:
        """Sum over completions of (value of the prompt - return)^2; each prompt is valued once."""
        prompts = {prompt: place for place, prompt in enumerate(dict.fromkeys(row.prompt_ids for row in rows))}
        values = prompt_values(self.policy.model, list(prompts))
        places = torch.tensor([prompts[row.prompt_ids] for row in rows], device=values.device)
        return (values[places] - values.new_tensor([row.earned or 0.0 for row in rows])).square().sum()

    def _reference_logprobs(self, rows: Sequence[TrainingRow]) -> TokenLogprobs | None:
        if self.reference is None or self.loss_settings.kl_coefficient == 0:
            return None
        return self.reference.row_logprobs([row.tokens for row in rows], self.temperature)


@dataclass
class _Totals:
    """Running sums of one training step."""

    updates: int = 0
    completions: int = 0
    tokens: int = 0
    """Of completions."""
    row_tokens: int = 0
    """Of prompts and completions, each row by itself."""
    scored_tokens: int = 0
    """Of completions that can move a weight."""
    computed_tokens: int = 0
    """That went through the model."""
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
        """Means over tokens, those of the loss over all and the others over the scored; the norm's over updates."""
        tokens, scored = max(1, self.tokens), max(1, self.scored_tokens)
        values = {"value_error": self.value_squares / self.completions} if self.value_squares else {}
        return values | {
            "loss": self.loss / tokens,
            "kl": self.kl / scored,
            "clip_fraction": self.clipped / scored,
            "ratio_deviation": self.ratio_deviation / scored,
            "entropy": self.entropy / scored,
            "grad_norm": self.gradient_norm / max(1, self.updates),
            "trained_programs": float(self.completions),
            "trained_tokens": float(self.tokens),
            "training_tokens_total": float(self.row_tokens),
            "training_tokens_computed": float(self.computed_tokens),
        }


def _filled(rows: Sequence[Sequence[float]], like: Tensor) -> Tensor:
    """Ragged rows as a tensor of the shape of `like`, 0 where a row has ended."""
    filled = torch.zeros(like.shape, dtype=torch.float32)
    for place, row in enumerate(rows):
        filled[place, : len(row)] = torch.tensor(row)
    return filled.to(like.device)
