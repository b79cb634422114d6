"""Cobalt's reward of one reply: staged correctness, improvement on the context, format.

Source: `verl/code_reward_func_think.py` of OSU-NLP-Group/cobalt (arXiv 2602.03806). Pure arithmetic: the
caller has graded the program on ALL tests, public and hidden, and has counted tokens. A reply whose grading
failed (`infra_error`) has no reward at all and must not come here.

Where a boundary is easy to get wrong:

- a pass rate of exactly 0.5 is already "most pass"; only exactly 1.0 is "all pass" (0.999 is not);
- there is no improvement part when everything passes or when the previous best is 0;
- a pass rate EQUAL to the previous best is no improvement: correctness is replaced by -0.1;
- "the reward so far" that picks the format rule is correctness and improvement together, and 0.0 belongs to
  the gentle side: some tests passing with no earlier success is not a failure;
- the limits on length are inclusive;
- the format part is added in every case with a code block, so a correct but malformed reply earns 1.0 - 0.9.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from smalt.credit.cobalt_settings import CobaltRewardSettings
from smalt.credit.repetition import repeats_a_block

__all__ = [
    "CobaltRewardSettings",
    "Improvement",
    "RewardParts",
    "ScoredReply",
    "cobalt_reward",
    "correctness_reward",
    "format_reward",
    "improvement_reward",
    "is_malformed",
    "reflection_bonus",
    "repeats_a_block",
    "validation_score",
]

PAPER = CobaltRewardSettings()


@dataclass(frozen=True)
class ScoredReply:
    """What the reward needs to know of one reply. Counts are in tokens."""

    pass_rate: float | None
    """Share of all tests that the program passes, in [0, 1]; None when the reply has no code block."""
    previous_best: float = 0.0
    """Best pass rate among the programs of the context, in [0, 1]; 0 for a bare problem."""
    text: str = ""
    """The whole reply, thinking included; searched for repeated blocks."""
    thinking: str = ""
    """The text of the thinking; searched for reflection words."""
    thinking_tokens: int = 0
    answer_tokens: int = 0
    """Tokens after the thinking, code included."""
    trailing_tokens: int = 0
    """Tokens after the code block."""
    is_thinking_model: bool = False
    """Without it the three rules on thinking fall away (our decision; the authors train thinking models)."""
    thinking_closed_once: bool = True
    has_exactly_one_block: bool = True
    """Whether the answer has one python code block, neither more nor fewer."""
    has_backtick_inside: bool = False
    """Whether a backtick stands inside that block."""

    def __post_init__(self) -> None:
        """Refuse shares outside [0, 1] (and NaN) and negative counts."""
        for name in ("pass_rate", "previous_best"):
            share = getattr(self, name)
            if share is not None and not 0.0 <= share <= 1.0:
                raise ValueError(f"{name} must be in [0, 1], got {share}")
        for name in ("thinking_tokens", "answer_tokens", "trailing_tokens"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")


@dataclass(frozen=True)
class Improvement:
    """The improvement part: `value` is added to correctness, or stands in its place."""

    value: float
    replaces_correctness: bool = False


@dataclass(frozen=True)
class RewardParts:
    """The reward and the parts it is the sum of, before clipping.

    `correctness` is 0 where improvement replaced it; without a code block it holds the whole reward.
    """

    correctness: float
    improvement: float
    format: float
    total: float
    """The sum, clipped to [-1, 1]."""


def correctness_reward(pass_rate: float, settings: CobaltRewardSettings = PAPER) -> float:
    """Staged reward of a pass rate in [0, 1].

    Stages, because a continuous pass rate taught models to park at partial credit (Cobalt, reward design).
    """
    if pass_rate == 1.0:
        return settings.all_pass_reward
    if pass_rate >= settings.most_pass_share:
        return settings.most_pass_reward
    if pass_rate > 0.0:
        return settings.some_pass_reward
    return settings.none_pass_reward


def improvement_reward(pass_rate: float, previous_best: float, settings: CobaltRewardSettings = PAPER) -> Improvement:
    """Reward for beating the best program of the context, p over b.

    p = 1 or b = 0: nothing. p > b: scale (p - b) / (1 - b) is added. p <= b: correctness is replaced by
    -0.1 + scale (p - b) / b, so standing still costs 0.1 and losing everything 0.2.
    """
    if pass_rate == 1.0 or previous_best == 0.0:
        return Improvement(0.0)
    gain = pass_rate - previous_best
    if gain > 0.0:
        return Improvement(settings.improvement_scale * gain / (1.0 - previous_best))
    loss = settings.improvement_scale * gain / previous_best
    return Improvement(settings.no_improvement_reward + loss, replaces_correctness=True)


def is_malformed(reply: ScoredReply, settings: CobaltRewardSettings = PAPER) -> bool:
    """Whether the reply breaks the form: open thinking, not one clean python block, or a loop."""
    if reply.is_thinking_model and not reply.thinking_closed_once:
        return True
    if not reply.has_exactly_one_block or reply.has_backtick_inside:
        return True
    return repeats_a_block(reply.text, settings.repeated_block_characters, settings.repeated_block_times)


def reflection_bonus(thinking: str, settings: CobaltRewardSettings = PAPER) -> float:
    """Reward for words of reflection: each one used, but not worn out, counts once; the sum is capped."""
    lowered = thinking.lower()
    uses = [len(re.findall(rf"\b{re.escape(word)}\b", lowered)) for word in settings.reflection_words]
    words = sum(1 <= count <= settings.reflection_word_uses_limit for count in uses)
    return min(words * settings.reflection_word_bonus, settings.reflection_bonus_limit)


def format_reward(reply: ScoredReply, reward_so_far: float, settings: CobaltRewardSettings = PAPER) -> float:
    """Format part, to be added to `reward_so_far` (correctness and improvement together)."""
    if is_malformed(reply, settings):
        return settings.malformed_reward
    thinking_is_long = reply.is_thinking_model and reply.thinking_tokens > settings.thinking_tokens_limit
    answer_is_long = reply.answer_tokens > settings.answer_tokens_limit
    trailing_is_long = reply.trailing_tokens > settings.trailing_tokens_limit
    if reward_so_far >= 0.0:
        return settings.overlong_reward if thinking_is_long or answer_is_long or trailing_is_long else 0.0
    penalties = (answer_is_long + trailing_is_long) * settings.overlong_failed_reward
    return _failed_thinking_reward(reply, thinking_is_long, settings) + penalties


def _failed_thinking_reward(reply: ScoredReply, thinking_is_long: bool, settings: CobaltRewardSettings) -> float:
    """What the thinking earns after a failure: effort and reflection pay, beyond the limit they cost."""
    if not reply.is_thinking_model:
        return 0.0
    if thinking_is_long:
        return settings.overlong_failed_reward
    effort = math.tanh(reply.thinking_tokens / settings.thinking_bonus_tokens) * settings.thinking_bonus
    return effort + reflection_bonus(reply.thinking, settings)


def cobalt_reward(reply: ScoredReply, settings: CobaltRewardSettings = PAPER) -> RewardParts:
    """The reward of one reply, with its parts."""
    if reply.pass_rate is None:
        return RewardParts(settings.no_code_reward, 0.0, 0.0, settings.no_code_reward)
    improvement = improvement_reward(reply.pass_rate, reply.previous_best, settings)
    correctness = 0.0 if improvement.replaces_correctness else correctness_reward(reply.pass_rate, settings)
    so_far = correctness + improvement.value
    form = format_reward(reply, so_far, settings)
    return RewardParts(correctness, improvement.value, form, max(-1.0, min(1.0, so_far + form)))


def validation_score(pass_rate: float | None) -> float:
    """1 when every test passes, else 0 (None: no code block)."""
    return 1.0 if pass_rate == 1.0 else 0.0
