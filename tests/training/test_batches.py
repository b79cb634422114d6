from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smalt.training.batches import batch_of_step, steps_of_epochs

counts = st.integers(1, 30)
sizes = st.integers(1, 40)
seeds = st.integers(0, 5)


def stream(count, size, steps, seed=0):
    """Items of the first steps in a row."""
    return [item for step in range(steps) for item in batch_of_step(range(count), size, step, seed)]


@given(counts, sizes, seeds)
def test_each_epoch_is_a_permutation(count, size, seed):
    items = stream(count, size, 3 * count // size + 1, seed)
    for start in range(0, len(items) - count + 1, count):
        assert sorted(items[start : start + count]) == list(range(count))


@given(counts, sizes, st.integers(0, 1000), seeds)
def test_a_batch_is_full_and_follows_from_seed_and_step(count, size, step, seed):
    batch = batch_of_step(range(count), size, step, seed)
    assert len(batch) == size
    assert batch == batch_of_step(range(count), size, step, seed)
    most = Counter(batch).most_common(1)[0][1]
    assert most <= size // count + 2


def test_a_batch_may_span_two_epochs():
    items = stream(5, 3, 10)
    assert sorted(items[:5]) == sorted(items[5:10]) == list(range(5))
    assert Counter(items) == dict.fromkeys(range(5), 6)


def test_seeds_and_epochs_shuffle_anew():
    first, second = stream(20, 20, 1), stream(20, 20, 2)[20:]
    assert first != second
    assert first != stream(20, 20, 1, seed=1)
    assert first != list(range(20))


def test_without_contexts_there_is_nothing_to_train_on():
    with pytest.raises(ValueError, match="nothing to train on"):
        batch_of_step([], 4, 0, 0)


@pytest.mark.parametrize(
    ("items", "size", "epochs", "steps"),
    [(100, 10, 2, 20), (100, 10, 0.5, 5), (3, 128, 1, 1), (0, 8, 1, 1), (10, 4, 2, 5)],
)
def test_steps_of_epochs(items, size, epochs, steps):
    assert steps_of_epochs(items, size, epochs) == steps
