"""Which model a run trains, and whether all of it: settings, free of torch."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from smalt.policy.loading import ModelSettings


class LoraSettings(BaseModel):
    """LoRA (arXiv 2106.09685): W x + (alpha / rank) B A x with W frozen, A random and B zero at first.

    There is no dropout: the log-probabilities of what was sampled without it would not be those that training finds,
    and no ratio would be 1.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    rank: int = Field(16, gt=0, description="Rows of A and columns of B (ours).")
    alpha: int = Field(32, gt=0, description="Adapters count alpha / rank times (ours).")
    targets: Literal["all-linear"] | tuple[Annotated[str, Field(min_length=1)], ...] = Field(
        "all-linear",
        description="Linear layers that get adapters, by the ends of their names, e.g. [q_proj, v_proj]; all-linear: "
        "every one but the head.",
        min_length=1,
    )


class TrainedModelSettings(ModelSettings):
    """The model a run begins with, and what of it trains."""

    lora: LoraSettings | None = Field(
        None, description="Train adapters and leave the weights as they are; by default all weights train."
    )
