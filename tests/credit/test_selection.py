"""Max-variance down-sampling, against every subset."""

import math
from itertools import combinations
from statistics import pvariance

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smalt.credit.selection import max_variance_subset


@pytest.mark.parametrize(
    ("values", "m", "expected"),
    [
        ([], 3, []),
        ([0.1, 0.2], 0, []),
        ([0.1, 0.2], 2, [0, 1]),
        ([0.1, 0.2], 5, [0, 1]),
        ([0.5, 1.0, 0.0, 0.4], 2, [1, 2]),
        ([0.9, 0.0, 1.0, 0.1], 3, [0, 1, 2]),  # as good as two low ones: the high ones win
        ([0.0, 0.0, 0.0, 1.0], 2, [2, 3]),  # two high ones, of which one is 0.0
        ([0.2, 0.3, 1.0], 1, [2]),
        ([0.5, 0.5, 0.5], 2, [1, 2]),
    ],
)
def test_worked_examples(values, m, expected):
    assert max_variance_subset(values, m) == expected


def test_impossible_input_is_refused():
    with pytest.raises(ValueError, match="negative"):
        max_variance_subset([0.1], -1)
    with pytest.raises(ValueError, match="finite"):
        max_variance_subset([0.1, math.nan], 1)


@given(st.lists(st.integers(-20, 20).map(lambda n: n / 20), min_size=1, max_size=9), st.integers(1, 9))
def test_no_subset_has_a_larger_variance(values, m):
    chosen = max_variance_subset(values, m)
    assert chosen == sorted(set(chosen)) and len(chosen) == min(m, len(values))
    best = max(pvariance(subset) for subset in combinations(values, len(chosen)))
    assert pvariance([values[index] for index in chosen]) == pytest.approx(best)
    assert chosen == max_variance_subset(list(values), m)
