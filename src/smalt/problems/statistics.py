"""Counts over a list of problems, for a look before a run."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence

from smalt.problems.problem import CallTest, Problem, StdinTest, TestCase


def problem_statistics(problems: Sequence[Problem]) -> dict[str, str]:
    """Names and values of the counts, in the order to show them."""
    lengths = [len(problem.statement) for problem in problems] or [0]
    texts = Counter((problem.statement.strip(), problem.starter_code) for problem in problems)
    rows = {
        "problems": len(problems),
        "with public tests": sum(bool(problem.public_tests) for problem in problems),
        "with hidden tests": sum(bool(problem.hidden_tests) for problem in problems),
        "with a reference solution": sum(bool(problem.solutions) for problem in problems),
        "with starter code": sum(bool(problem.starter_code) for problem in problems),
        "with an entry point": sum(bool(problem.entry_point) for problem in problems),
        "that repeat another's statement": sum(count - 1 for count in texts.values()),
    }
    return {
        **{name: str(value) for name, value in rows.items()},
        "public tests": _by_kind(test for problem in problems for test in problem.public_tests),
        "hidden tests": _by_kind(test for problem in problems for test in problem.hidden_tests),
        "statement characters (least, median, most)": (
            f"{min(lengths)}, {statistics.median_high(lengths)}, {max(lengths)}"
        ),
        "splits": _counts(
            Counter(str(problem.metadata["split"]) for problem in problems if "split" in problem.metadata)
        ),
    }


def kind_of_test(test: TestCase) -> str:
    """The kind of a test by the field that makes it: stdin, call or code."""
    if isinstance(test, StdinTest):
        return "stdin"
    return "call" if isinstance(test, CallTest) else "code"


def _by_kind(tests: Iterable[TestCase]) -> str:
    kinds = Counter(kind_of_test(test) for test in tests)
    total = kinds.total()
    return f"{total} ({_counts(kinds)})" if total else "0"


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counter.items())) or "none"
