"""Charts that set many methods side by side: pure functions from plain data to the text of an SVG element.

With eight methods, eight colours in one chart are a riddle. So each method gets a panel of its own, in which it is
drawn strongly over the others' faint lines; and one chart of points and intervals has all of them in a column.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smalt.evaluation.pass_at_k import ByTurn
from smalt.reports.svg import THEME, figure, to_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = 4


@dataclass(frozen=True)
class Line:
    """A curve with a band."""

    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


@dataclass(frozen=True)
class Labels:
    """What a chart says beside its data; `name` prefixes its ids in the page."""

    name: str
    title: str
    x: str
    y: str


def panels_chart(lines: Mapping[str, Line], labels: Labels, baseline: Line | None = None) -> str:
    """A panel for each line, drawn over the others; `baseline`, dashed, is in all of them. The axes are shared.

    Raises ValueError when there is nothing to draw.
    """
    if not lines:
        raise ValueError("there is no method to draw")
    columns = min(_COLUMNS, len(lines))
    rows = math.ceil(len(lines) / columns)
    with figure(2.35 * columns, 2.0 * rows + 0.3) as drawn:
        grid = drawn.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        places = [axes for row in grid for axes in row]
        for axes, name in zip(places, lines, strict=False):
            _draw_panel(axes, name, lines, baseline)
        for axes in places[len(lines) :]:
            axes.set_visible(False)
        drawn.supxlabel(labels.x, fontsize=9.5, color=THEME["muted"])
        drawn.supylabel(labels.y, fontsize=9.5, color=THEME["muted"])
        return to_svg(drawn, labels.name, f"{labels.title}: {', '.join(lines)}")


def _draw_panel(axes: Axes, name: str, lines: Mapping[str, Line], baseline: Line | None) -> None:
    for other, line in lines.items():
        if other != name:
            axes.plot(line.x, line.y, color=THEME["muted"], linewidth=0.8, alpha=0.35, zorder=2)
    if baseline is not None:
        axes.plot(baseline.x, baseline.y, color=THEME["ink"], linewidth=1.1, linestyle=(0, (4, 3)), zorder=3)
    own = lines[name]
    axes.fill_between(own.x, own.low, own.high, color=THEME["main"], alpha=0.16, linewidth=0, zorder=1)
    axes.plot(own.x, own.y, color=THEME["main"], linewidth=2.2, zorder=4)
    axes.set_title(name, fontsize=10, color=THEME["ink"], loc="left")
    axes.locator_params(axis="both", nbins=4)
    axes.tick_params(labelsize=8.5)


def intervals_chart(evaluations: Mapping[str, ByTurn], turns: Sequence[int], labels: Labels) -> str:
    """A row for each evaluation, a column of points with intervals for each turn (counted from 1).

    Raises ValueError when there is nothing to draw.
    """
    if not evaluations or not turns:
        raise ValueError("there is no evaluation to draw")
    with figure(9.4, 0.9 + 0.3 * len(evaluations)) as drawn:
        [columns] = drawn.subplots(1, len(turns), sharex=True, sharey=True, squeeze=False)
        for axes, turn in zip(columns, turns, strict=True):
            _draw_intervals(axes, list(evaluations.values()), turn)
        columns[0].set_yticks(range(len(evaluations)), list(evaluations))
        columns[0].tick_params(axis="y", labelcolor=THEME["ink"])
        columns[0].invert_yaxis()
        drawn.supxlabel(labels.x, fontsize=9.5, color=THEME["muted"])
        return to_svg(drawn, labels.name, f"{labels.title}: {', '.join(evaluations)}")


def _draw_intervals(axes: Axes, evaluations: Sequence[ByTurn], turn: int) -> None:
    for place, evaluation in enumerate(evaluations):
        low, high = (100 * bound for bound in evaluation.ci95[turn - 1])
        colour = THEME["muted" if place == 0 else "main"]
        axes.plot([low, high], [place, place], color=colour, linewidth=2.2, alpha=0.45, solid_capstyle="butt")
        axes.plot([100 * evaluation.pass_at_1[turn - 1]], [place], color=colour, marker="o", markersize=6)
    axes.set_title(f"Turn {turn}", fontsize=10, color=THEME["ink"], loc="left")
    axes.grid(visible=True, axis="x")
    axes.grid(visible=False, axis="y")
    axes.locator_params(axis="x", nbins=6)
