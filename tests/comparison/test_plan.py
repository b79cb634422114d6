"""Comparison files: what every run gets, and what is refused before any work is done."""

import pickle
from pathlib import Path

import pytest
import yaml

from smalt.comparison.plan import Wishes, load_plan, merged
from smalt.lab.demo import DEMO_RECIPE
from smalt.settings import load_recipe
from smalt.yaml_settings import SettingsError

LAB = Path(__file__).parents[2] / "recipes/compare-lab.yaml"
TOKENS = {"sampled_tokens": 1000}


def file_of(folder, **changes):
    raw = {"budget": TOKENS, "seeds": 2, "methods": {"grpo": None, "murphy-mers": {"method": "murphy"}}} | changes
    path = folder / "comparison.yaml"
    path.write_text(yaml.safe_dump(raw))
    return path


def test_the_lab_comparison_has_the_eight_methods():
    plan = load_plan(LAB, Wishes())
    assert plan.names == [
        "cobalt",
        "murphy-mars",
        "murphy-mers",
        "murphy-no-credit",
        "grpo",
        "grpo-mt",
        "verpo-mt",
        "rlef",
    ]
    credits = [plan.runs[f"murphy-{name}", 0].murphy.credit for name in ("mars", "mers", "no-credit")]
    assert credits == ["mars", "mers", "none"]
    settings = plan.runs["rlef", 4]
    assert (settings.method, settings.seed, settings.training.max_steps) == ("rlef", 4, None)
    assert settings.training.budget.sampled_tokens == 300_000
    assert settings.training.sampling == load_recipe(DEMO_RECIPE).training.sampling
    assert all(its.problems.validation is None for its in plan.runs.values())


def test_a_plan_crosses_to_another_process_as_it_is():
    plan = load_plan(LAB, Wishes(seeds=1))
    assert pickle.loads(pickle.dumps(plan)) == plan


def test_a_run_is_the_base_with_common_and_own_changes(tmp_path):
    common = {"training": {"contexts_per_step": 4}, "evaluation": {"samples": 1}}
    own = {"method": "murphy", "murphy": {"credit": "mers"}, "training": {"contexts_per_step": 3}}
    plan = load_plan(file_of(tmp_path, common=common, methods={"grpo": {}, "m": own}), Wishes())
    grpo, murphy = plan.runs["grpo", 1], plan.runs["m", 1]
    assert [its.training.contexts_per_step for its in (grpo, murphy)] == [4, 3]
    assert murphy.murphy.credit == "mers"
    assert murphy.training.loss.aggregation == "turns"  # a default of the method's
    assert murphy.evaluation.turns == load_recipe(DEMO_RECIPE).evaluation.turns
    assert list(plan.runs) == [("grpo", 0), ("m", 0), ("grpo", 1), ("m", 1)]


def test_a_base_lies_beside_the_file(tmp_path):
    raw = yaml.safe_load(DEMO_RECIPE.read_text()) | {"seed": 9}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(raw | {"grader": {"workers": 7}}))
    plan = load_plan(file_of(tmp_path, base="mine.yaml"), Wishes())
    assert plan.runs["grpo", 0].grader.workers == 7
    assert plan.runs["grpo", 0].seed == 0


def test_methods_of_the_catalogue_on_any_recipe(tmp_path):
    wishes = Wishes(methods=("rlef", "grpo"), seeds=3, budget={"seconds": 5}, overrides=("grader.workers=3",))
    plan = load_plan(DEMO_RECIPE, wishes)
    assert plan.names == ["rlef", "grpo"]
    assert plan.budget.seconds == 5
    assert len(plan.runs) == 6
    assert plan.runs["rlef", 2].grader.workers == 3
    assert load_plan(None, wishes).runs == plan.runs


def test_the_command_line_narrows_and_changes_a_file(tmp_path):
    path = file_of(tmp_path, budget=TOKENS | {"includes_collection": False})
    plan = load_plan(path, Wishes(methods=("murphy-mers",), seeds=1, budget={"seconds": 2}))
    assert list(plan.runs) == [("murphy-mers", 0)]
    assert plan.budget.seconds == 2
    assert not plan.budget.includes_collection


@pytest.mark.parametrize(
    ("changes", "wishes", "told"),
    [
        ({"methods": {"mine": {}}}, Wishes(), "methods.mine.method: missing"),
        ({"methods": {"../x": {"method": "grpo"}}}, Wishes(), "methods.../x"),
        ({"methods": {}}, Wishes(), "methods"),
        ({"methods": {"grpo": {"grpo": {"turns": 2}}}}, Wishes(), "methods.grpo: grpo.turns: unknown field"),
        ({"methods": {"grpo": {"training": {"max_steps": 2}}}}, Wishes(), "methods.grpo.training.max_steps"),
        ({"common": {"training": {"epochs": 2}}}, Wishes(), "common.training.epochs"),
        ({"common": {"seed": 2}}, Wishes(), "common.seed"),
        ({"methods": {"grpo": {}, "rlef": {"evaluation": {"turns": 2}}}}, Wishes(), "evaluated otherwise than grpo"),
        ({"budget": {"tokens": 3}}, Wishes(), "budget.tokens: unknown field"),
        ({"budget": None}, Wishes(), "budget"),
        ({}, Wishes(budget={"sampled_tokens": 3, "seconds": 3}), "exactly one of them"),
        ({}, Wishes(methods=("rlef",)), "'rlef' is not in"),
        ({"seed": 3}, Wishes(), "seed: unknown field"),
    ],
)
def test_nonsense_is_refused_by_name(tmp_path, changes, wishes, told):
    with pytest.raises(SettingsError) as refused:
        load_plan(file_of(tmp_path, **changes), wishes)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("wishes", "told"),
    [
        (Wishes(budget=TOKENS), "--methods: missing"),
        (Wishes(methods=("ppo",), budget=TOKENS), "'ppo' is unknown"),
        (Wishes(methods=("grpo",)), "--tokens or --seconds"),
    ],
)
def test_without_a_file_methods_and_budget_are_needed(wishes, told):
    with pytest.raises(SettingsError) as refused:
        load_plan(None, wishes)
    assert told in str(refused.value)


def test_merging_leaves_both_sides_alone():
    base, changes = {"a": {"b": 1, "c": [1]}, "d": 2}, {"a": {"b": {"e": 3}}, "d": {"f": 4}, "g": None}
    both = merged(base, changes)
    assert both == {"a": {"b": {"e": 3}, "c": [1]}, "d": {"f": 4}, "g": None}
    both["a"]["c"].append(2)
    both["d"]["f"] = 5
    assert base == {"a": {"b": 1, "c": [1]}, "d": 2}
    assert changes["d"] == {"f": 4}
