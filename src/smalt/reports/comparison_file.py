"""`comparison.json`: the figures of a comparison, as they are written and as the report reads them.

All costs are means over a method's runs. Curves are means over runs on a common grid, with the smallest and largest
run beside them.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from smalt.reports.run_folder import DifferenceSummary, EvaluationSummary

Cost = Literal["sampled_tokens", "seconds"]
Quantity = Literal["solved_share", "reward_mean"]


class _Figures(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class BudgetSummary(_Figures):
    """What each run might cost."""

    cost: Cost
    amount: float
    includes_collection: bool


class Curve(_Figures):
    """A quantity of training against a cost."""

    quantity: Quantity
    cost: Cost
    spent: list[float]
    mean: list[float]
    low: list[float]
    high: list[float]


class CostSummary(_Figures):
    """What a run cost, in the mean."""

    steps: float
    examples: float
    """Prompts that were trained on: trees."""
    programs: float
    """Programs sampled in training."""
    collection_tokens: float
    """Tokens and seconds of the stored trajectories; 0 for methods without a store."""
    collection_seconds: float
    training_tokens: float
    training_seconds: float
    tokens_per_example: float
    """Of training, without the collection."""
    seconds_per_example: float
    groups_without_signal: float | None
    """Share of the compared groups whose members all have the same credit; None where nothing is compared."""


class MethodSummary(_Figures):
    """A method's figures over its seeds."""

    name: str
    method: str
    training_turns: int
    """Last turn that training saw."""
    evaluation: EvaluationSummary
    gain: DifferenceSummary
    """After training minus before."""
    cost: CostSummary
    curves: list[Curve]


class PairSummary(DifferenceSummary):
    """`second` minus `first`, at each turn."""

    first: str
    second: str
    by_difficulty: list[DifferenceSummary]
    """The same for the hardest, the middle and the easiest third of the problems; empty with fewer than three."""


class ComparisonSummary(_Figures):
    """The whole comparison."""

    budget: BudgetSummary
    seeds: int = Field(ge=1)
    protocol: str
    """When a dialogue ends in evaluation, in words."""
    before: EvaluationSummary
    """The untrained policy, over the same seeds."""
    methods: list[MethodSummary]
    pairs: list[PairSummary]
