"""Drawing tokens from logits: one uniform number a row, without sorting or random numbers for the whole vocabulary.

A number for every word of a vocabulary (`torch.multinomial`, Gumbel) costs several times what the rest of the draw
does; here one number a row is looked up in the cumulative distribution, which is exact as well.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from smalt.policy.sampling import SamplingSettings

# Candidates among which a nucleus is looked for before the whole row is sorted.
_CANDIDATES = 256
# Numbers of a block of rows; bounds the float32 copies of logits.
_BLOCK_NUMBERS = 1 << 24
# Words whose masses are summed before they are cumulated.
_BLOCK_WORDS = 256
_BELOW_ONE = 1 - 2**-52


def draw(logits: Tensor, settings: SamplingSettings, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw one token a row from `logits` `[rows, vocabulary]`; tokens and their log-probabilities, `[rows]`.

    Log-probabilities are float32 and those of the distribution drawn from; at temperature 0 of the plain softmax.
    """
    uniform = torch.rand(len(logits), 1, generator=generator, device=logits.device, dtype=torch.float64)
    rows = max(1, _BLOCK_NUMBERS // logits.shape[1])
    drawn = [
        _draw_block(block.float(), settings, numbers)
        for block, numbers in zip(torch.split(logits, rows), torch.split(uniform, rows), strict=True)
    ]
    tokens, logprobs = (torch.cat(parts) for parts in zip(*drawn, strict=True))
    return tokens, logprobs


def _draw_block(logits: Tensor, settings: SamplingSettings, uniform: Tensor) -> tuple[Tensor, Tensor]:
    if settings.temperature == 0:
        best, tokens = logits.max(-1)
        return tokens, best - logits.logsumexp(-1)
    scaled = logits / settings.temperature
    if settings.top_p < 1:
        return _draw_from_nucleus(scaled, settings.top_p, uniform)
    tokens, logprobs = _look_up(scaled, uniform)
    return tokens.squeeze(1), logprobs.squeeze(1)


def _look_up(scaled: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """The places `[rows, 1]` at which the cumulative distribution passes `uniform`, and their log-probabilities.

    First the block of words is found, then the word in it, so that only sums of blocks and one block a row are
    cumulated. That is done in float64: in float32 the rare words' share of a vocabulary of 150,000 would be lost.
    """
    highest = scaled.amax(-1, keepdim=True)
    masses = pad((scaled - highest).exp_(), (0, -scaled.shape[1] % _BLOCK_WORDS)).view(len(scaled), -1, _BLOCK_WORDS)
    cumulative = masses.sum(-1).cumsum(-1, dtype=torch.float64)
    total = cumulative[:, -1:]
    blocks = torch.searchsorted(cumulative, uniform * total, right=True)
    begin, end = (pad(cumulative, (1, 0)).gather(1, blocks + side) for side in (0, 1))
    within = masses.gather(1, blocks.unsqueeze(-1).expand(-1, -1, _BLOCK_WORDS)).squeeze(1)
    within = within.cumsum(-1, dtype=torch.float64)
    # What is left of the number is uniform again; it must stay below 1 however it was rounded.
    rest = ((uniform * total - begin) / (end - begin)).clamp(0, _BELOW_ONE)
    places = blocks * _BLOCK_WORDS + torch.searchsorted(within, rest * within[:, -1:], right=True)
    logprobs = scaled.gather(1, places) - highest - total.log().float()
    return places, logprobs


def _draw_from_nucleus(scaled: Tensor, top_p: float, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """Draw from nuclei that lie among the likeliest words; rows whose nucleus does not are sorted as a whole."""
    logprobs = scaled - scaled.logsumexp(-1, keepdim=True)
    likeliest, words = logprobs.topk(min(_CANDIDATES, scaled.shape[1]), sorted=True)
    tokens, drawn = _within(likeliest, words, top_p, uniform)
    is_wider = likeliest.exp().sum(-1) < top_p
    if is_wider.any():
        ordered, order = logprobs[is_wider].sort(-1, descending=True)
        tokens[is_wider], drawn[is_wider] = _within(ordered, order, top_p, uniform[is_wider])
    return tokens, drawn


def _within(ordered: Tensor, words: Tensor, top_p: float, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """Draw among `words` with log-probabilities `ordered`, both `[rows, candidates]`, likeliest first."""
    places, logprobs = _look_up(cut_to_nucleus(ordered, top_p), uniform)
    return words.gather(1, places).squeeze(1), logprobs.squeeze(1)


def cut_to_nucleus(ordered: Tensor, top_p: float) -> Tensor:
    """`ordered` log-probabilities, likeliest first, with -inf behind the first words whose mass reaches `top_p`."""
    mass = ordered.exp().cumsum(-1)
    return ordered.masked_fill(mass - ordered.exp() >= top_p, -torch.inf)
