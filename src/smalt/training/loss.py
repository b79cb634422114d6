"""The policy-gradient loss on token log-probabilities. Tensors are `[rows, tokens]`."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from smalt.training.settings import LossSettings


@dataclass(frozen=True)
class LossInputs:
    """What the loss is computed from, per completion token."""

    logprobs: Tensor
    """`[rows, tokens]` under the policy being trained, with gradient; 0 where `mask` is 0."""
    old_logprobs: Tensor
    """`[rows, tokens]` under the policy that sampled."""
    reference_logprobs: Tensor | None
    """`[rows, tokens]` under the reference policy; None when the KL weight is 0."""
    advantages: Tensor
    """`[rows]`, one a completion."""
    mask: Tensor
    """`[rows, tokens]`, 1 on tokens the policy wrote."""


@dataclass(frozen=True)
class LossSums:
    """Sums over tokens, so that micro-batches add up; divide by the batch's tokens for means."""

    loss: Tensor
    """Scalar with gradient."""
    kl: float
    """Sum of the mse estimator of KL(policy, reference)."""
    clipped: int
    """Tokens whose ratio was clipped against the advantage's direction."""
    ratio_deviation: float
    """Sum of |ratio - 1|."""


def policy_loss(inputs: LossInputs, settings: LossSettings) -> LossSums:
    """Sum over tokens of -min(rho A, clip(rho) A) + kl_coefficient * KL (METHODS 0 and 1.5).

    Masked tokens have equal log-probabilities on both sides by construction (0 and 0), so nothing leaks from them
    into the ratio; the mask removes their terms.
    """
    mask = inputs.mask.bool()
    log_ratio = (inputs.logprobs - inputs.old_logprobs).where(mask, 0.0)
    ratio = log_ratio.exp()
    advantages = inputs.advantages[:, None]
    clipped_ratio = ratio.clamp(1 - settings.clip_low, 1 + settings.clip_high)
    objective = torch.minimum(ratio * advantages, clipped_ratio * advantages)
    loss = -objective.where(mask, 0.0).sum()
    kl = torch.zeros((), device=loss.device)
    if inputs.reference_logprobs is not None:
        kl = mse_kl(inputs.logprobs, inputs.reference_logprobs).where(mask, 0.0).sum()
        loss = loss + settings.kl_coefficient * kl
    is_clipped = (clipped_ratio * advantages < ratio * advantages) & mask
    return LossSums(
        loss=loss,
        kl=kl.item(),
        clipped=int(is_clipped.sum().item()),
        ratio_deviation=(ratio.detach() - 1).abs().where(mask, 0.0).sum().item(),
    )


def mse_kl(logprobs: Tensor, reference_logprobs: Tensor) -> Tensor:
    """The "mse" estimator of KL: 0.5 (log pi - log pi_ref)^2 per token (METHODS 1.5)."""
    return 0.5 * (logprobs - reference_logprobs).square()
