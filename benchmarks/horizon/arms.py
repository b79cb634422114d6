"""The runs that are compared: each method at each horizon, with the settings that a recipe would have.

A horizon T is the last turn that training sees: the most programs in one of Cobalt's contexts, the most turns of
GRPO-MT's dialogues, the levels of MURPHY's trees. Trees of one turn are what GRPO grows, so GRPO stands for the latter
two at T = 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from smalt.comparison.plan import merged
from smalt.settings import RunSettings, recipe_settings

METHODS = ("cobalt", "grpo_mt", "murphy")
_NO_BOUND = 10**9
"""Steps alone end a run, and nothing is saved before its end."""


@dataclass(frozen=True)
class Arm:
    """One method at one horizon."""

    method: str
    turns: int


@dataclass(frozen=True)
class Sizes:
    """How much of everything; all methods have the same but for MURPHY's group, whose trees grow with a power of it."""

    group: int
    """Cobalt's completions a context and GRPO-MT's dialogues a problem."""
    murphy_group: int
    examples: int
    """Trees a step."""
    steps: int
    """Counted steps of a run; one more goes before, as a warm-up."""
    problems: int
    samples: int
    """Dialogues that Cobalt stores of each problem."""


def settings_of(
    arm: Arm, sizes: Sizes, base: Mapping[str, Any], seed: int, overrides: Sequence[str] = ()
) -> RunSettings:
    """The settings of a run: the recipe `base`, without warm start and validation, and the arm's own choices.

    Raises `SettingsError` where they do not fit together.
    """
    sections: dict[str, Any] = {
        "seed": seed,
        "warm_start": None,
        "problems": {"train": {"limit": sizes.problems}, "validation": None},
        "collection": {"samples": sizes.samples, "turns": arm.turns},
        "contexts": {"max_attempts": arm.turns},
        "training": {
            "epochs": _NO_BOUND,
            "max_steps": 1 + sizes.steps,
            "contexts_per_step": sizes.examples,
            "optimiser": {"groups_per_update": sizes.examples},
            "validate_every": 0,
            "checkpoint_every": _NO_BOUND,
            "keep_checkpoints": 1,
        },
    }
    raw = merged(merged(base, sections), _method(arm, sizes))
    return recipe_settings(raw, f"{arm.method} at {arm.turns} turns", overrides)


def _method(arm: Arm, sizes: Sizes) -> dict[str, Any]:
    group = sizes.murphy_group if arm.method == "murphy" else sizes.group
    if arm.method == "cobalt":
        return {"method": "cobalt", "cobalt": {"group_size": group}}
    if arm.turns == 1:
        return {"method": "grpo", "grpo": {"group_size": group}}
    return {"method": arm.method, arm.method: {"group_size": group, "turns": arm.turns}}
