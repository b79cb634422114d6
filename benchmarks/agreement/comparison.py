"""Grading the cases of a data set, one line of JSON a case; a run that was stopped goes on where it ended."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.agreement.cases import Case
from smalt.grading.grader import Grader
from smalt.grading.verdicts import PublicResult, Status
from smalt.problems.problem import CallTest, StdinTest

_DETAIL = 400
"""Characters kept of what went wrong."""


@dataclass(frozen=True)
class Outcome:
    """Our verdict beside the known one."""

    program_id: str
    kind: str
    known: str
    """`passed` or `failed`."""
    recorded_as: str
    ours: str
    """`passed`, or the status of the first test that did not pass."""
    tests: int
    is_low_trust: bool
    """Whether the verdict rests on test code that shared its interpreter with the program."""
    detail: str
    """What went wrong in the first test that did not pass."""
    cpu_seconds: float

    @property
    def agrees(self) -> bool:
        """Whether both verdicts are the same; an infra error agrees with nothing."""
        if self.ours == Status.INFRA_ERROR:
            return False
        return (self.ours == Status.PASSED) == (self.known == "passed")


def compare_cases(cases: Iterable[Case], grader: Grader, path: Path) -> Iterator[Outcome]:
    """Grade the cases that `path` has no line of yet, and yield the outcomes of all.

    Raises ValueError when two cases have one id: the second would be given the first one's outcome.
    """
    seen: set[str] = set()
    known = {outcome.program_id: outcome for outcome in read_outcomes(path)}
    path.parent.mkdir(parents=True, exist_ok=True)
    # Written anew, because the line that a kill interrupted must go.
    path.write_text("".join(map(_line, known.values())), encoding="utf-8")
    with path.open("a", encoding="utf-8") as file:
        for case in cases:
            if case.program_id in seen:
                raise ValueError(f"two cases are called {case.program_id!r}")
            seen.add(case.program_id)
            outcome = known.get(case.program_id)
            if outcome is None:
                outcome = outcome_of(case, grader)
                file.write(_line(outcome))
                file.flush()
            yield outcome


def read_outcomes(path: Path) -> list[Outcome]:
    """The outcomes that a file holds; an unfinished last line is left out."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    return [Outcome(**json.loads(line)) for line in lines]


def _line(outcome: Outcome) -> str:
    return json.dumps(asdict(outcome)) + "\n"


def outcome_of(case: Case, grader: Grader) -> Outcome:
    """Grade one case."""
    problem = case.problem
    # With every test public the grade says what went wrong; the verdicts are the same.
    shown = problem.model_copy(
        update={"public_tests": (*problem.public_tests, *problem.hidden_tests), "hidden_tests": ()}
    )
    grade = grader.grade(shown, case.program)
    failed = next((result for result in grade.public if not result.passed), None)
    return Outcome(
        program_id=case.program_id,
        kind=case.kind,
        known="passed" if case.passes else "failed",
        recorded_as=case.recorded_as,
        ours=grade.status.value,
        tests=len(shown.public_tests),
        is_low_trust=grade.is_low_trust,
        detail=_detail(failed) if failed else "",
        cpu_seconds=round(grade.cpu_seconds, 4),
    )


def _detail(result: PublicResult) -> str:
    if result.status is not Status.WRONG_ANSWER:
        return result.error[-_DETAIL:]
    match result.test:
        case StdinTest(stdin=given, expected=expected):
            return f"on {_cut(given)} printed {_cut(result.output)}, expected {_cut(expected)}"
        case CallTest(args=args, expected=expected):
            return f"on {_cut(args)} returned {result.output[:_DETAIL]}, expected {_cut(expected)}"
        case _:
            return result.error[-_DETAIL:]


def _cut(value: object) -> str:
    return repr(value)[:_DETAIL]
