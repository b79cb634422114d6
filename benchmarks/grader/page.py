"""The results as a page of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from benchmarks.grader import designs
from benchmarks.grader.goals import goals
from benchmarks.grader.interleaved import Comparison
from benchmarks.grader.plan import FORMS
from benchmarks.grader.results import Results

_TITLES = {
    "stdin": "Programs that read stdin",
    "call": "Functions that are called",
    "assert": "Assert style: one check function a program",
}


def page(results: Results) -> str:
    """Goals, tables and setting."""
    parts = [_section("Goals", _goal_table(results))]
    for form in FORMS:
        found = [item for item in results.comparisons if item.title.startswith(f"{form}, ") and not _is_large(item)]
        if found:
            parts.append(_section(_TITLES[form], _form_table(found)))
    for comparison in results.comparisons:
        if comparison.title == "numpy":
            parts.append(_section("numpy", _form_table([comparison])))
    large = [comparison for comparison in results.comparisons if _is_large(comparison)]
    for comparison in large:
        size = comparison.ballast_bytes / 2**30
        parts.append(
            _section(f"From a parent that holds {size:.1f} GiB: {comparison.load.form}", _form_table([comparison]))
        )
    parts.append(_section("Workers", _pool_table(results)))
    parts.append(_section("Setting", _setting(results)))
    return "\n".join(parts)


def _section(title: str, lines: Iterable[str]) -> str:
    return "\n".join([f"## {title}", "", *lines, ""])


def _is_large(comparison: Comparison) -> bool:
    return comparison.ballast_bytes > 0


def _row(cells: Iterable[object]) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    yield _row(head)
    yield _row(["---", *["---:"] * (len(head) - 1)])
    for row in rows:
        yield _row(row)


def _goal_table(results: Results) -> Iterator[str]:
    rows = []
    for goal in goals(results):
        sign = "<=" if goal.is_upper_bound else ">="
        value = "" if goal.value is None else f"{goal.value:,.3g}" if goal.value < 1000 else f"{goal.value:,.0f}"
        rows.append((goal.text, f"{sign} {goal.bound:,g} {goal.unit}", value, goal.verdict))
    return _table(("goal", "wanted", "measured", ""), rows)


def _form_table(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """One row a design; the columns of a number of tests side by side."""
    head = ["design"]
    for comparison in comparisons:
        tests = comparison.load.tests
        head += [f"programs/s/core, {tests} tests", "tests/s/core", "CPU time, ours = 1"]
    rows = [_design_row(found.design, comparisons) for found in comparisons[0].measurements]
    return _table([*head, "rejected"], rows)


def _design_row(design: str, comparisons: Sequence[Comparison]) -> list[str]:
    cells, rejected, asked = [design], 0, 0
    for comparison in comparisons:
        found = comparison.of(design)
        ratio = comparison.ratio(design, designs.BATCH)
        if found is None or ratio is None:
            cells += ["", "", ""]
            continue
        rate = 1 / found.typical_seconds
        cells += [_number(rate), _number(rate * comparison.load.tests), f"{ratio:.2f}"]
        asked += comparison.load.programs
        rejected += comparison.load.programs - found.passed
    is_floor = design.startswith("floor")
    return [*cells, "" if is_floor else f"{rejected} of {asked}"]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _pool_table(results: Results) -> Iterator[str]:
    pool = results.pool
    rows: list[Sequence[object]] = []
    for throughput in pool.throughput:
        rate = throughput.programs / throughput.wall_seconds
        text = f"{throughput.programs} programs of {throughput.tests} tests, {throughput.workers} workers"
        rows.append((text, f"{rate:,.0f} programs/s ({rate * throughput.tests:,.0f} tests/s) by the wall"))
        rows.append(
            (f"the caller's part of a core, {throughput.workers} workers", f"{throughput.caller_share:.1%} a worker")
        )
    for workers, seconds in pool.start_seconds.items():
        rows.append((f"start until each of {workers} workers has graded", f"{seconds * 1e3:.0f} ms"))
    for moment, memory in pool.memory.items():
        text = f"memory of a worker {moment}"
        rows.append((text, f"{memory.proportional:.0f} MiB proportional, {memory.resident:.0f} MiB resident"))
    return _table(("", ""), rows)


def _setting(results: Results) -> Iterator[str]:
    for name, value in results.setting.items():
        yield f"- {name}: {value}"
    yield f"- CPU time from: {results.comparisons[0].clock_source}"
