"""Charts: well-formed, deterministic SVG that can live in a page with others."""

import re
import subprocess
import sys
from xml.etree import ElementTree

import matplotlib
import pytest

from smalt.evaluation.pass_at_k import ByTurn
from smalt.reports.charts import by_turn_chart, duration, learning_curves, stage_times_chart
from smalt.reports.learning_curves import PANELS, missing_metrics, series, smoothed

BEFORE = ByTurn([0.2, 0.25, 0.27, 0.28], [[0.1, 0.3], [0.15, 0.35], [0.2, 0.34], [0.2, 0.36]], 30, 4)
AFTER = ByTurn([0.3, 0.4, 0.45, 0.5], [[0.2, 0.4], [0.3, 0.5], [0.35, 0.55], [0.4, 0.6]], 30, 4)
ROWS = [{"step": step, "reward_mean": step / 40, "kl": 1e-4 * step, "odd": "text"} for step in range(40)]


def texts(svg):
    root = ElementTree.fromstring(svg)
    return [element.text for element in root.iter() if element.tag.endswith("}text")]


def ids(svg):
    return [element.get("id") for element in ElementTree.fromstring(svg).iter() if element.get("id")]


def test_by_turn_keeps_text_as_text():
    svg = by_turn_chart({"before": BEFORE, "after": AFTER}, training_turns=2)
    shown = texts(svg)
    assert {"Turn", "Pass@1, %", "before", "after", "last turn in training", "4"} <= set(shown)
    assert "last turn in training" not in texts(by_turn_chart({"after": AFTER}))


def test_the_last_evaluation_is_cobalt():
    assert "--chart-second" not in by_turn_chart({"after": AFTER})
    svg = by_turn_chart({"before": BEFORE, "during": BEFORE, "after": AFTER})
    assert all(f"--chart-{name}" in svg for name in ("main", "second", "third"))


@pytest.mark.parametrize("training_turns", [None, 1, 4, 9])
def test_by_turn_with_few_turns_and_full_marks(training_turns):
    solved = ByTurn([1.0], [[1.0, 1.0]], 1, 1)
    failed = ByTurn([0.0], [[0.0, 0.0]], 1, 1)
    by_turn_chart({"before": failed, "after": solved}, training_turns)
    by_turn_chart({"before": failed}, training_turns)


def test_nothing_to_draw_is_refused():
    with pytest.raises(ValueError, match="no evaluation"):
        by_turn_chart({})
    with pytest.raises(ValueError, match="no stage"):
        stage_times_chart({})
    assert learning_curves([]) == []


def test_names_from_files_are_shown_as_they_are():
    name = '<script>x</script> $a_b$ & "q" url(#z)'
    svg = stage_times_chart({name: 3.0, "$": 0.0})
    assert "<script>" not in svg
    assert name in texts(svg) and "$" in texts(svg)
    assert "<script>" not in by_turn_chart({name: AFTER})
    ElementTree.fromstring(by_turn_chart({name: AFTER}))


def all_charts():
    return [
        by_turn_chart({"before": BEFORE, "after": AFTER}, training_turns=2),
        stage_times_chart({"collect": 12.0, "train": 300.0}),
        *(panel.svg for panel in learning_curves(ROWS)),
    ]


def test_same_data_same_bytes():
    assert all_charts() == all_charts()


def test_ids_do_not_meet_and_references_hold():
    charts = all_charts()
    every = [name for svg in charts for name in ids(svg)]
    assert len(every) == len(set(every))
    for svg in charts:
        referred = re.findall(r'href="#([^"]+)"', svg) + re.findall(r"url\(#([^)]+)\)", svg)
        assert referred and set(referred) <= set(ids(svg))


def test_charts_are_self_contained_and_themed():
    for svg in all_charts():
        assert svg.startswith("<svg") and svg.endswith("</svg>")
        assert "<!--" not in svg and "<metadata" not in svg and "<style" not in svg and "<script" not in svg
        assert set(re.findall(r'https?://[^"]+', svg)) <= {
            "http://www.w3.org/2000/svg",
            "http://www.w3.org/1999/xlink",
        }
        bare = re.sub(r"var\([^)]*\)", "", svg)
        assert not re.search(r"#[0-9a-f]{6}\b", bare), "a colour that dark mode cannot change"


def test_settings_of_matplotlib_are_left_as_they_were():
    with matplotlib.rc_context({"font.size": 31, "svg.fonttype": "path"}):
        before = dict(matplotlib.rcParams), matplotlib.get_backend(auto_select=False)
        changed = by_turn_chart({"after": AFTER})
        assert (dict(matplotlib.rcParams), matplotlib.get_backend(auto_select=False)) == before
    assert changed == by_turn_chart({"after": AFTER})


def test_panels_without_data_are_left_out():
    titles = [panel.title for panel in learning_curves(ROWS)]
    assert titles == ["Reward, mean", "KL to the reference policy"]
    assert "entropy" in missing_metrics(ROWS) and "kl" not in missing_metrics(ROWS)


def test_every_panel_draws_from_a_single_row():
    row = {"step": 1} | {key: 0.5 for panel in PANELS for key, _ in panel.lines}
    assert len(learning_curves([row])) == len(PANELS)
    assert missing_metrics([row]) == []


def test_series_takes_finite_numbers_only():
    rows = [
        {"step": 3, "kl": 0.3},
        {"step": 1, "kl": 1},
        {"step": 2, "kl": float("nan")},
        {"step": 4, "kl": None},
        {"step": 5, "kl": True},
        {"step": 6},
        {"kl": 0.1},
    ]
    assert series(rows, "kl") == [(1.0, 1.0), (3.0, 0.3)]


def test_smoothing():
    assert smoothed([]) == []
    assert smoothed([2.0]) == [2.0]
    assert smoothed([0.0, 3.0, 0.0, 3.0]) == [1.5, 1.0, 2.0, 1.5]
    assert smoothed([1.0] * 50) == [1.0] * 50


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.0 s"), (9.96, "10.0 s"), (59.4, "59 s"), (59.6, "1 min 0 s"), (200, "3 min 20 s"),
     (3599.7, "1 h 0 min"), (7500, "2 h 5 min")],
)  # fmt: skip
def test_duration(seconds, text):
    assert duration(seconds) == text


def test_importing_the_package_does_not_load_matplotlib():
    code = "import sys, smalt.reports, smalt.reports.charts; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
