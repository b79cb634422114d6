"""Learning curves: one small panel for each quantity that training logs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smalt.reports.svg import MARKERS, SERIES, THEME, figure, to_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Points = list[tuple[float, float]]
"""(step, value), by ascending step."""

FEW_POINTS = 12  # up to here each point is a marker, and smoothing would hide more than it shows


@dataclass(frozen=True)
class Panel:
    """What one panel shows: the title, and metric keys with the names of their lines."""

    title: str
    lines: tuple[tuple[str, str], ...]
    is_smoothed: bool = True


@dataclass(frozen=True)
class DrawnPanel:
    """A panel that had data: SVG without a title, which the page writes above it."""

    title: str
    svg: str


PANELS = (
    Panel("Reward, mean", (("reward_mean", "reward"),)),
    Panel("Validation score", (("validation_score", "score"),), is_smoothed=False),
    Panel(
        "Training programs, share",
        (("pass_rate_mean", "tests passed"), ("solved_share", "solved")),
    ),
    Panel("Groups without signal, share", (("groups_without_signal", "share"),)),
    Panel("Entropy, nats a token", (("entropy", "entropy"),)),
    Panel("KL to the reference policy", (("kl", "KL"),)),
    Panel("Clipped tokens, share", (("clip_fraction", "share"),)),
    Panel("Completion length, tokens", (("completion_tokens_mean", "tokens"),)),
    Panel("Gradient norm", (("grad_norm", "norm"),)),
    Panel("Learning rate", (("learning_rate", "rate"),), is_smoothed=False),
    Panel(
        "Seconds a step",
        (
            ("seconds_sampling", "sampling"),
            ("seconds_grading", "grading"),
            ("seconds_training", "training"),
            ("seconds_grading_overlapped", "grading while sampling"),
        ),
    ),
)


def learning_curves(rows: Sequence[Mapping[str, object]]) -> list[DrawnPanel]:
    """Panels in the order of `PANELS` for metrics rows; panels without data are left out.

    A row holds `step` and numeric fields; unknown fields, and values that are no finite numbers, are passed
    over.
    """
    drawn = []
    for panel in PANELS:
        lines = [(label, points) for key, label in panel.lines if (points := series(rows, key))]
        if lines:
            drawn.append(DrawnPanel(panel.title, _draw(panel, lines)))
    return drawn


def missing_metrics(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Metric keys that some panel shows and no row has."""
    keys = [key for panel in PANELS for key, _ in panel.lines]
    return [key for key in keys if not series(rows, key)]


def series(rows: Sequence[Mapping[str, object]], key: str) -> Points:
    """The finite values of one metric by step."""
    points = [(_number(row.get("step")), _number(row.get(key))) for row in rows]
    return sorted((step, value) for step, value in points if step is not None and value is not None)


def _number(value: object) -> float | None:
    """`value` as a finite float, None when it is anything else (a bool is no number)."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def smoothed(values: Sequence[float]) -> list[float]:
    """Mean over a centred window of about a tenth of the values, shorter at both ends.

    Centred, and not an exponential mean, because a lagging line puts every bend of the curve too late.
    """
    half = max(1, len(values) // 20)
    windows = [values[max(0, index - half) : index + half + 1] for index in range(len(values))]
    return [math.fsum(window) / len(window) for window in windows]


def _draw(panel: Panel, lines: Sequence[tuple[str, Points]]) -> str:
    """The SVG of one panel with at least one line."""
    with figure(3.3, 2.1) as drawn:
        axes = drawn.subplots()
        for index, (label, points) in enumerate(lines):
            _draw_line(axes, label, points, index, panel.is_smoothed)
        axes.locator_params(axis="both", nbins=5)
        axes.locator_params(axis="x", integer=True)
        axes.ticklabel_format(axis="y", scilimits=(-3, 5))
        axes.tick_params(labelsize=9)
        axes.margins(x=0.03, y=0.12)
        axes.set_xlabel("step", fontsize=9, loc="right", labelpad=1)
        if len(lines) > 1:
            _legend_above(axes)
        return to_svg(drawn, _name(panel), f"{panel.title}, by training step")


def _legend_above(axes: Axes) -> None:
    """Name the lines above the panel, where they cannot cover one."""
    axes.legend(
        fontsize=9,
        labelcolor=THEME["muted"],
        loc="lower left",
        bbox_to_anchor=(-0.12, 1.0),
        ncols=len(axes.lines),
        handlelength=1.0,
        handletextpad=0.4,
        columnspacing=1.0,
        borderaxespad=0.0,
    )


def _draw_line(axes: Axes, label: str, points: Points, index: int, is_smoothed: bool) -> None:
    """One metric: markers when there are few points, else a faint line under a smoothed one."""
    colour = THEME[SERIES[index]]
    steps = [step for step, _ in points]
    values = [value for _, value in points]
    if len(points) <= FEW_POINTS:
        axes.plot(steps, values, color=colour, linewidth=1.8, marker=MARKERS[index], markersize=4, label=label)
    elif is_smoothed:
        axes.plot(steps, values, color=colour, linewidth=0.9, alpha=0.3)
        axes.plot(steps, smoothed(values), color=colour, linewidth=2, label=label)
    else:
        axes.plot(steps, values, color=colour, linewidth=1.8, label=label)


def _name(panel: Panel) -> str:
    """Prefix of the panel's ids."""
    return "metric-" + panel.lines[0][0].replace("_", "-")
