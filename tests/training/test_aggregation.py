import pytest

from smalt.policy.sampling import Completion
from smalt.training.aggregation import token_weights
from smalt.training.groups import TrainingGroup, whiten_batch
from smalt.training.settings import LossSettings


def group(*lengths, turn=1):
    completions = tuple(Completion((1,) * length, (-0.1,) * length, True) for length in lengths)
    return TrainingGroup((5,), completions, tuple(float(length) for length in lengths), turn)


GROUPS = [group(2, 4), group(6, turn=2), group(3, 1, turn=2)]


def loss(aggregation, **options):
    return LossSettings(aggregation=aggregation, **options)


def test_tokens_need_no_weights():
    assert token_weights(GROUPS, loss("tokens")) == [None, None, None]


def test_sequences_count_alike_however_long():
    assert token_weights(GROUPS, loss("sequences")) == [
        pytest.approx(w) for w in ([1 / 10, 1 / 20], [1 / 30], [1 / 15, 1 / 5])
    ]


def test_dr_grpo_divides_by_a_constant():
    assert token_weights(GROUPS, loss("constant", constant_length=8)) == [
        pytest.approx(w) for w in ([1 / 40] * 2, [1 / 40], [1 / 40] * 2)
    ]


def test_turns_count_alike_however_many_programs_they_have():
    # Turn 1 has 6 tokens, turn 2 has 10.
    assert token_weights(GROUPS, loss("turns")) == [pytest.approx(w) for w in ([1 / 12] * 2, [1 / 20], [1 / 20] * 2)]


@pytest.mark.parametrize("settings", [loss("sequences"), loss("turns")])
def test_weights_of_a_mean_sum_to_one(settings):
    weights = token_weights(GROUPS, settings)
    total = sum(
        w * len(c.ids) for g, ws in zip(GROUPS, weights, strict=True) for w, c in zip(ws, g.completions, strict=True)
    )
    assert total == pytest.approx(1)


def test_whitening_runs_over_all_trees():
    # Advantages 2, 4 | 6, 3, 1: mean 3.2, unbiased deviation sqrt(3.7).
    whitened = whiten_batch([GROUPS[:1], GROUPS[1:]])
    values = [a for tree in whitened for g in tree for a in g.advantages]
    assert values == pytest.approx([(a - 3.2) / 3.7**0.5 for a in (2, 4, 6, 3, 1)], rel=1e-5)
    assert [[g.completions for g in tree] for tree in whitened] == [
        [GROUPS[0].completions],
        [GROUPS[1].completions, GROUPS[2].completions],
    ]
