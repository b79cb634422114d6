import json
import shutil

import pytest

from smalt.policy.loading import ModelLoadError, ModelSettings, load_policy, load_tokenizer, resolve_path


@pytest.fixture
def folder(model_folder, tmp_path):
    """A copy of the model folder to damage."""
    return shutil.copytree(model_folder, tmp_path / "model")


def load(folder, **settings):
    return load_policy(ModelSettings(path=str(folder), device="cpu", **settings))


def edit(path, change):
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(values))


def remove_end_token(folder):
    edit(folder / "tokenizer_config.json", lambda config: config.pop("eos_token"))


def remove_chat_template(folder):
    (folder / "chat_template.jinja").unlink()


def remove_tokenizer(folder):
    for file in folder.glob("tokenizer*"):
        file.unlink()


def remove_weights(folder):
    (folder / "model.safetensors").unlink()


def cut_weights(folder):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])


def test_a_policy_knows_its_context_and_what_ends_a_reply(policy, tokenizer):
    assert policy.context_length == 2048
    assert policy.stop_ids == {tokenizer.eos_token_id}
    assert not policy.model.training
    assert next(policy.model.parameters()).dtype.is_floating_point


def test_every_end_token_of_the_generation_config_ends_a_reply(folder, tokenizer):
    edit(folder / "generation_config.json", lambda config: config.update(eos_token_id=[5, 6]))
    assert load(folder).stop_ids == {5, 6, tokenizer.eos_token_id}


def test_weights_are_held_in_the_type_asked_for(folder):
    import torch

    assert load(folder, dtype="bfloat16").model.dtype is torch.bfloat16
    assert load(folder).model.dtype is torch.float32


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (shutil.rmtree, "does not exist"),
        (remove_tokenizer, "no tokenizer"),
        (remove_chat_template, "no chat template"),
        (remove_end_token, "no end token"),
        (remove_weights, "model.safetensors"),
    ],
)
def test_what_a_folder_lacks_is_named(folder, damage, expected):
    damage(folder)
    with pytest.raises(ModelLoadError, match=expected) as caught:
        load(folder)
    assert str(folder) in str(caught.value)


def test_weights_lie_at_aligned_addresses_wherever_the_file_was_mapped(policy):
    # Kernels add in an order that depends on the address: weights left in the mapped file train to other weights
    # than a copy of them (seen on a CPU without AVX-512).
    assert {weight.data_ptr() % 64 for weight in policy.model.parameters()} == {0}


def test_half_a_weights_file_is_refused_with_the_folder_named(folder):
    cut_weights(folder)
    with pytest.raises(ModelLoadError, match="cannot load"):
        load(folder)


@pytest.mark.parametrize("path", ["./nowhere", "/nowhere/at/all", "~/nowhere-at-all", "nowhere"])
def test_a_missing_folder_is_not_looked_up_on_the_hub(path):
    with pytest.raises(ModelLoadError, match="does not exist"):
        resolve_path(path)


def test_a_hub_name_stays_as_it_is():
    assert resolve_path("owner/model-that-is-no-folder") == "owner/model-that-is-no-folder"


def test_the_tokenizer_loads_by_itself(model_folder, tokenizer):
    assert load_tokenizer(str(model_folder)).chat_template == tokenizer.chat_template


def test_an_accelerator_that_is_not_there_is_said(model_folder, monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ModelLoadError, match="use device cpu"):
        load_policy(ModelSettings(path=str(model_folder), device="cuda"))
    assert load_policy(ModelSettings(path=str(model_folder))).device.type == "cpu"
