"""The loss on token log-probabilities: five objectives, one penalty. Tensors are `[rows, tokens]`.

Every objective is written per token and to be maximised; one that is a single term for a whole completion repeats it
on each of its tokens, and the mean over the completion's tokens ("sequences") makes one of it again.
"""

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
    weights: Tensor | None = None
    """`[rows]`, what each token of a completion counts; None for 1."""


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
    """Weighted sum over tokens of -objective + kl_coefficient * KL.

    Masked tokens have equal log-probabilities on both sides by construction (0 and 0), so nothing leaks from them
    into the ratio; the mask removes their terms.
    """
    mask = inputs.mask.bool()
    # Programs to imitate were sampled from other prompts: what they were sampled with says nothing here.
    old = inputs.logprobs.detach() if settings.objective == "likelihood" else inputs.old_logprobs
    log_ratio = (inputs.logprobs - old).where(mask, 0.0)
    ratio = log_ratio.exp()
    objective, is_clipped = _objective(inputs, log_ratio, ratio, settings)
    loss = -_weighted(objective.where(mask, 0.0), inputs.weights).sum()
    kl = torch.zeros((), device=loss.device)
    if inputs.reference_logprobs is not None:
        penalty = mse_kl(inputs.logprobs, inputs.reference_logprobs).where(mask, 0.0)
        kl = penalty.sum()
        loss = loss + settings.kl_coefficient * _weighted(penalty, inputs.weights).sum()
    return LossSums(
        loss=loss,
        kl=kl.item(),
        clipped=int((is_clipped & mask).sum().item()),
        ratio_deviation=(ratio.detach() - 1).abs().where(mask, 0.0).sum().item(),
    )


def clipped_objective(ratio: Tensor, advantages: Tensor, settings: LossSettings) -> tuple[Tensor, Tensor]:
    """min(rho A, clip(rho) A), and where it is clipped: PPO, GRPO, DAPO's clip-higher (METHODS 0).

    `ratio` is `[rows, tokens]` (or `[rows, 1]` for whole completions), `advantages` `[rows, 1]`.
    """
    clipped_ratio = ratio.clamp(1 - settings.clip_low, 1 + settings.clip_high)
    objective = torch.minimum(ratio * advantages, clipped_ratio * advantages)
    return objective, clipped_ratio * advantages < ratio * advantages


def sequence_ratio(log_ratio: Tensor, mask: Tensor) -> Tensor:
    """exp(mean over tokens of log rho), `[rows, 1]`: GSPO's ratio of a whole completion (arXiv 2507.18071)."""
    return (log_ratio.sum(1, keepdim=True) / mask.sum(1, keepdim=True)).exp()


def weighted_objective(
    ratio: Tensor, logprobs: Tensor, advantages: Tensor, settings: LossSettings
) -> tuple[Tensor, Tensor]:
    """stop_gradient(min(rho, 1 + clip_high)) A log pi, and where it is clipped: CISPO (MiniMax-M1, arXiv 2506.13585).

    The weight is clipped, its gradient is not used, and log pi's always is. clip_high is the distance from 1, not
    the bound itself as in some re-implementations; there is no lower bound, as the authors' setting has it.
    """
    weight = ratio.detach().clamp(max=1 + settings.clip_high)
    return weight * advantages * logprobs, weight < ratio


def regression_objective(log_ratio: Tensor, advantages: Tensor, beta: float) -> Tensor:
    """-(beta log(pi / pi_lagged) - A)^2 of whole completions, `[rows, 1]`: OAPL (METHODS 4).

    The lagged policy is the one that sampled.
    """
    return -(beta * log_ratio.sum(1, keepdim=True) - advantages).square()


def mse_kl(logprobs: Tensor, reference_logprobs: Tensor) -> Tensor:
    """The "mse" estimator of KL: 0.5 (log pi - log pi_ref)^2 per token (METHODS 1.5)."""
    return 0.5 * (logprobs - reference_logprobs).square()


def _objective(inputs: LossInputs, log_ratio: Tensor, ratio: Tensor, settings: LossSettings) -> tuple[Tensor, Tensor]:
    """The objective per token, and which tokens are clipped, both `[rows, tokens]`."""
    advantages = inputs.advantages[:, None]
    if settings.objective == "clipped":
        return clipped_objective(ratio, advantages, settings)
    if settings.objective == "cispo":
        return weighted_objective(ratio, inputs.logprobs, advantages, settings)
    if settings.objective == "likelihood":
        return advantages * inputs.logprobs, torch.zeros_like(ratio, dtype=torch.bool)
    if settings.objective == "gspo":
        objective, is_clipped = clipped_objective(sequence_ratio(log_ratio, inputs.mask), advantages, settings)
    else:
        objective = regression_objective(log_ratio, advantages, settings.oapl_beta)
        is_clipped = torch.zeros_like(objective, dtype=torch.bool)
    return objective.expand_as(ratio), is_clipped.expand_as(ratio)


def _weighted(terms: Tensor, weights: Tensor | None) -> Tensor:
    return terms if weights is None else terms * weights[:, None]
