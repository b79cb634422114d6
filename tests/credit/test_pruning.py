import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smalt.credit.pruning import best_groups

GROUPS = [[0.5, 0.5, 0.5], [0.0, 1.0, 0.5], [1.0, 1.0, 0.9], [0.0, 1.0, 1.0]]


@pytest.mark.parametrize(
    ("budget", "mean_weight", "std_weight", "kept"),
    [
        # Deviations 0, 0.5, 0.058, 0.577; means 0.5, 0.5, 0.967, 0.667.
        (1, 0.0, 1.0, [3]),
        (2, 0.0, 1.0, [1, 3]),
        (2, 1.0, 0.0, [2, 3]),
        (3, 1.0, 1.0, [1, 2, 3]),
        (9, 0.0, 1.0, [0, 1, 2, 3]),
    ],
)
def test_the_groups_with_the_highest_score_stay(budget, mean_weight, std_weight, kept):
    assert best_groups(GROUPS, budget, mean_weight, std_weight) == kept


def test_among_equals_the_earlier_stays_and_empty_groups_come_last():
    assert best_groups([[], [1.0, 0.0], [0.0, 1.0], [0.3]], 2, 0.0, 1.0) == [1, 2]
    assert best_groups([[], [0.3]], 1, 0.0, 1.0) == [1]


@settings(deadline=None)
@given(st.lists(st.lists(st.floats(0, 1), max_size=4), max_size=6), st.integers(1, 7))
def test_the_budget_is_kept_and_used(groups, budget):
    kept = best_groups(groups, budget, 0.0, 1.0)
    assert kept == sorted(set(kept))
    assert len(kept) == min(budget, len(groups))
