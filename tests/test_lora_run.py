"""Whole runs that train adapters: what they leave, and the same after kill -9."""

import pytest
import torch
import yaml
from safetensors.torch import load_file

from smalt.policy.loading import ModelLoadError, ModelSettings, load_policy
from smalt.settings import load_evaluation, load_recipe
from smalt.yaml_settings import SettingsError
from tests.test_pipeline import execute, kill_in_training_and_start_again, metrics_of, write_recipe

peft = pytest.importorskip("peft")


@pytest.fixture(scope="module")
def recipe(schooled_folder, tmp_path_factory):
    path = write_recipe(tmp_path_factory.mktemp("recipe"), schooled_folder)
    values = yaml.safe_load(path.read_text())
    values["model"]["lora"] = {"rank": 4, "alpha": 16}
    values["training"]["optimiser"]["learning_rate"] = 1e-2
    path.write_text(yaml.safe_dump(values))
    return path


@pytest.fixture(scope="module")
def finished(recipe, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "undisturbed"
    execute(recipe, folder)
    return folder


def load(folder):
    return load_policy(ModelSettings(path=str(folder), device="cpu"))


def state(folder):
    return load(folder).model.state_dict()


def test_a_run_leaves_a_whole_model_and_its_adapters(finished, schooled_folder):
    rows = metrics_of(finished)
    assert not all(row["is_skipped"] for row in rows)
    assert rows[-1]["kl"] > 0
    start, warm, final = map(state, (schooled_folder, finished / "warm_start", finished / "final"))
    assert start.keys() == warm.keys() == final.keys()
    moved = [name for name in final if not torch.equal(final[name], warm[name])]
    assert moved
    assert all("_proj" in name for name in moved)
    base = load(finished / "warm_start").model
    merged = peft.PeftModel.from_pretrained(base, finished / "adapter").merge_and_unload().state_dict()
    assert all((final[name] - merged[name]).abs().max() < 1e-6 for name in final)


def test_checkpoints_hold_adapters_only(finished):
    newest = finished / "checkpoints/step-000006"
    kept, product = (load_file(folder / "adapter_model.safetensors") for folder in (newest, finished / "adapter"))
    assert all(torch.equal(kept[name], product[name]) for name in product)
    assert not (newest / "model.safetensors").exists()


def test_kill_9_during_training_and_the_same_command_again(finished, recipe, tmp_path):
    kill_in_training_and_start_again(recipe, tmp_path)
    for product in ("final/model.safetensors", "adapter/adapter_model.safetensors"):
        assert (tmp_path / product).read_bytes() == (finished / product).read_bytes()


@pytest.mark.parametrize("method", ["rlef", "mucode"])
def test_methods_that_learn_more_than_a_policy(recipe, tmp_path, method):
    chosen = [f"method={method}", f"{method}.group_size=2", f"{method}.turns=2", "training.max_steps=2", "warm_start="]
    execute(recipe, tmp_path, *chosen, "model.dtype=bfloat16")
    assert not all(row["is_skipped"] for row in metrics_of(tmp_path))
    load(tmp_path / "final")
    assert (tmp_path / "adapter/adapter_config.json").exists()
    assert (tmp_path / "checkpoints/step-000002/value_head.safetensors").exists() is (method == "rlef")
    assert (tmp_path / "verifier/model.safetensors").exists() is (method == "mucode")


def test_a_target_that_is_not_there_ends_a_run_before_its_first_stage_is_done(recipe, tmp_path):
    with pytest.raises(ModelLoadError, match="no linear layer is called 'nowhere'"):
        execute(recipe, tmp_path, "model.lora.targets=[nowhere]", "warm_start=")
    assert not (tmp_path / "evaluation").exists()


def test_an_evaluation_trains_nothing(recipe):
    raw = {"model": {"path": "x"}, "problems": {"path": "x"}, "evaluation": {}}
    with pytest.raises(SettingsError, match=r"model\.lora: unknown field"):
        load_evaluation(raw, recipe, ["model.lora.rank=4"])


def test_the_whole_model_trains_unless_a_recipe_says_otherwise(recipe):
    assert load_recipe(recipe, ["model.lora="]).model.lora is None
    assert load_recipe(recipe, ["model.lora={targets: [q_proj, v_proj]}"]).model.lora.rank == 16
