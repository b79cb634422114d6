import json

import pytest
import torch

from smalt.policy.loading import ModelSettings, load_policy
from smalt.training.checkpoints import CheckpointStore, save_model_atomically


@pytest.fixture
def store(tmp_path):
    return CheckpointStore(tmp_path / "checkpoints")


def optimizer_of(policy):
    return torch.optim.AdamW(policy.model.parameters(), lr=1e-2)


def train(policy, optimizer, seed):
    """One step on a random row."""
    row = torch.randint(0, 640, (1, 12), generator=torch.Generator().manual_seed(seed))
    policy.model(input_ids=row, labels=row).loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def same(left, right):
    found, expected = left.model.state_dict(), right.model.state_dict()
    return found.keys() == expected.keys() and all(torch.equal(found[key], expected[key]) for key in expected)


def load(folder):
    return load_policy(ModelSettings(path=str(folder), device="cpu"))


def test_training_goes_on_bit_for_bit_from_a_checkpoint(store, policy, model_folder):
    optimizer = optimizer_of(policy)
    train(policy, optimizer, 1)
    folder = store.save(1, policy, optimizer)
    train(policy, optimizer, 2)

    resumed = load(model_folder)
    other = optimizer_of(resumed)
    store.restore(folder, resumed, other)
    train(resumed, other, 2)
    assert same(resumed, policy)


def test_a_checkpoint_is_a_model_folder(store, policy, tokenizer):
    train(policy, optimizer_of(policy), 1)
    loaded = load(store.save(3, policy, optimizer_of(policy)))
    assert same(loaded, policy)
    assert loaded.tokenizer.chat_template == tokenizer.chat_template
    assert loaded.tokenizer.encode("[1, 2]") == tokenizer.encode("[1, 2]")


def test_the_newest_ones_are_kept(store, policy):
    optimizer = optimizer_of(policy)
    assert store.newest() is None
    for step in (1, 9, 10, 100):
        store.save(step, policy, optimizer)
    assert sorted(path.name for path in store.folder.iterdir()) == ["step-000010", "step-000100"]
    assert store.newest() == (100, store.folder / "step-000100")
    single = CheckpointStore(store.folder, keep=1)
    single.save(101, policy, optimizer)
    assert [path.name for path in store.folder.iterdir()] == ["step-000101"]


def test_what_a_kill_left_half_written_is_ignored_and_replaced(store, policy):
    optimizer = optimizer_of(policy)
    store.save(1, policy, optimizer)
    half = store.folder / "step-000002.tmp"
    half.mkdir()
    (half / "step.json").write_text(json.dumps({"step": 2}))
    without_state = store.folder / "step-000003"
    without_state.mkdir()
    assert store.newest() == (1, store.folder / "step-000001")
    train(policy, optimizer, 1)
    store.save(2, policy, optimizer)
    assert not half.exists()
    assert store.newest() == (2, store.folder / "step-000002")
    assert same(load(store.folder / "step-000002"), policy)


def test_saving_a_step_again_replaces_it(store, policy):
    optimizer = optimizer_of(policy)
    store.save(1, policy, optimizer)
    train(policy, optimizer, 1)
    assert same(load(store.save(1, policy, optimizer)), policy)


def test_a_full_disk_leaves_the_older_checkpoint(store, policy, monkeypatch):
    optimizer = optimizer_of(policy)
    store.save(1, policy, optimizer)

    def fail(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", fail)
    with pytest.raises(OSError, match="No space"):
        store.save(2, policy, optimizer)
    assert store.newest() == (1, store.folder / "step-000001")


def test_a_model_is_saved_whole_or_not_at_all(policy, tmp_path, monkeypatch):
    target = tmp_path / "final"
    monkeypatch.setattr(policy.tokenizer, "save_pretrained", lambda folder: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        save_model_atomically(target, policy)
    assert not target.exists()
    monkeypatch.undo()
    save_model_atomically(target, policy)
    assert same(load(target), policy)
    assert [path.name for path in tmp_path.iterdir()] == ["final"]
