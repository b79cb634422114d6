"""Combinations that make no sense are refused when the recipe loads, with the field and the reason."""

import pytest

from smalt.lab.demo import DEMO_RECIPE
from smalt.settings import load_recipe
from smalt.yaml_settings import SettingsError

SEQUENCES = "training.loss.aggregation=sequences"
OAPL = ("training.loss.objective=oapl", SEQUENCES)


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        (("method=verpo_mt", "training.advantages.estimator=rloo"), "VeRPOMT computes advantages by its own formula"),
        (("method=verpo_mt", "training.advantages.keep_members=2"), "VeRPOMT computes advantages by its own formula"),
        (("method=murphy", "training.advantages.estimator=gdpo"), "Murphy gives one only"),
        (("method=grpo_mt", "training.advantages.estimator=gdpo"), "GRPOMT gives one only"),
        (("training.advantages.keep_members=8",), "keep_members is 8 of 8 members"),
        (("method=murphy", "murphy.member_budget=2", "training.advantages.keep_members=3"), "the same pruning"),
        (OAPL, "set both"),
        (("training.advantages.estimator=oapl",), "set both"),
        (("training.loss.aggregation=turns",), "Cobalt samples one a step; use tokens"),
        (("training.overlong={max_tokens: 60, cache_tokens: 20}",), "Cobalt's reward has rules on length already"),
        (("method=grpo", "training.overlong={max_tokens: 200, cache_tokens: 20}"), "ends every completion at 128"),
        (("method=grpo", "training.overlong={max_tokens: 10, cache_tokens: 20}"), "more than max_tokens"),
        (("training.loss.objective=gspo",), "set aggregation to 'sequences'"),
        (("training.loss.objective=gspo", SEQUENCES), "3e-4 and 4e-4"),
        (("training.loss.aggregation=constant",), "constant_length need each other"),
        (("training.loss.constant_length=72",), "constant_length need each other"),
        (("training.never_give_up={}",), "two halves of one method"),
        (("training.advantages.estimator=ngu",), "two halves of one method"),
        (("method=murphy", "training.never_give_up={}", "training.advantages.estimator=ngu"), "first prompt only"),
        (
            (
                "training.never_give_up={}",
                "training.advantages.estimator=ngu",
                "training.dynamic_sampling_rounds=2",
            ),
            "set one of them",
        ),
        (
            ("method=grpo", "training.steps_ahead=1", "training.dynamic_sampling_rounds=2"),
            "credit waits for the update",
        ),
        (("training.steps_ahead=1", "training.checkpoint_every=1"), "set checkpoint_every above 1"),
        (("training.steps_ahead=2",), "training.steps_ahead"),
        (("method=rlef", "training.dynamic_sampling_rounds=2"), "every tree of RLEF trains"),
        (("method=rlef", "training.advantages.estimator=rloo"), "RLEF computes advantages by its own formula"),
        (("method=murphy", "murphy.turns=1"), "murphy.turns"),
        (("method=grpo", "grpo.turns=2"), "grpo.turns: unknown field"),
        (("method=grpo", "murphy.turns=1"), "murphy.turns"),
        (("method=nothing:Here",), "method: 'nothing:Here' cannot be imported"),
    ],
)
def test_nonsense_is_refused(overrides, reason):
    with pytest.raises(SettingsError) as refused:
        load_recipe(DEMO_RECIPE, overrides)
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    "overrides",
    [
        ("method=grpo", "training.advantages.estimator=gdpo", "training.overlong={max_tokens: 128, cache_tokens: 20}"),
        ("method=murphy", "training.advantages.estimator=rloo", "murphy.credit=mers"),
        ("method=grpo_mt", "training.loss.aggregation=turns"),
        (*OAPL, "training.advantages.estimator=oapl"),
        ("training.loss.objective=gspo", SEQUENCES, "training.loss.clip_low=3e-4", "training.loss.clip_high=4e-4"),
        ("training.loss.objective=cispo", "training.advantages.estimator=reinforce_plus_plus"),
        ("training.loss.aggregation=constant", "training.loss.constant_length=72"),
        ("method=grpo", "training.dynamic_sampling_rounds=3"),
        ("method=grpo", "training.never_give_up={probability: 0.3}", "training.advantages.estimator=ngu"),
        ("method=murphy", "training.steps_ahead=1"),
        ("method=verpo_mt", "collection.turns=1"),  # contexts do not concern it
    ],
)
def test_sense_is_not(overrides):
    settings = load_recipe(DEMO_RECIPE, overrides)
    assert settings == load_recipe(DEMO_RECIPE, overrides)


def test_a_methods_own_default_gives_way_to_the_recipe():
    assert load_recipe(DEMO_RECIPE, ["method=murphy"]).training.loss.aggregation == "turns"
    chosen = load_recipe(DEMO_RECIPE, ["method=murphy", "training.loss.aggregation=sequences"])
    assert chosen.training.loss.aggregation == "sequences"
    assert load_recipe(DEMO_RECIPE).training.loss.aggregation == "tokens"
