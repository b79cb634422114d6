"""Rows of a mini-batch: their weights, and which of them need no forward pass."""

import pytest

from smalt.policy.sampling import Completion
from smalt.training.groups import TrainingGroup
from smalt.training.rows import training_rows
from smalt.training.settings import LossSettings

NO_KL = LossSettings(kl_coefficient=0)


def completion(length):
    return Completion(tuple(range(length)), (0.0,) * length, True)


def group(advantages, returns=()):
    completions = tuple(completion(length) for length in range(1, 1 + len(advantages)))
    return TrainingGroup((7, 8), completions, advantages, returns=returns)


def test_every_token_of_the_mini_batch_counts_alike_by_default():
    rows = training_rows([group((1.0, -1.0)), group((0.5,))], NO_KL)
    assert [row.weight for row in rows] == [0.25] * 3
    assert [row.advantage for row in rows] == [1.0, -1.0, 0.5]
    assert rows[1].tokens.input_ids == (7, 8, 0)


def test_weights_of_an_aggregation_go_with_their_rows():
    rows = training_rows([group((1.0, -1.0))], LossSettings(kl_coefficient=0, aggregation="sequences"))
    assert [row.weight for row in rows] == [1 / 2, 1 / 4]


@pytest.mark.parametrize(
    ("loss", "returns", "expected"),
    [
        (NO_KL, (), [True, False]),
        (LossSettings(kl_coefficient=0.1), (), [True, True]),
        (LossSettings(kl_coefficient=0, objective="oapl", aggregation="sequences"), (), [True, True]),
        (NO_KL, (1.0, 0.0), [True, True]),
    ],
    ids=["no advantage", "penalty", "regression", "value"],
)
def test_rows_that_move_nothing_are_told_from_those_that_do(loss, returns, expected):
    rows = training_rows([group((1.0, 0.0), returns)], loss)
    assert [row.carries_gradient(loss) for row in rows] == expected
