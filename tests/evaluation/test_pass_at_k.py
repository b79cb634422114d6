"""Pass@k: the estimator against counting, the means by turn, and the intervals."""

from dataclasses import FrozenInstanceError, asdict
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smalt.evaluation.pass_at_k import (
    paired_difference,
    pass_at_1_by_turn,
    pass_at_k,
    pass_at_k_by_turn,
)


@pytest.mark.parametrize(
    ("n", "c", "k", "expected"),
    [(16, 0, 1, 0.0), (16, 16, 1, 1.0), (16, 4, 1, 0.25), (3, 1, 1, 1 / 3), (4, 2, 2, 5 / 6), (5, 4, 2, 1.0)],
)
def test_estimator(n, c, k, expected):
    assert pass_at_k(n, c, k) == expected


@pytest.mark.parametrize(("n", "c", "k"), [(4, 5, 1), (4, -1, 1), (4, 2, 5), (4, 2, 0), (0, 0, 1)])
def test_impossible_counts_are_refused(n, c, k):
    with pytest.raises(ValueError, match="need 0 <= c <= n"):
        pass_at_k(n, c, k)


@given(st.integers(1, 8).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_estimator_is_the_share_of_subsets_with_a_correct_sample(counts):
    n, c, k = counts
    subsets = list(combinations([index < c for index in range(n)], k))
    assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, subsets)) / len(subsets))


def test_mean_over_problems_of_means_over_samples():
    # Problem 0 has four samples, problem 1 one: they weigh the same.
    outcomes = [[[True, True], [False, True], [False, True], [False, False]], [[False, True]]]
    result = pass_at_1_by_turn(outcomes)
    assert result.pass_at_1 == [0.125, 0.875]
    assert (result.problems, result.samples_per_problem) == (2, 2.5)
    assert pass_at_1_by_turn(np.array(outcomes[:1])).pass_at_1 == [0.25, 0.75]


@pytest.mark.parametrize(
    ("outcomes", "message"),
    [
        ([], "no problems"),
        ([[[True]], []], "problem 1 has no samples"),
        ([[]], "problem 0 has no samples"),
        ([[[True, False], [True]]], "problem 0, sample 1 has 1 turns, expected 2"),
        ([[[]]], "has 0 turns"),
    ],
)
def test_bad_outcomes_are_refused(outcomes, message):
    with pytest.raises(ValueError, match=message):
        pass_at_1_by_turn(outcomes)


def random_outcomes(problems, rate, seed):
    draws = np.random.default_rng(seed)
    difficulty = draws.beta(rate, 1 - rate, size=problems)
    return (draws.random((problems, 4, 3)) < difficulty[:, None, None]).tolist()


def test_interval_is_seeded_and_near_the_normal_one():
    outcomes = random_outcomes(200, 0.3, seed=1)
    result = pass_at_1_by_turn(outcomes, seed=7)
    assert result == pass_at_1_by_turn(outcomes, seed=7)
    assert result.ci95 != pass_at_1_by_turn(outcomes, seed=8).ci95
    means = np.array(outcomes).mean(axis=1)
    errors = means.std(axis=0, ddof=1) / np.sqrt(len(means))
    for turn, (low, high) in enumerate(result.ci95):
        assert low < result.pass_at_1[turn] < high
        assert high - low == pytest.approx(2 * 1.96 * errors[turn], rel=0.1)


def test_interval_without_spread_has_no_width():
    assert pass_at_1_by_turn([[[True, False]]] * 5).ci95 == [[1.0, 1.0], [0.0, 0.0]]


def test_results_are_frozen_plain_data():
    result = pass_at_1_by_turn([[[True]]])
    assert asdict(result) == {
        "pass_at_1": [1.0],
        "ci95": [[1.0, 1.0]],
        "problems": 1,
        "samples_per_problem": 1.0,
    }
    with pytest.raises(FrozenInstanceError):
        result.problems = 2


def test_pass_at_k_by_turn():
    outcomes = [[[True], [False], [False], [True]], [[False], [False], [False]]]
    result = pass_at_k_by_turn(outcomes, k=2)
    assert result.pass_at_k == pytest.approx([5 / 12])
    assert pass_at_k_by_turn(outcomes, k=1).pass_at_k == pass_at_1_by_turn(outcomes).pass_at_1
    with pytest.raises(ValueError, match="problem 1 has 3 samples, pass@4 needs at least 4"):
        pass_at_k_by_turn(outcomes, k=4)


def test_pairing_narrows_the_interval():
    before = random_outcomes(100, 0.4, seed=2)
    after = [[[True, *turns[1:]] for turns in samples] if i % 10 == 0 else samples
             for i, samples in enumerate(before)]  # fmt: skip
    result = paired_difference(before, after)
    assert result.problems == 100
    assert result.difference[0] > 0 and result.ci95[0][0] > 0
    assert (result.difference[1:], result.ci95[1:]) == ([0.0, 0.0], [[0.0, 0.0], [0.0, 0.0]])
    alone = pass_at_1_by_turn(before).ci95[0]
    assert result.ci95[0][1] - result.ci95[0][0] < alone[1] - alone[0]


def test_unpaired_evaluations_are_refused():
    with pytest.raises(ValueError, match="differ in"):
        paired_difference([[[True]]], [[[True]], [[True]]])
