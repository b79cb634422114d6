"""Pass@1 by turn as a table for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from smalt.evaluation.pass_at_k import ByTurn, PairedDifference

NOTHING = "–"
TITLE = "Pass@1 by turn, % (95 % interval)"


def evaluation_table(evaluation: ByTurn) -> Table:
    """A rich table of Pass@1 by turn of one evaluation, in percent with 95 % intervals."""
    turns = range(len(evaluation.pass_at_1))
    return text_table(TITLE, [("Turn", "Pass@1"), *((str(turn + 1), share(evaluation, turn)) for turn in turns)])


def by_turn_table(before: ByTurn | None, after: ByTurn | None, difference: PairedDifference | None = None) -> Table:
    """A rich table of Pass@1 by turn, in percent with 95 % intervals, and of the difference in points.

    Either evaluation may be missing. The difference has an interval when `difference` is given; two intervals
    alone do not determine it, because both evaluations see the same problems.
    """
    table = Table(title=TITLE, title_justify="left")
    table.add_column("Turn", justify="right")
    for name in ("Before", "After", "Difference"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in by_turn_rows(before, after, difference):
        table.add_row(*row)
    return table


def text_table(title: str, rows: Sequence[Sequence[str]]) -> Table:
    """A rich table of cells as they are; the first row is the head, the first column names the others."""
    table = Table(title=title, title_justify="left")
    for place, name in enumerate(rows[0]):
        table.add_column(name, justify="right" if place else "left", no_wrap=True)
    for row in rows[1:]:
        table.add_row(*row)
    return table


def by_turn_rows(
    before: ByTurn | None, after: ByTurn | None, difference: PairedDifference | None = None
) -> list[tuple[str, str, str, str]]:
    """Turn, before, after and difference as text, one row per turn of the longer evaluation."""
    turns = max(len(evaluation.pass_at_1) if evaluation else 0 for evaluation in (before, after))
    return [
        (str(turn + 1), share(before, turn), share(after, turn), gain(before, after, turn, difference))
        for turn in range(turns)
    ]


def share(evaluation: ByTurn | None, turn: int) -> str:
    """ "31.7 (28.0 to 35.2)" for a turn counted from 0; a dash when it was not evaluated."""
    if evaluation is None or turn >= len(evaluation.pass_at_1):
        return NOTHING
    low, high = evaluation.ci95[turn]
    return f"{100 * evaluation.pass_at_1[turn]:.1f} ({100 * low:.1f} to {100 * high:.1f})"


def gain(before: ByTurn | None, after: ByTurn | None, turn: int, difference: PairedDifference | None = None) -> str:
    """ "+9.0 (+6.1 to +12.2)" in points; without an interval when none is known; a dash without both."""
    if before is None or after is None or turn >= min(len(before.pass_at_1), len(after.pass_at_1)):
        return NOTHING
    if difference is None or turn >= len(difference.difference):
        return points(after.pass_at_1[turn] - before.pass_at_1[turn])
    low, high = difference.ci95[turn]
    return f"{points(difference.difference[turn])} ({points(low)} to {points(high)})"


def points(change: float) -> str:
    """A change of a share as signed percentage points; no minus sign on what rounds to zero."""
    rounded = round(100 * change, 1) + 0.0
    return f"{rounded:+.1f}" if rounded else "0.0"
