"""The numbers in Cobalt's reward, each with its unit and origin.

"code" in a description is `verl/code_reward_func_think.py` of OSU-NLP-Group/cobalt, the code of arXiv
2602.03806. Rewards have no unit; lengths are in tokens of the policy's tokenizer (the authors count with
o200k_base).
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from smalt.credit.repetition import FEWEST_TIMES

_CORRECTNESS = "code, compute_score, 'Correctness'"
_IMPROVEMENT = "code, compute_score, 'Improvement'"
_FORMAT = "code, format_reward"

REFLECTION_WORDS = ("wait", "mistake", "however", "but", "retry", "error", "verify", "wrong", "evaluate")


class CobaltRewardSettings(BaseModel):
    """Settings of `cobalt_reward`; the defaults are the authors'."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    no_code_reward: float = Field(
        -1.0, ge=-1, le=1, description="Whole reward of a reply without a code block (code, compute_score)."
    )
    all_pass_reward: float = Field(1.0, description=f"Correctness when every test passes ({_CORRECTNESS}).")
    most_pass_reward: float = Field(
        0.2,
        description=f"Correctness when a share in [most_pass_share, 1) of the tests passes ({_CORRECTNESS}).",
    )
    some_pass_reward: float = Field(
        0.0, description=f"Correctness when a share in (0, most_pass_share) passes ({_CORRECTNESS})."
    )
    none_pass_reward: float = Field(-0.1, description=f"Correctness when no test passes ({_CORRECTNESS}).")
    most_pass_share: float = Field(
        0.5,
        gt=0,
        lt=1,
        description=f"Share of the tests, in (0, 1), from which 'most' pass ({_CORRECTNESS}).",
    )

    improvement_scale: float = Field(
        0.1,
        ge=0,
        description=f"Reward for closing the whole gap to 1, or cost of losing all ({_IMPROVEMENT}).",
    )
    no_improvement_reward: float = Field(
        -0.1,
        description=f"Replaces correctness when the pass rate is not above previous best ({_IMPROVEMENT}).",
    )

    malformed_reward: float = Field(
        -0.9, description=f"Format part of a looping reply, open thinking, not one code block ({_FORMAT})."
    )
    repeated_block_characters: int = Field(
        32, ge=1, description=f"Shortest block that counts as repeated, in characters ({_FORMAT})."
    )
    repeated_block_times: int = Field(
        8, ge=FEWEST_TIMES, description=f"Times in a row from which a block counts as repeated ({_FORMAT})."
    )

    thinking_tokens_limit: int = Field(
        4096, gt=0, description=f"Longest thinking without a penalty, in tokens, inclusive ({_FORMAT})."
    )
    answer_tokens_limit: int = Field(
        2048, gt=0, description=f"Longest answer, code included, in tokens, inclusive ({_FORMAT})."
    )
    trailing_tokens_limit: int = Field(
        512, gt=0, description=f"Longest text after the code block, in tokens, inclusive ({_FORMAT})."
    )
    overlong_reward: float = Field(
        -0.01,
        description=f"Format part when some limit is exceeded and the reward so far is >= 0 ({_FORMAT}).",
    )
    overlong_failed_reward: float = Field(
        -0.1, description=f"Added for each exceeded limit when the reward so far is negative ({_FORMAT})."
    )

    thinking_bonus: float = Field(
        0.075, ge=0, description=f"Largest reward for the length of thinking after a failure ({_FORMAT})."
    )
    thinking_bonus_tokens: float = Field(
        1024, gt=0, description=f"Tokens of thinking in the unit of the bonus's tanh ({_FORMAT})."
    )
    reflection_words: tuple[str, ...] = Field(
        REFLECTION_WORDS, description="Whole lower-case words looked for in the thinking (code, KEYWORDS)."
    )
    reflection_word_bonus: float = Field(
        0.005, ge=0, description=f"Reward for each reflection word in use after a failure ({_FORMAT})."
    )
    reflection_word_uses_limit: int = Field(
        4, ge=1, description=f"Uses of a reflection word beyond which it earns nothing, a count ({_FORMAT})."
    )
    reflection_bonus_limit: float = Field(
        0.025, ge=0, description=f"Largest sum over the reflection words ({_FORMAT})."
    )
