"""Log-probabilities and entropies of tokens from hidden states, a chunk of tokens at a time.

Logits of all tokens of a batch at once would be its largest tensor by far (32 rows of 1,024 tokens and a vocabulary
of 151,936: 20 GB in float32). Here they exist for one chunk only; backward computes them again, except for the last
chunk, so that a batch that fits in one pays nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

LogitsOf = Callable[[Tensor], Tensor]
"""From hidden states `[tokens, hidden]` to logits `[tokens, vocabulary]`."""

_LOGITS_AT_ONCE = 1 << 26
"""Elements; three tensors of this size exist at the peak, 0.8 GB in float32."""


def score_tokens(
    logits_of: LogitsOf, hidden: Tensor, targets: Tensor, vocabulary: int, temperature: float
) -> tuple[Tensor, Tensor]:
    """Score `targets` `[tokens]` under softmax(logits / temperature); `hidden` is `[tokens, hidden]`.

    Returns log-probabilities (with gradient) and entropies in nats (without), both `[tokens]` in float32. Temperature
    0, greedy sampling, is scored under the plain softmax.
    """
    size = max(1, _LOGITS_AT_ONCE // vocabulary)
    parts = list(zip(torch.split(hidden, size), torch.split(targets, size), strict=True))
    scored = [_score(logits_of, *part, temperature, recompute=part is not parts[-1]) for part in parts]
    return torch.cat([logprobs for logprobs, _ in scored]), torch.cat([entropy for _, entropy in scored])


def _score(
    logits_of: LogitsOf, hidden: Tensor, targets: Tensor, temperature: float, *, recompute: bool
) -> tuple[Tensor, Tensor]:
    def scores(hidden: Tensor) -> tuple[Tensor, Tensor]:
        taken: tuple[Tensor, Tensor] = TokenScores.apply(  # type: ignore[no-untyped-call]
            logits_of(hidden), targets, temperature or 1.0
        )
        return taken

    if recompute and torch.is_grad_enabled():
        found: tuple[Tensor, Tensor] = checkpoint(scores, hidden, use_reentrant=False, preserve_rng_state=False)
        return found
    return scores(hidden)


class TokenScores(torch.autograd.Function):
    """Log-probability and entropy from logits. It keeps the probabilities, one tensor instead of autograd's two."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
        """`logits` `[tokens, vocabulary]`, `targets` `[tokens]`; both results `[tokens]` in float32."""
        scaled = logits.float()
        logprobs = (scaled if temperature == 1 else scaled / temperature).log_softmax(-1)
        taken = logprobs.gather(-1, targets[:, None]).squeeze(-1)
        probabilities = logprobs.exp()
        entropy = -logprobs.mul_(probabilities).sum(-1)  # in place: one tensor less, and nothing reads it any more
        ctx.save_for_backward(probabilities, targets)
        ctx.temperature, ctx.dtype = temperature, logits.dtype
        ctx.mark_non_differentiable(entropy)
        return taken, entropy

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        """d log p(target) / d logit_v = (1 if v is the target else 0) - p(v), over the temperature."""
        probabilities, targets = ctx.saved_tensors
        scale = gradients[0] / ctx.temperature
        found = probabilities * -scale[:, None]
        found.scatter_add_(-1, targets[:, None], scale[:, None])
        return found.to(ctx.dtype), None, None
