"""The report as a page of Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from benchmarks.agreement.comparison import Outcome
from benchmarks.agreement.reasons import Reasons

_HEAD = """# Agreement of the grader with known verdicts

Written by `python -m benchmarks.agreement --data FOLDER --out FOLDER --page docs/results/grader-agreement.md`
(run at the root of the checkout, over the data sets' folder). It grades programs whose verdict is known:
reference solutions must pass, buggy programs and controls (a function that returns None, a program for another
problem, a wrong expected output) must fail, programs of models must end as their source recorded it. A verdict
is that on all tests of the problem together. Every difference is listed with its reason; the command ends with
status 1 when one has none. Where fewer programs were graded than there are, they are a sample: every so
many-th (`--stride`) or the first (`--limit`) of the data set.

"""


def render_page(
    found: Mapping[str, Sequence[Outcome]],
    totals: Mapping[str, int],
    reasons: Reasons,
    descriptions: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """The page: a table of the data sets, then the differences of each by reason.

    `totals` are the numbers of programs that there are; a run may have graded a sample of them.
    `descriptions` say what is graded.
    """
    graded = {name: outcomes for name, outcomes in found.items() if outcomes}
    sections = [_section(name, outcomes, reasons, descriptions.get(name, "")) for name, outcomes in graded.items()]
    return _HEAD + _table(graded, totals) + "".join(sections)


def _table(found: Mapping[str, Sequence[Outcome]], totals: Mapping[str, int]) -> str:
    lines = [
        "| data set | programs | graded | known to pass | known to fail | agree | differ | tests |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, outcomes in found.items():
        passing = sum(outcome.known == "passed" for outcome in outcomes)
        agreeing = sum(outcome.agrees for outcome in outcomes)
        tests = sum(outcome.tests for outcome in outcomes)
        counts = (
            totals[name],
            len(outcomes),
            passing,
            len(outcomes) - passing,
            agreeing,
            len(outcomes) - agreeing,
            tests,
        )
        lines.append(f"| {name} | " + " | ".join(f"{count:,}" for count in counts) + " |")
    return "\n".join(lines) + "\n"


def _section(name: str, outcomes: Sequence[Outcome], reasons: Reasons, description: str) -> str:
    differing = [outcome for outcome in outcomes if not outcome.agrees]
    parts = [f"\n## {name}\n", f"\n{description}\n" if description else "", "" if differing else "\nAll agree.\n"]
    for reason in reasons.of(name):
        group = [outcome for outcome in differing if outcome.program_id in reason.program_ids]
        if group:
            parts.append(f"\n**{len(group)}**: {reason.text}\n{_list(group)}")
    unexplained = [outcome for outcome in differing if reasons.reason_for(name, outcome.program_id) is None]
    if unexplained:
        parts.append(f"\n**{len(unexplained)}** without a known reason.\n{_list(unexplained)}")
    return "".join(parts)


def _list(group: Sequence[Outcome]) -> str:
    """The verdicts of a group, the rarer ones not lost among the others."""
    lines = []
    for known, ours in sorted({(outcome.known, outcome.ours) for outcome in group}):
        ids = [outcome.program_id for outcome in group if (outcome.known, outcome.ours) == (known, ours)]
        lines.append(f"- known {known}, ours {ours}: {', '.join(ids)}\n")
    return "\n" + "".join(lines)
