"""Every shipped recipe loads; the paper's recipes carry the paper's numbers; mistakes are named."""

from pathlib import Path

import pytest
import yaml

from smalt.comparison.plan import Wishes, load_plan
from smalt.lab.demo import DEMO_RECIPE
from smalt.settings import load_recipe
from smalt.yaml_settings import SettingsError, dump_settings

RECIPES = Path(__file__).parents[1] / "recipes"
SMALL = RECIPES / "cobalt-smollm2-135m.yaml"
PAPER = (RECIPES / "cobalt-qwen3-8b.yaml", RECIPES / "cobalt-r1-distill-8b.yaml")

# Cobalt, arXiv 2602.03806, and its code (github OSU-NLP-Group/cobalt).
PAPER_SETTINGS = {
    # offline trajectories
    "collection.samples": 16,
    "collection.turns": 3,
    "collection.sampling.temperature": 0.6,
    "collection.sampling.top_p": 0.95,
    "collection.sampling.max_new_tokens": 6144,
    "collection.stops_at_public_pass": False,
    # dialogue
    "dialogue.history_limit": 6000,
    "dialogue.max_failing_tests": 1,
    "dialogue.is_thinking_model": True,
    "grader.limits.cpu_seconds": 4.0,
    "grader.limits.memory_mb": 1024,
    # contexts
    "contexts.skip_problems_solved_at_once": True,
    "contexts.emit_bare_problem": True,
    "contexts.require_spread": True,
    "contexts.require_solved": True,
    "contexts.max_trajectories": 4,
    "contexts.max_attempts": 3,
    "contexts.max_prompt_tokens": 10_000,
    "contexts.stop_after_two_public_passes": True,
    "contexts.nothing_left": "first_and_third_pass",
    # reward
    "cobalt.reward.all_pass_reward": 1.0,
    "cobalt.reward.most_pass_reward": 0.2,
    "cobalt.reward.some_pass_reward": 0.0,
    "cobalt.reward.none_pass_reward": -0.1,
    "cobalt.reward.no_code_reward": -1.0,
    "cobalt.reward.malformed_reward": -0.9,
    "cobalt.reward.improvement_scale": 0.1,
    "cobalt.reward.thinking_tokens_limit": 4096,
    "cobalt.reward.answer_tokens_limit": 2048,
    "cobalt.reward.trailing_tokens_limit": 512,
    # optimisation
    "cobalt.group_size": 16,
    "training.epochs": 2,
    "training.max_steps": None,
    "training.contexts_per_step": 128,
    "training.sampling.temperature": 1.0,
    "training.sampling.top_p": 1.0,
    "training.sampling.max_new_tokens": 6144,
    "training.optimiser.learning_rate": 1e-6,
    "training.optimiser.warm_up_steps": 0,
    "training.optimiser.weight_decay": 0.01,
    "training.optimiser.gradient_clip": 1.0,
    "training.optimiser.groups_per_update": 64,
    "training.loss.clip_low": 0.2,
    "training.loss.clip_high": 0.4,
    "training.loss.kl_coefficient": 1e-4,
    "training.validate_every": 10,
    "training.validation_sampling.temperature": 0.6,
    "training.validation_sampling.top_p": 0.95,
    "training.checkpoint_every": 10,
    # evaluation
    "evaluation.samples": 16,
    "evaluation.turns": 8,
    "evaluation.sampling.temperature": 0.6,
    "evaluation.sampling.top_p": 0.95,
    "evaluation.sampling.max_new_tokens": 6144,
    "evaluation.stops_at_public_pass": False,
    # no supervised start; float32, because bfloat16 rounds updates of this size away
    "warm_start": None,
    "model.dtype": "float32",
    "model.device": "cuda",
}

MURPHY = {
    RECIPES / "murphy-qwen3-1.7b.yaml": "Qwen/Qwen3-1.7B",
    RECIPES / "murphy-qwen3-4b.yaml": "Qwen/Qwen3-4B",
    RECIPES / "murphy-olmo2-7b.yaml": "allenai/OLMo-2-1124-7B-Instruct",
}
# MURPHY, arXiv 2511.07833, as far as it is known; second-hand numbers are marked in the recipes.
MURPHY_SETTINGS = {
    "method": "murphy",
    "problems.train.format": "kodcode",
    "problems.train.limit": 1000,
    "murphy.group_size": 8,
    "murphy.turns": 2,
    "murphy.revises": "unsolved",
    "murphy.reward": "pass_rate",
    "murphy.gamma": 0.9,
    "murphy.group_budget": None,
    "murphy.member_budget": None,
    "training.loss.aggregation": "turns",
    "evaluation.turns": 5,
    "evaluation.stops_at_public_pass": True,
    "model.dtype": "float32",
}


def setting(settings, dotted):
    for name in dotted.split("."):
        settings = getattr(settings, name)
    return settings


COMPARISONS = sorted(RECIPES.glob("compare-*.yaml"))
ALONE = [path for path in sorted(RECIPES.glob("*.yaml")) if path not in COMPARISONS]


@pytest.mark.parametrize("path", [*ALONE, DEMO_RECIPE], ids=lambda path: path.name)
def test_recipe_loads_and_says_the_same_when_dumped(path, tmp_path):
    settings = load_recipe(path)
    copy = tmp_path / "copy.yaml"
    copy.write_text(dump_settings(settings), encoding="utf-8")
    assert load_recipe(copy) == settings


@pytest.mark.parametrize("path", COMPARISONS, ids=lambda path: path.name)
def test_comparison_loads(path):
    assert load_plan(path, Wishes()).names


def test_folder_holds_the_recipes_named_here():
    assert {SMALL, *PAPER, *MURPHY} <= set(RECIPES.glob("*.yaml"))


@pytest.mark.parametrize("dotted", PAPER_SETTINGS)
@pytest.mark.parametrize("path", PAPER, ids=lambda path: path.name)
def test_paper_recipe_carries_the_papers_number(paper_settings, path, dotted):
    assert setting(paper_settings[path], dotted) == PAPER_SETTINGS[dotted]


@pytest.fixture(scope="module")
def paper_settings():
    return {path: load_recipe(path) for path in PAPER}


def test_paper_recipes_differ_in_model_and_template_only(paper_settings):
    qwen, r1 = (paper_settings[path].model_dump() for path in PAPER)
    assert (qwen["model"].pop("path"), r1["model"].pop("path")) == (
        "Qwen/Qwen3-8B",
        "deepseek-ai/DeepSeek-R1-Distill-Llama-8B",
    )
    assert qwen["dialogue"].pop("template_options") == {"enable_thinking": True}
    assert r1["dialogue"].pop("template_options") == {}
    assert qwen == r1


@pytest.mark.parametrize("path", MURPHY, ids=lambda path: path.name)
def test_murphys_recipes_carry_what_is_known_of_its_set_up(path):
    settings = load_recipe(path)
    assert settings.model.path == MURPHY[path]
    for dotted, value in MURPHY_SETTINGS.items():
        assert setting(settings, dotted) == value, dotted


def test_murphys_recipes_mark_where_each_number_comes_from():
    for path in MURPHY:
        text = path.read_text(encoding="utf-8")
        assert all(f"[{mark}]" in text for mark in ("paper", "second", "ours"))


def test_small_recipe_trains_and_evaluates_on_different_splits():
    settings = load_recipe(SMALL)
    assert (settings.problems.train.split, settings.problems.evaluation.split) == ("train", "test")
    assert settings.evaluation.turns == settings.contexts.max_attempts + 1


def test_set_overrides_fields_with_yaml_values():
    settings = load_recipe(
        SMALL,
        [
            "problems.train.path=elsewhere/mbpp.jsonl",
            "problems.evaluation.limit=7",
            "training.loss.kl_coefficient=0",
            "warm_start=null",
            "dialogue.template_options={enable_thinking: false}",
        ],
    )
    assert settings.problems.train.path == "elsewhere/mbpp.jsonl"
    assert settings.problems.evaluation.limit == 7
    assert settings.training.loss.kl_coefficient == 0
    assert settings.warm_start is None
    assert settings.dialogue.template_options == {"enable_thinking": False}
    assert settings.problems.evaluation.path == load_recipe(SMALL).problems.evaluation.path


def test_set_makes_a_section_that_the_recipe_lacks():
    assert load_recipe(PAPER[0]).warm_start is None
    assert load_recipe(PAPER[0], ["warm_start.epochs=1"]).warm_start.epochs == 1


@pytest.mark.parametrize(
    ("override", "named"),
    [
        ("training.sampling.top_p=0.95", "training.sampling"),
        ("training.sampling.temperature=0", "training.sampling"),
        ("contexts.max_attempts=4", "contexts.max_attempts is 4 but collection.turns is only 2"),
        ("training.validate_every=5", "problems.validation is missing"),
        ("training.optimiser.learning_rte=1", "training.optimiser.learning_rte: unknown field"),
        ("trainig.epochs=1", "trainig: unknown field"),
        ("training.epochs=many", "training.epochs:"),
        ("training.contexts_per_step=1.5", "training.contexts_per_step:"),
        ("cobalt.group_size=1", "cobalt.group_size:"),
        ("model.dtype=float16", "model.dtype:"),
        ("model=null", "model:"),
        ("method=ppo", "method:"),
        ("dialogue.wording.task=Solve it.", "dialogue.wording.task:"),
        ("evaluation", "write it as section.field=value"),
        ("evaluation.turns=[1", "not valid YAML"),
    ],
)
def test_bad_setting_is_refused_by_name(override, named):
    with pytest.raises(SettingsError) as refused:
        load_recipe(SMALL, [override])
    assert named in str(refused.value)


@pytest.mark.parametrize("section", ["model", "problems"])
def test_missing_section_is_named(section, tmp_path):
    raw = yaml.safe_load(SMALL.read_text(encoding="utf-8"))
    del raw[section]
    path = tmp_path / "recipe.yaml"
    path.write_text(yaml.safe_dump(raw), encoding="utf-8")
    with pytest.raises(SettingsError, match=f"{section}: missing"):
        load_recipe(path)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("model: [", "not valid YAML"),
        ("- model", "a recipe is a mapping of sections"),
        ("", "a recipe is a mapping of sections"),
    ],
)
def test_file_that_is_no_recipe_is_refused(text, named, tmp_path):
    path = tmp_path / "recipe.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError, match=named):
        load_recipe(path)


def test_file_that_is_absent_is_named(tmp_path):
    with pytest.raises(SettingsError, match=r"absent\.yaml: cannot be read"):
        load_recipe(tmp_path / "absent.yaml")
