"""A comparison's figures as rows of text, and as a Markdown page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from smalt.reports.charts import duration
from smalt.reports.comparison_file import BudgetSummary, ComparisonSummary, MethodSummary
from smalt.reports.run_folder import DifferenceSummary
from smalt.reports.table import NOTHING, points, share

UNTRAINED = "before training"
DIFFICULTY = "Thirds of the problems by the share of the untrained policies' first programs that pass."
Row = tuple[str, ...]


def by_turn_table_rows(summary: ComparisonSummary) -> list[Row]:
    """Head, then for the untrained policy and each method "56.2 (49.0 to 63.5)" at each turn, in percent."""
    figures = {UNTRAINED: summary.before.by_turn()} | {m.name: m.evaluation.by_turn() for m in summary.methods}
    turns = range(len(summary.before.pass_at_1))
    head = ("Method", *(f"Turn {turn + 1}" for turn in turns))
    return [head, *((name, *(share(it, turn) for turn in turns)) for name, it in figures.items())]


def overview_rows(summary: ComparisonSummary) -> list[Row]:
    """As `by_turn_table_rows`, for the turns of `told_turns` only: narrow enough for a terminal."""
    turns = told_turns(summary)
    return [(row[0], *(row[turn] for turn in turns)) for row in by_turn_table_rows(summary)]


def gain_rows(summary: ComparisonSummary) -> list[Row]:
    """Head, then each method's gain over the untrained policy, in points, at the turns of `told_turns`."""
    turns = told_turns(summary)
    head = ("Method", *(f"Turn {turn}" for turn in turns))
    return [head, *((m.name, *(change(m.gain, turn) for turn in turns)) for m in summary.methods)]


def pair_rows(summary: ComparisonSummary) -> list[Row]:
    """Head, then for each pair of methods the difference in points at the turns of `told_turns`."""
    turns = told_turns(summary)
    head = ("Difference", *(f"Turn {turn}" for turn in turns))
    rows = ((f"{p.second} − {p.first}", *(change(p, turn) for turn in turns)) for p in summary.pairs)
    return [head, *rows]


def difficulty_rows(summary: ComparisonSummary) -> list[Row]:
    """Head, then for each pair the difference in points at the last turn, by thirds of the problems."""
    last = len(summary.before.pass_at_1)
    head = ("Difference", "Hardest third", "Middle third", "Easiest third")
    pairs = [pair for pair in summary.pairs if pair.by_difficulty]
    rows = ((f"{p.second} − {p.first}", *(change(third, last) for third in p.by_difficulty)) for p in pairs)
    return [head, *rows]


def cost_rows(summary: ComparisonSummary) -> list[Row]:
    """Head, then what each method's runs cost in the mean."""
    head = (
        "Method",
        "Steps",
        "Examples",
        "Programs",
        "Tokens collecting",
        "Tokens training",
        "Seconds collecting",
        "Seconds training",
        "Tokens an example",
        "Seconds an example",
        "Groups without signal",
    )
    return [head, *(_cost_row(method) for method in summary.methods)]


def told_turns(summary: ComparisonSummary) -> list[int]:
    """Turns, counted from 1, that differences are told at: the first, the last of training, the last."""
    last = len(summary.before.pass_at_1)
    trained = max(method.training_turns for method in summary.methods)
    return sorted({1, min(trained, last), last})


def budget_text(budget: BudgetSummary) -> str:
    """ "300,000 sampled tokens a run, stored trajectories included"."""
    amount = f"{budget.amount:,.0f} sampled tokens" if budget.cost == "sampled_tokens" else duration(budget.amount)
    return f"{amount} a run, stored trajectories {'included' if budget.includes_collection else 'not included'}"


def how_text(summary: ComparisonSummary) -> str:
    """What the figures are and how their intervals were made."""
    before = summary.before
    return (
        f"Seeds: {summary.seeds}; held-out problems: {before.problems}, dialogues of each: "
        f"{before.samples_per_problem:g}; {summary.protocol}. Pass@1 at a turn is that turn's "
        "own program on the hidden tests, not the best so far. Intervals: 95 %, percentile bootstrap that redraws "
        "seeds and problems, each with replacement; differences are paired by seed and problem. With few seeds they "
        "are too narrow, and with one they say nothing about seeds. Of many pairs, one in twenty excludes 0 by chance."
    )


def change(difference: DifferenceSummary, turn: int) -> str:
    """ "+9.0 (+6.1 to +12.2)" in points at a turn counted from 1; a dash where it was not evaluated."""
    if turn > len(difference.difference):
        return NOTHING
    low, high = difference.ci95[turn - 1]
    return f"{points(difference.difference[turn - 1])} ({points(low)} to {points(high)})"


def comparison_markdown(summary: ComparisonSummary) -> str:
    """The page of a comparison."""
    parts = [
        "# Comparison",
        f"Budget: {budget_text(summary.budget)}.",
        how_text(summary),
        "## Pass@1 by turn, %",
        _markdown(by_turn_table_rows(summary)),
        "## Gain over the untrained policy, points",
        _markdown(gain_rows(summary)),
        "## Differences between methods, points",
        _markdown(pair_rows(summary)),
        "## Differences at the last turn by difficulty, points",
        DIFFICULTY,
        _markdown(difficulty_rows(summary)),
        "## Cost of a run, mean",
        _markdown(cost_rows(summary)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _cost_row(method: MethodSummary) -> Row:
    cost = method.cost
    without = cost.groups_without_signal
    return (
        method.name,
        f"{cost.steps:.0f}",
        f"{cost.examples:.0f}",
        f"{cost.programs:.0f}",
        f"{cost.collection_tokens:,.0f}",
        f"{cost.training_tokens:,.0f}",
        f"{cost.collection_seconds:.0f}",
        f"{cost.training_seconds:.0f}",
        f"{cost.tokens_per_example:.0f}",
        f"{cost.seconds_per_example:.3g}",
        NOTHING if without is None else f"{without:.2f}",
    )


def _markdown(rows: Sequence[Row]) -> str:
    """A table with its first row as head; none without a second."""
    return "\n".join(_markdown_lines(rows)) if len(rows) > 1 else "Nothing to compare."


def _markdown_lines(rows: Sequence[Row]) -> Iterator[str]:
    head, *body = rows
    for row in (head, ("---",) * len(head), *body):
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
