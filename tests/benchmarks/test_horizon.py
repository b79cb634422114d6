"""The benchmark of cost against horizon: its arms are sound runs, its page says what was measured."""

import pytest
import yaml
from click.testing import CliRunner

from benchmarks.horizon.__main__ import main
from benchmarks.horizon.arms import METHODS, Arm, Sizes, settings_of
from benchmarks.horizon.measuring import Collection, Cost, cost_of
from benchmarks.horizon.page import page
from smalt.lab.demo import DEMO_RECIPE
from smalt.problems.native import write_native
from smalt.yaml_settings import read_yaml
from tests.conftest import drop_first
from tests.scripted import WORDING

SIZES = Sizes(group=3, murphy_group=2, examples=2, steps=2, problems=4, samples=2)
SHORT = {"temperature": 1.0, "max_new_tokens": 24}


@pytest.fixture(scope="module")
def base(schooled_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("base")
    write_native(folder / "problems.jsonl", [drop_first(name) for name in "abcd"])
    source = {"path": str(folder / "problems.jsonl")}
    recipe = {
        "model": {"path": str(schooled_folder), "device": "cpu"},
        "problems": {"train": source, "evaluation": source},
        "dialogue": {"wording": WORDING.model_dump()},
        "grader": {"workers": 1},
        "collection": {"sampling": SHORT},
        "training": {"sampling": SHORT, "loss": {"kl_coefficient": 0}},
    }
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    return folder / "recipe.yaml"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("turns", [1, 3, 8])
def test_an_arm_trains_up_to_its_horizon(method, turns):
    settings = settings_of(Arm(method, turns), SIZES, read_yaml(DEMO_RECIPE), seed=1)
    assert settings.training_turns == turns
    assert settings.make_method().shape.branching[0] == (2 if method == "murphy" else 3)
    assert (settings.seed, settings.training.max_steps, settings.problems.train.limit) == (1, 3, 4)


def test_costs_are_an_example_s_and_leave_the_warm_up_out(base):
    chains = cost_of(settings_of(Arm("grpo_mt", 2), SIZES, read_yaml(base), seed=0))
    assert 3 <= chains.programs <= 6
    assert chains.programs_trained <= chains.programs
    assert chains.total == sum(chains.seconds.values()) > 0
    assert chains.row_tokens > chains.prompt_tokens > 0
    assert chains.collection is None


def test_a_small_run_makes_a_page(base, tmp_path):
    sizes = ["--group", "2", "--examples", "2", "--steps", "1", "--rounds", "1", "--problems", "4", "--samples", "2"]
    arms = ["--methods", "cobalt,murphy", "--turns", "1,2"]
    ran = CliRunner().invoke(main, ["--base", str(base), *arms, *sizes, "--out", str(tmp_path)])
    assert ran.exit_code == 0, ran.output
    text = (tmp_path / "horizon.md").read_text()
    assert text.count("| 1 |") == text.count("| 2 |") == 3
    assert "s an example with its share" in text


def cost(seconds, prompt_tokens, collection=None):
    return Cost({"sampling": seconds, "grading": 0.0, "training": 0.0}, 4.0, 2.0, 40.0, prompt_tokens, collection)


@pytest.mark.parametrize(("late", "verdict"), [(2.0, "holds."), (4.0, "**does not hold**.")])
def test_the_page_judges_cobalt_s_growth_by_its_tokens(late, verdict):
    stored = Collection(30.0, 10, 1.5)
    costs = {Arm("cobalt", 8): [cost(late, 90, stored)], Arm("cobalt", 1): [cost(1.0, 40, stored)]}
    text = page(costs, {"group": 4}, {"torch": "2"}, uses=2)
    assert "| 8 | 4.0 | 2.0 | 40 | 90 |" in text
    # 30 s for 10 contexts, each used twice.
    assert "| 1 | 10 | 1.50 | 30.0 | 3.000 | 2.500 |" in text
    assert f"an example takes {late:.2f} times as long; a program with its prompt has 2.00 times the tokens" in text
    assert verdict in text


def test_an_unknown_method_is_refused():
    ran = CliRunner().invoke(main, ["--methods", "cobalt,ppo"])
    assert ran.exit_code == 2
    assert "'ppo' is none of cobalt, grpo_mt, murphy" in ran.output
