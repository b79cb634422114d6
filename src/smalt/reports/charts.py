"""Charts of a run: pure functions from plain data to the text of an SVG element."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from smalt.evaluation.pass_at_k import ByTurn
from smalt.reports.learning_curves import learning_curves
from smalt.reports.svg import MARKERS, SERIES, THEME, figure, to_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["by_turn_chart", "duration", "learning_curves", "stage_times_chart"]


def by_turn_chart(evaluations: Mapping[str, ByTurn], training_turns: int | None = None) -> str:
    """Pass@1 by turn with 95 % bands, a curve for each named evaluation.

    The last one is the main one: cobalt blue, drawn over the others. `training_turns` draws a vertical line
    at the last turn that training saw; curves that still rise beyond it generalise over turns.

    Raises ValueError when there is nothing to draw.
    """
    if not evaluations:
        raise ValueError("there is no evaluation to draw")
    with figure(7.6, 3.9) as drawn:
        axes = drawn.subplots()
        names = list(evaluations)
        for order, name in enumerate(names):
            from_main = len(names) - 1 - order
            _draw_curve(axes, name, evaluations[name], from_main)
        turns = max(len(evaluation.pass_at_1) for evaluation in evaluations.values())
        if training_turns is not None:
            _draw_horizon(axes, training_turns, turns)
        axes.set_xlim(0.8, max(turns, 2) + 0.2)
        axes.set_xticks(range(1, turns + 1))
        axes.set_xlabel("Turn")
        axes.set_ylabel("Pass@1, %")
        _round_limits(axes)
        # Above the chart, where no curve can pass, and above the label of the horizon.
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.05), borderaxespad=0, ncols=len(names), reverse=True)
        return to_svg(drawn, "by-turn", "Pass@1 by turn: " + ", ".join(names))


def _draw_curve(axes: Axes, name: str, evaluation: ByTurn, from_main: int) -> None:
    """One evaluation; `from_main` is 0 for the main one."""
    style = from_main % len(SERIES)
    colour = THEME[SERIES[style]]
    turns = range(1, len(evaluation.pass_at_1) + 1)
    low = [100 * bounds[0] for bounds in evaluation.ci95]
    high = [100 * bounds[1] for bounds in evaluation.ci95]
    axes.fill_between(turns, low, high, color=colour, alpha=0.14, linewidth=0, zorder=2)
    axes.plot(
        turns,
        [100 * share for share in evaluation.pass_at_1],
        color=colour,
        marker=MARKERS[style],
        markersize=5.5,
        linewidth=2.4 if from_main == 0 else 1.9,
        label=name,
        zorder=10 - from_main,
        clip_on=False,
    )


def _draw_horizon(axes: Axes, training_turns: int, turns: int) -> None:
    """The dashed line between the turns that training saw and the ones it did not."""
    if not 1 <= training_turns < turns:
        return  # nothing lies beyond it
    axes.axvline(training_turns, color=THEME["muted"], linestyle=(0, (4, 3)), linewidth=1, zorder=1)
    axes.annotate(
        "last turn in training",
        (training_turns, 1.0),
        xycoords=axes.get_xaxis_transform(),
        xytext=(0, 4),
        textcoords="offset points",
        ha="center",
        color=THEME["muted"],
        fontsize=8.5,
    )


def _round_limits(axes: Axes) -> None:
    """End the axis of a percentage on whole fives."""
    low, high = axes.get_ylim()
    axes.set_ylim(max(0.0, 5 * (low // 5)), min(100.0, 5 * (high // 5 + 1)))


def stage_times_chart(stages: Mapping[str, float]) -> str:
    """Seconds per stage as horizontal bars, in the order given.

    Raises ValueError when there is nothing to draw.
    """
    if not stages:
        raise ValueError("there is no stage to draw")
    with figure(7.6, 0.7 + 0.38 * len(stages)) as drawn:
        axes = drawn.subplots()
        places = range(len(stages))
        bars = axes.barh(places, list(stages.values()), height=0.62, color=THEME["main"])
        labels = [duration(seconds) for seconds in stages.values()]
        axes.bar_label(bars, labels, padding=5, color=THEME["ink"], fontsize=9)
        axes.set_yticks(places, list(stages))
        axes.tick_params(axis="y", labelcolor=THEME["ink"])
        axes.invert_yaxis()
        axes.grid(visible=False)
        axes.set_xticks([])
        axes.spines["bottom"].set_visible(False)
        axes.set_xlim(0, 1.15 * max(*stages.values(), 1e-9))
        return to_svg(drawn, "stages", "Seconds per stage")


def duration(seconds: float) -> str:
    """Seconds as a person says them: "0.4 s", "12 s", "3 min 20 s", "2 h 5 min"."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min"
