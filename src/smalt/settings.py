"""A run's settings: one YAML recipe, checked as a whole when it loads.

Each concern's settings live beside its code; this file puts them together.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from smalt.dialogue.wording import Wording
from smalt.grading.policy import GradingPolicy
from smalt.lab.demo import DEMO_RECIPE
from smalt.methods.catalogue import METHODS, find_method, section_of
from smalt.methods.compatibility import complaints
from smalt.methods.method import Method, MethodSettings, MethodTools
from smalt.policy.loading import ModelSettings
from smalt.policy.lora_settings import TrainedModelSettings
from smalt.policy.sampling import SamplerSettings
from smalt.problems.problem import Limits
from smalt.problems.sources import ProblemSource
from smalt.rollouts.collection import CollectionSettings
from smalt.rollouts.contexts import ContextRules
from smalt.training.settings import TrainingSettings, WarmStartSettings
from smalt.yaml_settings import SettingsError, apply_default, apply_override, checked, read_yaml


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ProblemSections(_Section):
    """Which problems train and which evaluate."""

    train: ProblemSource = Field(description="Problems that trajectories are collected on.")
    warm_start: ProblemSource | None = Field(
        None, description="Problems whose solutions the warm start learns; those of train by default."
    )
    validation: ProblemSource | None = Field(None, description="Problems of the validation contexts, if any.")
    evaluation: ProblemSource = Field(description="Held-out problems for Pass@1 by turn.")


class DialogueSettings(_Section):
    """What the model reads, and how its replies are kept."""

    wording: Wording = Field(default_factory=Wording, description="Templates of the messages.")
    reply_prefix: str = Field("", description="Text that opens every reply for the model, part of the prompt.")
    history_limit: int = Field(6000, gt=0, description="Characters of a reply kept in the history (Cobalt: 6,000).")
    max_failing_tests: int = Field(1, gt=0, description="Failing public tests shown (Cobalt: the first).")
    show_public_tests: bool = Field(False, description="Whether the first message shows the public tests.")
    is_thinking_model: bool = Field(False, description="Whether replies think before they answer.")
    template_options: dict[str, Any] = Field(
        default_factory=dict, description="Options of the chat template, e.g. enable_thinking."
    )


class GraderSettings(_Section):
    """How programs are run."""

    workers: int = Field(2, gt=0, description="Sandbox workers.")
    limits: Limits = Field(default_factory=Limits, description="Limits of problems that bring none.")
    policy: GradingPolicy = Field(
        default_factory=GradingPolicy, description="What is run again, what is audited, when a program's time is up."
    )


class RunSettings(_Section):
    """Everything about a run but where it writes.

    A recipe is loaded as a subclass that has one section more, named after the method and of the method's own type.
    """

    method: str = Field("cobalt", description="Training method: a name of methods/catalogue.py, or module:Class.")
    seed: int = Field(0, ge=0, description="Seed of everything random.")
    model: TrainedModelSettings = Field(description="The model to start from, and what of it trains.")
    problems: ProblemSections = Field(description="Problem sets.")
    dialogue: DialogueSettings = Field(default_factory=DialogueSettings, description="Messages and history.")
    sampler: SamplerSettings = Field(default_factory=SamplerSettings, description="The sampler's memory.")
    grader: GraderSettings = Field(default_factory=GraderSettings, description="The sandbox's size.")
    warm_start: WarmStartSettings | None = Field(None, description="Supervised warm start; none by default.")
    collection: CollectionSettings = Field(default_factory=CollectionSettings, description="METHODS 1.2.")
    contexts: ContextRules = Field(default_factory=ContextRules, description="METHODS 1.3.")
    training: TrainingSettings = Field(default_factory=TrainingSettings, description="METHODS 1.5.")
    evaluation: CollectionSettings = Field(
        default_factory=lambda: CollectionSettings(turns=8), description="METHODS 1.6."
    )

    @property
    def method_class(self) -> type[Method[Any]]:
        """The class of the method."""
        return find_method(self.method)

    def make_method(self, tools: MethodTools | None = None) -> Method[Any]:
        """The method with its own settings; without tools, good for asking about its shape."""
        own: MethodSettings = getattr(self, section_of(self.method))
        return self.method_class(own, tools or MethodTools())

    @property
    def training_turns(self) -> int:
        """The last turn that training sees."""
        if self.method_class.starts_at == "context":
            return self.contexts.max_attempts
        return len(self.make_method().shape.branching)

    @model_validator(mode="after")
    def _fits_together(self) -> RunSettings:
        if self.training.sampling.top_p < 1 or self.training.sampling.temperature == 0:
            raise ValueError(
                "training.sampling: the policy gradient needs samples of the whole distribution: "
                "set top_p to 1 and temperature above 0"
            )
        if self.method_class.starts_at == "context" and self.contexts.max_attempts > self.collection.turns:
            raise ValueError(
                f"contexts.max_attempts is {self.contexts.max_attempts} but collection.turns is only "
                f"{self.collection.turns}: no context can hold that many programs"
            )
        if self.training.validate_every and self.problems.validation is None:
            raise ValueError("training.validate_every is set but problems.validation is missing")
        for complaint in complaints(self.make_method(), self.training):
            raise ValueError(complaint)
        return self


class EvaluationRunSettings(_Section):
    """Everything about `smalt eval` but where it writes."""

    seed: int = Field(0, ge=0, description="Seed of the draws.")
    model: ModelSettings = Field(description="The model to evaluate.")
    problems: ProblemSource = Field(description="The problems.")
    dialogue: DialogueSettings = Field(default_factory=DialogueSettings, description="Messages and history.")
    sampler: SamplerSettings = Field(default_factory=SamplerSettings, description="The sampler's memory.")
    grader: GraderSettings = Field(default_factory=GraderSettings, description="The sandbox's size.")
    evaluation: CollectionSettings = Field(description="Turns, samples, temperature.")
    verifier: str | None = Field(None, description="Folder of a verifier that chooses among evaluation.best_of.")

    @model_validator(mode="after")
    def _fits_together(self) -> EvaluationRunSettings:
        if self.verifier is not None and self.evaluation.best_of == 1:
            raise ValueError("verifier: there is nothing to choose from: set evaluation.best_of (--best-of) above 1")
        return self


def load_evaluation(raw: dict[str, Any], recipe: Path | None, overrides: Sequence[str] = ()) -> EvaluationRunSettings:
    """Settings of an evaluation; dialogue, sampler and grader come from a recipe where one is given.

    The lab's model knows the lab's wording only, so it brings its recipe.
    """
    if recipe is None and raw["model"]["path"] == "lab":
        recipe = DEMO_RECIPE
    if recipe is not None:
        whole = read_yaml(recipe)
        raw = raw | {section: whole[section] for section in ("dialogue", "sampler", "grader") if section in whole}
    for override in overrides:
        apply_override(raw, override)
    return checked(EvaluationRunSettings, raw, str(recipe or "settings"))


def load_recipe(path: Path, overrides: Sequence[str] = ()) -> RunSettings:
    """Read a YAML recipe; `overrides` are `a.b=c` with YAML values.

    Raises `SettingsError` naming the file and the field.
    """
    return recipe_settings(read_yaml(path), str(path), overrides)


def recipe_settings(raw: dict[str, Any], origin: str, overrides: Sequence[str] = ()) -> RunSettings:
    """A recipe that was read already, as settings; changes `raw`. `origin` names it in errors."""
    for override in overrides:
        apply_override(raw, override)
    name = raw.get("method", "cobalt")
    try:
        method = find_method(str(name))
    except ValueError as error:
        raise SettingsError(f"{origin}: method: {error}") from error
    for dotted, value in method.defaults.items():
        apply_default(raw, dotted, value)
    others = tuple(other for other in METHODS if other in raw and other != name)
    return checked(_settings_with((str(name), *others)), raw, origin)


@functools.cache
def _settings_with(methods: tuple[str, ...]) -> type[RunSettings]:
    """RunSettings with a section for each of `methods`; sections of methods that do not run are checked too.

    Cached, so that equal recipes are of one class and compare as equal.
    """
    sections: dict[str, Any] = {}
    for name in methods:
        kind = find_method(name).settings_class
        sections[section_of(name)] = (kind, Field(default_factory=kind, description=f"Settings of {name}."))
    made: type[RunSettings] = create_model("RecipeSettings", __base__=RunSettings, **sections)
    return made
