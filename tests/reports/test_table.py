"""Pass@1 by turn in the terminal."""

import io

import pytest
from rich.console import Console

from smalt.evaluation.pass_at_k import ByTurn, PairedDifference
from smalt.reports.table import by_turn_rows, by_turn_table, evaluation_table, points

BEFORE = ByTurn([0.2, 0.25], [[0.1, 0.3], [0.15, 0.35]], 30, 4)
AFTER = ByTurn([0.317], [[0.28, 0.352]], 30, 4)


def test_rows():
    assert by_turn_rows(BEFORE, AFTER) == [
        ("1", "20.0 (10.0 to 30.0)", "31.7 (28.0 to 35.2)", "+11.7"),
        ("2", "25.0 (15.0 to 35.0)", "–", "–"),
    ]
    assert by_turn_rows(None, AFTER) == [("1", "–", "31.7 (28.0 to 35.2)", "–")]
    assert by_turn_rows(None, None) == []


def test_paired_interval():
    difference = PairedDifference([0.117], [[-0.01, 0.2]], 30)
    assert by_turn_rows(BEFORE, AFTER, difference)[0][3] == "+11.7 (-1.0 to +20.0)"


def test_table_prints():
    console = Console(file=io.StringIO(), width=100)
    console.print(by_turn_table(BEFORE, AFTER))
    shown = console.file.getvalue()
    assert "Difference" in shown and "31.7 (28.0 to 35.2)" in shown and "+11.7" in shown


def test_the_table_of_one_evaluation_has_its_figures_only():
    console = Console(file=io.StringIO(), width=100)
    console.print(evaluation_table(BEFORE))
    shown = console.file.getvalue()
    assert "Pass@1" in shown and "25.0 (15.0 to 35.0)" in shown
    assert "Before" not in shown and "–" not in shown


@pytest.mark.parametrize(
    ("change", "text"), [(0.09, "+9.0"), (-0.091, "-9.1"), (0.0, "0.0"), (-0.0004, "0.0"), (0.0004, "0.0")]
)
def test_points(change, text):
    assert points(change) == text
