"""Which methods and variants do not go together, and why: what a recipe is refused for when it loads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from smalt.methods.method import Method
from smalt.training.settings import TrainingSettings


def complaints(method: Method[Any], training: TrainingSettings) -> Iterator[str]:
    """Every reason to refuse, each naming the field and what to do."""
    yield from _about_advantages(method, training)
    yield from _about_loss(method, training)
    yield from _about_length(method, training)
    yield from _about_sampling(method, training)


def _about_advantages(method: Method[Any], training: TrainingSettings) -> Iterator[str]:
    chosen = training.advantages
    name = type(method).__name__
    if method.has_own_advantages and (chosen.estimator != "grpo" or chosen.keep_members is not None):
        yield f"training.advantages: {name} computes advantages by its own formula; leave the section out"
    if chosen.estimator == "gdpo" and not method.has_several_rewards:
        yield f"training.advantages.estimator: gdpo normalises several rewards one by one, and {name} gives one only"
    if chosen.keep_members is not None and chosen.keep_members >= method.shape.branching[0]:
        yield (
            f"training.advantages.keep_members is {chosen.keep_members} of {method.shape.branching[0]} members: "
            "nothing would be left out"
        )
    if chosen.keep_members is not None and getattr(method.settings, "member_budget", None) is not None:
        yield "training.advantages.keep_members and member_budget are the same pruning: set one of them"


def _about_loss(method: Method[Any], training: TrainingSettings) -> Iterator[str]:
    is_regression, is_value = training.loss.objective == "oapl", training.advantages.estimator == "oapl"
    if is_regression != is_value:
        yield "training: loss.objective oapl and advantages.estimator oapl are two halves of one method: set both"
    if (training.loss.objective == "likelihood") != method.imitates:
        yield (
            f"training.loss.objective {training.loss.objective!r} does not go with {type(method).__name__}: likelihood "
            "is for methods that name programs to imitate (mucode), which have nothing to weigh by another"
        )
    if training.loss.aggregation == "turns" and len(method.shape.branching) == 1:
        yield (
            "training.loss.aggregation: turns are averaged where trees have several, and "
            f"{type(method).__name__} samples one a step; use tokens"
        )


def _about_length(method: Method[Any], training: TrainingSettings) -> Iterator[str]:
    if training.overlong is None:
        return
    if method.imitates:
        yield f"training.overlong: {type(method).__name__} has no reward to take from; leave it out"
    if method.has_own_length_rule:
        yield f"training.overlong: {type(method).__name__}'s reward has rules on length already; leave it out"
    if training.overlong.max_tokens > training.sampling.max_new_tokens:
        yield (
            f"training.overlong.max_tokens is {training.overlong.max_tokens}, but training.sampling.max_new_tokens "
            f"ends every completion at {training.sampling.max_new_tokens}"
        )


def _about_sampling(method: Method[Any], training: TrainingSettings) -> Iterator[str]:
    persists = training.never_give_up is not None
    if persists != (training.advantages.estimator == "ngu"):
        yield "training: never_give_up and advantages.estimator ngu are two halves of one method: set both"
    if persists and len(method.shape.branching) > 1:
        yield "training.never_give_up keeps completions of the first prompt only; use a method of one turn a step"
    if (method.learns_values or method.imitates) and training.dynamic_sampling_rounds > 1:
        yield f"training.dynamic_sampling_rounds: every tree of {type(method).__name__} trains; leave it at 1"
    if training.steps_ahead and training.dynamic_sampling_rounds > 1:
        yield (
            "training.steps_ahead: dynamic_sampling_rounds asks credit whether to sample more, and credit waits for "
            "the update before; set one of them"
        )
    if training.steps_ahead and training.checkpoint_every == 1:
        yield "training.steps_ahead: no step behind a checkpoint is sampled ahead; set checkpoint_every above 1"
    if persists and training.dynamic_sampling_rounds > 1:
        yield "training: never_give_up returns the prompts that dynamic_sampling_rounds passes over: set one of them"
