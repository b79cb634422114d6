"""What is compared: a base recipe, a list of methods with their settings, a budget, a number of seeds.

base: demo                     # a recipe, beside this file or from the working directory; `demo` is the lab's
budget: {sampled_tokens: 200000}
seeds: 5
common:                        # changes of the base for every method
  evaluation: {samples: 2}
methods:                       # changes for one method; `method:` where the name is not the method's own
  cobalt: {cobalt: {group_size: 8}}
  murphy-mars: {method: murphy, murphy: {credit: mars}}
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from smalt.lab.demo import DEMO_RECIPE
from smalt.methods.catalogue import METHODS
from smalt.settings import RunSettings, recipe_settings
from smalt.training.settings import TrainingBudget
from smalt.yaml_settings import SettingsError, plain_errors, read_yaml

_NO_BOUND = 1e9
"""Epochs: the budget alone ends a run."""
_BOUNDS = ("epochs", "max_steps", "budget")

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
Sections = dict[str, Any]


class ComparisonSettings(BaseModel):
    """A comparison file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    base: str = Field("demo", description="The recipe that all runs begin with: a file, or 'demo'.")
    budget: TrainingBudget = Field(description="What training may cost, for each run.")
    seeds: int = Field(5, gt=0, description="Runs of each method: seeds 0, 1, ..")
    common: Sections = Field(default_factory=dict, description="Sections that change the base for every method.")
    methods: dict[Name, Sections | None] = Field(
        min_length=1, description="For each method, under a name that is also its folder's, sections of its own."
    )


@dataclass(frozen=True)
class Plan:
    """A comparison, checked: every run's settings are known and fit together."""

    budget: TrainingBudget
    seeds: int
    runs: Mapping[tuple[str, int], RunSettings]
    """Settings by method's name and seed."""

    @property
    def names(self) -> list[str]:
        """The methods' names, in the order given."""
        return list(dict.fromkeys(name for name, _ in self.runs))

    def __reduce__(self) -> tuple[Any, ...]:
        """Cross to another process as plain data: classes of settings are made at run time and cannot be pickled."""
        plain = {key: settings.model_dump(mode="json") for key, settings in self.runs.items()}
        return _plan_of_plain_settings, (self.budget, self.seeds, plain)


def _plan_of_plain_settings(budget: TrainingBudget, seeds: int, plain: Mapping[tuple[str, int], Sections]) -> Plan:
    return Plan(budget, seeds, {key: recipe_settings(raw, f"{key[0]}, seed {key[1]}") for key, raw in plain.items()})


@dataclass(frozen=True)
class Wishes:
    """What the command line says beside the file."""

    methods: Sequence[str] = ()
    """Names of the file's methods, or of the catalogue's where there is no comparison file."""
    seeds: int | None = None
    budget: Mapping[str, float] = field(default_factory=dict)
    """Amount by the budget's field, in place of the file's."""
    overrides: Sequence[str] = ()
    """`a.b=c`, for every run."""


def load_plan(file: Path | None, wishes: Wishes) -> Plan:
    """Read a comparison file, or make a comparison of a plain recipe (the demo's without one) and the wishes.

    Raises `SettingsError` naming the file, the method and the field.
    """
    raw = read_yaml(file) if file is not None else {}
    origin = str(file or "compare")
    if "methods" not in raw:
        raw = {"base": str(file.resolve()) if file is not None else "demo", "methods": _of_the_catalogue(wishes)}
    if wishes.budget:
        amounts = {"sampled_tokens": None, "seconds": None} | dict(wishes.budget)
        raw["budget"] = (raw.get("budget") or {}) | amounts
    if "budget" not in raw:
        raise SettingsError(f"{origin}: budget: missing; say what each run may cost, with --tokens or --seconds")
    if wishes.seeds is not None:
        raw["seeds"] = wishes.seeds
    try:
        settings = ComparisonSettings.model_validate(raw)
    except ValidationError as error:
        raise SettingsError(plain_errors(error, origin)) from error
    return _checked_plan(settings, _base_recipe(settings.base, file), origin, wishes)


def _of_the_catalogue(wishes: Wishes) -> dict[str, Sections]:
    unknown = [name for name in wishes.methods if name not in METHODS]
    if unknown or not wishes.methods:
        said = f"{unknown[0]!r} is unknown" if unknown else "missing"
        raise SettingsError(
            f"--methods: {said}; give some of {', '.join(METHODS)} with commas, or a comparison file with `methods:`"
        )
    return {name: {} for name in wishes.methods}


def _base_recipe(base: str, file: Path | None) -> Sections:
    if base == "demo":
        return read_yaml(DEMO_RECIPE)
    beside = (file.parent if file is not None else Path()) / base
    return read_yaml(beside if beside.exists() else Path(base))


def _checked_plan(settings: ComparisonSettings, base: Sections, origin: str, wishes: Wishes) -> Plan:
    unknown = [name for name in wishes.methods if name not in settings.methods]
    if unknown:
        raise SettingsError(f"--methods: {unknown[0]!r} is not in {origin}; it has {', '.join(settings.methods)}")
    names = wishes.methods or list(settings.methods)
    _refuse_bounds(settings.common, f"{origin}: common")
    common = merged(base, settings.common)
    runs = {
        (name, seed): _run_settings(name, seed, settings, common, origin, wishes.overrides)
        for seed in range(settings.seeds)
        for name in names
    }
    _refuse_other_exams(runs, origin)
    return Plan(settings.budget, settings.seeds, runs)


def _run_settings(
    name: str, seed: int, settings: ComparisonSettings, common: Sections, origin: str, overrides: Sequence[str]
) -> RunSettings:
    own = settings.methods[name] or {}
    place = f"{origin}: methods.{name}"
    _refuse_bounds(own, place)
    if "method" not in own and name not in METHODS:
        raise SettingsError(f"{place}.method: missing, as {name!r} is no method's name; known are {', '.join(METHODS)}")
    bounds = {"epochs": _NO_BOUND, "max_steps": None, "budget": settings.budget.model_dump()}
    raw = merged(merged(common, {"method": name} | own), {"seed": seed, "training": bounds})
    return recipe_settings(raw, place, overrides)


def _refuse_bounds(sections: Sections, place: str) -> None:
    training = sections.get("training")
    found = [bound for bound in _BOUNDS if isinstance(training, dict) and bound in training]
    if found:
        raise SettingsError(f"{place}.training.{found[0]}: the comparison's budget ends every run; leave it out")
    if "seed" in sections:
        raise SettingsError(f"{place}.seed: runs have the seeds 0, 1, ..; leave it out")


def _refuse_other_exams(runs: Mapping[tuple[str, int], RunSettings], origin: str) -> None:
    """Figures compare only if all are evaluated alike."""
    (first, _), expected = next(iter(runs.items()))
    for (name, _), settings in runs.items():
        if (settings.evaluation, settings.problems.evaluation) != (expected.evaluation, expected.problems.evaluation):
            raise SettingsError(
                f"{origin}: methods.{name}: is evaluated otherwise than {first}: put evaluation and "
                "problems.evaluation under common"
            )


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> Sections:
    """Nested mappings of both; where both say something that is no mapping, `changes` is right."""
    result = copy.deepcopy(dict(base))
    for key, value in changes.items():
        inner = result.get(key)
        if isinstance(inner, dict) and isinstance(value, Mapping):
            result[key] = merged(inner, value)
        else:
            result[key] = copy.deepcopy(value)
    return result
