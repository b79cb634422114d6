"""The report of a comparison: tables and charts from figures, whatever the names say."""

from xml.etree import ElementTree

import pytest

from smalt.reports.comparison_charts import Labels, Line, intervals_chart, panels_chart
from smalt.reports.comparison_file import ComparisonSummary
from smalt.reports.comparison_report import render_comparison_report, write_comparison_report
from smalt.reports.comparison_tables import (
    budget_text,
    by_turn_table_rows,
    comparison_markdown,
    cost_rows,
    difficulty_rows,
    gain_rows,
    overview_rows,
    pair_rows,
    told_turns,
)

TURNS = 5
LABELS = Labels("chart", "A title", "x", "y")


def evaluation(start):
    shares = [start + 0.05 * turn for turn in range(TURNS)]
    return {
        "pass_at_1": shares,
        "ci95": [[share - 0.1, share + 0.1] for share in shares],
        "problems": 30,
        "samples_per_problem": 2,
    }


def difference(height):
    return {"difference": [height] * TURNS, "ci95": [[height - 0.04, height + 0.04]] * TURNS, "problems": 30}


def method(name, start, **changes):
    costs = {
        "steps": 12,
        "examples": 120,
        "programs": 960,
        "collection_tokens": 0,
        "collection_seconds": 0,
        "training_tokens": 36000,
        "training_seconds": 24,
        "tokens_per_example": 300,
        "seconds_per_example": 0.2,
        "groups_without_signal": 0.25,
    }
    curves = [
        {"quantity": q, "cost": c, "spent": [1, 2, 3], "mean": [0.1, 0.2, 0.3], "low": [0, 0, 0], "high": [1, 1, 1]}
        for q in ("solved_share", "reward_mean")
        for c in ("sampled_tokens", "seconds")
    ]
    return {
        "name": name,
        "method": "grpo",
        "training_turns": 3,
        "evaluation": evaluation(start),
        "gain": difference(start - 0.2),
        "cost": costs | changes,
        "curves": curves,
    }


PAIR = {
    "first": "grpo",
    "second": "rlef",
    "by_difficulty": [difference(height) for height in (0.3, 0.1, -0.1)],
    **difference(0.1),
}


def summary(*methods, **changes):
    methods = methods or (method("grpo", 0.3), method("rlef", 0.4, groups_without_signal=None))
    raw = {
        "budget": {"cost": "sampled_tokens", "amount": 36000, "includes_collection": True},
        "seeds": 2,
        "protocol": "each dialogue goes on to the last turn; temperature 1",
        "before": evaluation(0.2),
        "methods": list(methods),
        "pairs": [PAIR] if len(methods) == 2 else [],
    }
    return ComparisonSummary.model_validate(raw | changes)


def test_tables_say_figures_and_intervals():
    rows = by_turn_table_rows(summary())
    assert rows[0] == ("Method", "Turn 1", "Turn 2", "Turn 3", "Turn 4", "Turn 5")
    assert [row[0] for row in rows] == ["Method", "before training", "grpo", "rlef"]
    assert rows[2][1] == "30.0 (20.0 to 40.0)"
    assert told_turns(summary()) == [1, 3, 5]
    assert overview_rows(summary())[0] == ("Method", "Turn 1", "Turn 3", "Turn 5")
    assert gain_rows(summary())[1] == ("grpo", *["+10.0 (+6.0 to +14.0)"] * 3)
    assert pair_rows(summary())[1] == ("rlef − grpo", *["+10.0 (+6.0 to +14.0)"] * 3)
    assert difficulty_rows(summary())[1][1:] == (
        "+30.0 (+26.0 to +34.0)",
        "+10.0 (+6.0 to +14.0)",
        "-10.0 (-14.0 to -6.0)",
    )
    assert cost_rows(summary())[1][-3:] == ("300", "0.2", "0.25")
    assert cost_rows(summary())[2][-1] == "–"


def test_a_budget_is_said_as_it_counts():
    said = budget_text(summary().budget)
    assert said == "36,000 sampled tokens a run, stored trajectories included"
    seconds = {"cost": "seconds", "amount": 90, "includes_collection": False}
    assert budget_text(summary(budget=seconds).budget) == "1 min 30 s a run, stored trajectories not included"


def test_the_markdown_page_has_every_table():
    page = comparison_markdown(summary())
    assert page.count("\n| --- |") == 5
    assert "| rlef | 40.0 (30.0 to 50.0) |" in page
    assert "Seeds: 2; held-out problems: 30, dialogues of each: 2; each dialogue goes on" in page
    assert "Nothing to compare." in comparison_markdown(summary(method("grpo", 0.3)))


def test_the_page_is_whole_and_loads_nothing(tmp_path):
    write_comparison_report(summary(), "runs & more", tmp_path / "a" / "comparison.html")
    page = (tmp_path / "a" / "comparison.html").read_text()
    assert "runs &amp; more" in page
    assert page.count("<svg") == 6
    assert "<script" not in page
    assert "http://" not in page.replace("http://www.w3.org/", "")
    assert page == render_comparison_report(summary(), "runs & more")


def test_many_methods_and_one_fit():
    many = [method(f"method-{number}", 0.2 + number / 100) for number in range(9)]
    for methods in (many, many[:1]):
        page = render_comparison_report(summary(*methods), "x")
        assert page.count("<svg") == 6
    assert "Differences between methods" not in render_comparison_report(summary(many[0]), "x")


def test_names_are_shown_as_they_are():
    name = '<b>$x_1$ "&'
    page = render_comparison_report(summary(method(name, 0.3)), "x")
    assert "<b>" not in page
    svg = panels_chart({name: Line([1, 2], [0, 1], [0, 0], [1, 1])}, LABELS)
    ElementTree.fromstring(svg)


def test_nothing_to_draw_is_refused():
    with pytest.raises(ValueError, match="no method"):
        panels_chart({}, LABELS)
    with pytest.raises(ValueError, match="no evaluation"):
        intervals_chart({}, [1], LABELS)


def test_the_file_comes_back_as_it_was():
    assert ComparisonSummary.model_validate_json(summary().model_dump_json()) == summary()
