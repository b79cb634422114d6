"""Figures over seeds and problems: means worked by hand, intervals that know both sources of chance."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smalt.evaluation.over_seeds import by_turn_over_seeds, paired_over_seeds, thirds_by_difficulty
from smalt.evaluation.pass_at_k import RESAMPLES

RUNS = [
    {"a": [[True, True], [False, True]], "b": [[False, False]]},
    {"b": [[True, False]], "a": [[False, True], [False, True]]},
]


def width(interval):
    return interval[1] - interval[0]


def table(scores):
    """Runs of one turn and one sample from a matrix, runs x problems, of bool."""
    return [{f"p{place}": [[bool(score)]] for place, score in enumerate(row)} for row in scores]


def test_means_are_over_runs_and_problems():
    figures = by_turn_over_seeds(RUNS)
    assert figures.pass_at_1 == [(0.5 + 0 + 0 + 1) / 4, 0.5]
    assert (figures.problems, figures.samples_per_problem) == (2, 1.5)
    assert all(low <= mean <= high for mean, (low, high) in zip(figures.pass_at_1, figures.ci95, strict=True))


def test_pairs_are_runs_at_the_same_place_and_problems_of_the_same_id():
    figures = paired_over_seeds(RUNS[:1], RUNS[1:])
    assert figures.difference == [(-0.5 + 1) / 2, 0]
    assert paired_over_seeds(RUNS, RUNS).ci95 == [[0, 0], [0, 0]]


def test_only_problems_that_all_runs_have_count():
    more = [RUNS[0] | {"c": [[True, True]]}, RUNS[1]]
    assert by_turn_over_seeds(more) == by_turn_over_seeds(RUNS)
    assert paired_over_seeds(more, RUNS).problems == 2


def test_runs_that_differ_widen_the_interval():
    alike = table([[1, 0] * 20] * 4)
    apart = table([[1] * 40, [1] * 40, [0] * 40, [0] * 40])
    assert by_turn_over_seeds(alike).pass_at_1 == by_turn_over_seeds(apart).pass_at_1
    assert width(by_turn_over_seeds(apart).ci95[0]) == 1
    assert width(by_turn_over_seeds(alike).ci95[0]) < 0.4


def test_one_run_is_the_bootstrap_over_problems():
    scores = np.random.default_rng(3).random((1, 80)) < 0.4
    [interval] = by_turn_over_seeds(table(scores)).ci95
    draws = np.random.default_rng(5).choice(scores[0], size=(RESAMPLES, 80)).mean(axis=1)
    assert interval == pytest.approx(np.percentile(draws, (2.5, 97.5)), abs=0.02)


@given(st.integers(0, 2**16))
def test_the_same_figures_give_the_same_interval_and_shift_with_the_scores(seed):
    scores = np.random.default_rng(seed).random((3, 6)) < 0.5
    figures = by_turn_over_seeds(table(scores), resamples=50)
    assert figures == by_turn_over_seeds(table(scores), resamples=50)
    opposite = by_turn_over_seeds(table(~scores), resamples=50)
    assert opposite.pass_at_1[0] == pytest.approx(1 - figures.pass_at_1[0])
    assert opposite.ci95[0] == pytest.approx([1 - figures.ci95[0][1], 1 - figures.ci95[0][0]])


def test_thirds_are_by_first_programs_hardest_first():
    runs = table([[1, 0, 1, 0, 1, 1, 0], [1, 0, 0, 0, 1, 1, 1]])
    assert thirds_by_difficulty(runs) == [["p1", "p3"], ["p2", "p6"], ["p0", "p4", "p5"]]
    assert thirds_by_difficulty(table([[1, 0]])) == [[], ["p1"], ["p0"]]


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(ValueError, match="no runs"):
        by_turn_over_seeds([])
    with pytest.raises(ValueError, match="no problem in common"):
        by_turn_over_seeds([{"a": [[True]]}, {"b": [[True]]}])
    with pytest.raises(ValueError, match="differ in turns"):
        by_turn_over_seeds([{"a": [[True]]}, {"a": [[True, True]]}])
    with pytest.raises(ValueError, match="as many runs"):
        paired_over_seeds(RUNS, RUNS[:1])
