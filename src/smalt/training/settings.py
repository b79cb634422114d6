"""Settings of training: loss, optimiser, loop, warm start. Free of torch, so that recipes load at once."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from smalt.credit.advantage_settings import AdvantageSettings, OverlongSettings
from smalt.policy.sampling import SamplingSettings
from smalt.training.batches import steps_of_epochs


class LossSettings(BaseModel):
    """The objective on token log-probabilities, its mean over a mini-batch, and a penalty towards the reference."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    objective: Literal["clipped", "gspo", "cispo", "oapl", "likelihood"] = Field(
        "clipped",
        description="clipped: PPO's and GRPO's; gspo: clipped ratio of whole completions; cispo: clipped weight, "
        "gradient kept; oapl: regression on the advantage; likelihood: imitation, for methods that name programs to "
        "imitate. Formulas in training/loss.py.",
    )
    aggregation: Literal["tokens", "sequences", "constant", "turns"] = Field(
        "tokens",
        description="Mean over the mini-batch: tokens (DAPO, Cobalt's code), sequences (GRPO's paper: tokens of a "
        "completion, then completions), constant (Dr.GRPO: sum over tokens / constant_length, then completions), "
        "turns (tokens of a turn, then turns: MURPHY, ours).",
    )
    constant_length: int | None = Field(
        None, gt=0, description="Dr.GRPO's divisor, in tokens; usually sampling.max_new_tokens."
    )
    clip_low: float = Field(0.2, gt=0, lt=1, description="Lower clip of the ratio: 1 - clip_low (Cobalt: 0.2).")
    clip_high: float = Field(
        0.4,
        gt=0,
        description="Upper clip of the ratio: 1 + clip_high (Cobalt: 0.4; DAPO: 0.28). CISPO: its weight is at most "
        "1 + clip_high and has no lower bound.",
    )
    value_coefficient: float = Field(
        0.5, gt=0, description="Weight of the squared error of values, for methods that learn them (our default)."
    )
    oapl_beta: float = Field(1.0, gt=0, description="OAPL: temperature of value and regression (our default).")
    kl_coefficient: float = Field(
        1e-4, ge=0, description="Weight of the KL penalty (Cobalt: 1e-4); 0 spares the reference policy."
    )

    @model_validator(mode="after")
    def _fits_together(self) -> LossSettings:
        if (self.aggregation == "constant") != (self.constant_length is not None):
            raise ValueError("aggregation 'constant' and constant_length need each other: set both or neither")
        if self.objective in ("gspo", "oapl") and self.aggregation != "sequences":
            raise ValueError(
                f"objective {self.objective!r} is one term a completion: set aggregation to 'sequences', "
                "else long completions would count that term once a token"
            )
        if self.objective == "gspo" and self.clip_high > 0.05:
            raise ValueError(
                f"clip_high {self.clip_high:g} never clips a completion's mean ratio, which stays within about 1e-3 "
                "of 1: set clip_low and clip_high as GSPO has them, 3e-4 and 4e-4"
            )
        return self


class NeverGiveUpSettings(BaseModel):
    """NGU: prompts on which every program failed come back (METHODS 4)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    probability: float = Field(0.5, gt=0, le=1, description="Chance that such a prompt is in the next step too (ours).")
    max_rounds: int = Field(4, gt=0, description="Rounds that old completions are kept; older ones only count.")


class OptimiserSettings(BaseModel):
    """AdamW and how its steps are cut."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    learning_rate: float = Field(1e-6, gt=0, description="Peak learning rate (Cobalt: 1e-6).")
    warm_up_steps: int = Field(0, ge=0, description="Training steps of linear warm-up.")
    weight_decay: float = Field(0.01, ge=0, description="AdamW's decoupled weight decay (verl's default).")
    beta1: float = Field(0.9, ge=0, lt=1, description="AdamW's beta 1.")
    beta2: float = Field(0.999, ge=0, lt=1, description="AdamW's beta 2.")
    gradient_clip: float = Field(1.0, gt=0, description="Largest gradient norm (Cobalt: 1.0).")
    groups_per_update: int = Field(
        64, gt=0, description="Mini-batch: trees with a signal an optimiser step (Cobalt: 64 prompts)."
    )
    micro_batch_tokens: int = Field(
        16384,
        gt=0,
        description="Tokens computed at once: distinct ones of the packed rows, or rows x longest where a model cannot "
        "share prefixes; only memory and speed depend on it.",
    )
    gradient_checkpointing: bool = Field(
        False, description="Compute activations again in backward: about a third more time, far less memory."
    )


class TrainingBudget(BaseModel):
    """What training may cost: it ends with the first step that reaches it, or with its other bounds before."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sampled_tokens: int | None = Field(None, gt=0, description="Tokens that the policy writes in training.")
    seconds: float | None = Field(
        None, gt=0, description="Wall time of sampling, grading and updates; validation and checkpoints cost nothing."
    )
    includes_collection: bool = Field(
        True,
        description="Whether the stored trajectories of methods that train on contexts count too.",
    )

    @model_validator(mode="after")
    def _is_one_amount(self) -> TrainingBudget:
        if (self.sampled_tokens is None) == (self.seconds is None):
            raise ValueError("a budget is either sampled_tokens or seconds: set exactly one of them")
        return self


class TrainingSettings(BaseModel):
    """How long, on how much, and how closely watched."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    epochs: float = Field(2.0, gt=0, description="Passes over the contexts (Cobalt: 2); see max_steps.")
    max_steps: int | None = Field(None, gt=0, description="Most training steps; None for no bound but epochs.")
    budget: TrainingBudget | None = Field(None, description="Most that training may cost; none by default.")
    contexts_per_step: int = Field(128, gt=0, description="Contexts a step (Cobalt: 128).")
    sampling: SamplingSettings = Field(
        default_factory=SamplingSettings,
        description="How groups are drawn (Cobalt: temperature 1.0, 6,144 tokens).",
    )
    optimiser: OptimiserSettings = Field(default_factory=OptimiserSettings, description="AdamW.")
    loss: LossSettings = Field(default_factory=LossSettings, description="The loss.")
    advantages: AdvantageSettings = Field(
        default_factory=AdvantageSettings, description="How the members of a group are compared."
    )
    overlong: OverlongSettings | None = Field(None, description="DAPO's soft penalty on long completions, if any.")
    dynamic_sampling_rounds: int = Field(
        1,
        gt=0,
        description="DAPO's dynamic sampling: batches drawn at most until contexts_per_step trees carry a signal; "
        "1 takes what the first gives.",
    )
    never_give_up: NeverGiveUpSettings | None = Field(None, description="NGU's return of failed prompts, if any.")
    steps_ahead: int = Field(
        0,
        ge=0,
        le=1,
        description="1 samples a step beside the update of the step before, with the weights before that update, but "
        "for the step behind a checkpoint; 0 samples each step with the newest weights.",
    )
    validate_every: int = Field(0, ge=0, description="Steps between validations; 0 for none.")
    validation_contexts: int = Field(256, gt=0, description="Most contexts a validation scores.")
    validation_sampling: SamplingSettings = Field(
        default_factory=lambda: SamplingSettings(temperature=0.6),
        description="How validation programs are drawn (Cobalt: temperature 0.6).",
    )
    checkpoint_every: int = Field(20, gt=0, description="Steps between checkpoints.")
    keep_checkpoints: int = Field(2, gt=0, description="Newest checkpoints kept.")

    def steps(self, contexts: int) -> int:
        """Training steps for a number of contexts."""
        steps = steps_of_epochs(contexts, self.contexts_per_step, self.epochs)
        return min(steps, self.max_steps) if self.max_steps is not None else steps


class VerifierSettings(BaseModel):
    """Training of a verifier; defaults are those of muCode's code."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    learning_rate: float = Field(1e-6, gt=0, description="AdamW's learning rate, constant (code: 1e-6).")
    pairs: int = Field(32, gt=0, description="Pairs of a correct and an incorrect program a problem (code: 32).")
    passes: int = Field(2, gt=0, description="Passes over a step's pairs (code: 2, over all pairs so far).")
    problems_per_update: int = Field(2, gt=0, description="Problems an optimiser step (code: 64 pairs, thus 2).")


class WarmStartSettings(BaseModel):
    """Supervised fine-tuning on reference solutions before collection."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    epochs: float = Field(2.0, gt=0, description="Passes over the problems that have a solution.")
    batch: int = Field(16, gt=0, description="Solutions an optimiser step.")
    learning_rate: float = Field(2e-5, gt=0, description="Peak learning rate, linear warm-up then linear decay.")
    warm_up_share: float = Field(0.1, ge=0, le=1, description="Share of the steps that warm up.")
    max_tokens: int = Field(1024, gt=0, description="Longer prompt + solution pairs are left out.")
    micro_batch_tokens: int = Field(8192, gt=0, description="Padded tokens held at once.")
    seed: int = Field(0, description="Seed of the order.")
