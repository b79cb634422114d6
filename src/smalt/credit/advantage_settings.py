"""Which advantage a group's rewards become. Free of torch, so that recipes load at once."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

EstimatorName = Literal["grpo", "dr_grpo", "rloo", "reinforce_plus_plus", "gdpo", "oapl", "ngu"]


class AdvantageSettings(BaseModel):
    """How the members of a group are compared; see `smalt.credit.estimators` for formulas and sources."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    estimator: EstimatorName = Field(
        "grpo",
        description="grpo: (r - mean) / std; dr_grpo: r - mean; rloo: r - mean of the others; reinforce_plus_plus: "
        "r - mean, whitened over the batch; gdpo: each reward normalised by itself, added, whitened over the batch; "
        "oapl: r - soft value (with loss.objective oapl); ngu: with training.never_give_up.",
    )
    keep_members: int | None = Field(
        None,
        gt=1,
        description="Max-variance down-sampling (arXiv 2504.13818): members of a group that train, those whose "
        "rewards vary most; None for all.",
    )


class OverlongSettings(BaseModel):
    """DAPO's soft overlong penalty (arXiv 2503.14476, eq. 13), added to a program's reward."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_tokens: int = Field(gt=0, description="L_max: from this length the penalty is -1, in tokens (DAPO: 20,480).")
    cache_tokens: int = Field(gt=0, description="L_cache: the penalty grows over the last so many (DAPO: 4,096).")

    @model_validator(mode="after")
    def _cache_fits(self) -> OverlongSettings:
        if self.cache_tokens > self.max_tokens:
            raise ValueError(f"cache_tokens is {self.cache_tokens}, more than max_tokens, {self.max_tokens}")
        return self
