"""The report of a comparison: one HTML file without scripts that needs no network."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

from smalt.reports.comparison_charts import Labels, Line, intervals_chart, panels_chart
from smalt.reports.comparison_file import ComparisonSummary, Cost, Quantity
from smalt.reports.comparison_tables import (
    DIFFICULTY,
    UNTRAINED,
    budget_text,
    by_turn_table_rows,
    cost_rows,
    difficulty_rows,
    gain_rows,
    how_text,
    pair_rows,
    told_turns,
)
from smalt.reports.pages import page_templates, write_page
from smalt.reports.run_folder import EvaluationSummary

_COSTS: dict[Cost, str] = {
    "sampled_tokens": "Sampled tokens, thousands",
    "seconds": "Seconds of sampling, grading and training",
}
_QUANTITIES: dict[Quantity, str] = {
    "solved_share": "Training programs that pass all tests, share",
    "reward_mean": "Reward, mean",
}


def write_comparison_report(summary: ComparisonSummary, name: str, target: Path) -> None:
    """Write the report, as a whole or not at all; `name` is its title."""
    write_page(target, render_comparison_report(summary, name))


def render_comparison_report(summary: ComparisonSummary, name: str) -> str:
    """The report as HTML. The charts' SVG is our own and must not be escaped."""
    return (
        page_templates()
        .get_template("comparison.html.j2")
        .render(
            name=name,
            budget=budget_text(summary.budget),
            how=how_text(summary),
            overview=Markup(_overview(summary)),
            by_turn=Markup(_by_turn(summary)),
            by_turn_rows=by_turn_table_rows(summary),
            gain_rows=gain_rows(summary),
            pair_rows=pair_rows(summary),
            difficulty_rows=difficulty_rows(summary),
            difficulty=DIFFICULTY,
            cost_rows=cost_rows(summary),
            curves=[
                (f"{_QUANTITIES[quantity]}, against {cost.replace('_', ' ')}", Markup(_curves(summary, quantity, cost)))
                for quantity in _QUANTITIES
                for cost in _COSTS
            ],
        )
    )


def _overview(summary: ComparisonSummary) -> str:
    figures = {UNTRAINED: summary.before} | {method.name: method.evaluation for method in summary.methods}
    labels = Labels("overview", "Pass@1 with 95 % intervals", "Pass@1, %", "")
    return intervals_chart({name: it.by_turn() for name, it in figures.items()}, told_turns(summary), labels)


def _by_turn(summary: ComparisonSummary) -> str:
    lines = {method.name: _line_by_turn(method.evaluation) for method in summary.methods}
    return panels_chart(lines, Labels("by-turn", "Pass@1 by turn", "Turn", "Pass@1, %"), _line_by_turn(summary.before))


def _line_by_turn(evaluation: EvaluationSummary) -> Line:
    return Line(
        x=range(1, len(evaluation.pass_at_1) + 1),
        y=[100 * share for share in evaluation.pass_at_1],
        low=[100 * low for low, _ in evaluation.ci95],
        high=[100 * high for _, high in evaluation.ci95],
    )


def _curves(summary: ComparisonSummary, quantity: Quantity, cost: Cost) -> str:
    lines = {}
    for method in summary.methods:
        [curve] = [curve for curve in method.curves if (curve.quantity, curve.cost) == (quantity, cost)]
        scale = 1e-3 if cost == "sampled_tokens" else 1.0
        lines[method.name] = Line([scale * spent for spent in curve.spent], curve.mean, curve.low, curve.high)
    name = f"{quantity}-{cost}".replace("_", "-")
    return panels_chart(lines, Labels(name, _QUANTITIES[quantity], _COSTS[cost], ""))
