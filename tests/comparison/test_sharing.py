"""What one run has done is taken over by another with the same base, and by no other."""

import json

import pytest

from smalt.comparison.sharing import take_over
from smalt.lab.demo import DEMO_RECIPE
from smalt.settings import load_recipe

SECONDS = {"evaluate_before": 7.5, "collect_trajectories": 3.0, "collect_validation_trajectories": 1.0, "train": 9.0}


def settings(*overrides):
    return load_recipe(DEMO_RECIPE, overrides)


def write(path, text="x"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def donor(tmp_path):
    """A run that has finished everything before training."""
    folder = tmp_path / "donor"
    write(folder / "evaluation/before/summary.json")
    write(folder / "evaluation/before/trajectories/part-00000.parquet", "before")
    write(folder / "trajectories/part-00000.parquet", "collected")
    write(folder / "validation_trajectories/part-00000.parquet", "validation")
    for name in ("trajectories", "validation_trajectories"):
        write(folder / name / "complete.json")
    write(folder / "contexts.parquet")
    write(folder / "stages.json", json.dumps(SECONDS))
    return folder


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "run"
    made.mkdir()
    return made


def test_products_come_with_their_seconds(donor, folder):
    taken = take_over(folder, settings("cobalt.group_size=4"), [(donor, settings())])
    assert taken == ["evaluate_before", "collect_trajectories", "collect_validation_trajectories"]
    assert (folder / "evaluation/before/trajectories/part-00000.parquet").read_text() == "before"
    assert (folder / "trajectories/part-00000.parquet").read_text() == "collected"
    assert not (folder / "contexts.parquet").exists()  # cutting is quick, and its rules may differ
    expected = {name: seconds for name, seconds in SECONDS.items() if name != "train"}
    assert json.loads((folder / "stages.json").read_text()) == expected
    assert not list(folder.rglob("*.tmp"))


def test_a_method_without_a_store_takes_the_evaluation_only(donor, folder):
    assert take_over(folder, settings("method=grpo"), [(donor, settings())]) == ["evaluate_before"]


@pytest.mark.parametrize(
    "override", ["seed=1", "problems.train.limit=9", "dialogue.show_public_tests=true", "model.dtype=bfloat16"]
)
def test_another_base_is_another_product(donor, folder, override):
    assert take_over(folder, settings(override), [(donor, settings())]) == []


def test_a_product_depends_on_its_own_section(donor, folder):
    changed = settings("collection.samples=2", "training.contexts_per_step=3")
    assert take_over(folder, changed, [(donor, settings())]) == ["evaluate_before"]


def test_what_is_not_complete_is_not_taken(donor, folder):
    (donor / "trajectories/complete.json").unlink()
    (donor / "evaluation/before/summary.json").unlink()
    assert take_over(folder, settings(), [(donor, settings())]) == ["collect_validation_trajectories"]


def test_what_the_run_has_begun_stays(donor, folder):
    write(folder / "trajectories/part-00000.parquet", "mine")
    write(folder / "stages.json", json.dumps({"collect_trajectories": 1.0}))
    assert "collect_trajectories" not in take_over(folder, settings(), [(donor, settings())])
    assert (folder / "trajectories/part-00000.parquet").read_text() == "mine"
    assert json.loads((folder / "stages.json").read_text())["collect_trajectories"] == 1.0


def test_a_run_does_not_take_from_itself(donor):
    assert take_over(donor, settings(), [(donor, settings())]) == []


def test_a_copy_that_was_killed_is_made_anew(donor, folder):
    write(folder / "evaluation/before.tmp/half")
    assert "evaluate_before" in take_over(folder, settings(), [(donor, settings())])
    assert not (folder / "evaluation/before/half").exists()
