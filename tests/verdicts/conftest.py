from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from smalt.grading.grader import Grader
from smalt.grading.verdicts import Grade
from smalt.problems.problem import CallTest, CodeTest, Limits, Problem, StdinTest, TestCase
from smalt.sandbox.forkserver import ForkServerSandbox

Judge = Callable[..., Grade]


@pytest.fixture(scope="package")
def sandbox() -> Iterator[ForkServerSandbox]:
    with ForkServerSandbox(workers=1) as opened:
        yield opened


@pytest.fixture(scope="package")
def grader(sandbox: ForkServerSandbox) -> Grader:
    return Grader(sandbox, Limits(cpu_seconds=4.0, wall_seconds=20.0))


@pytest.fixture(scope="package")
def judge(grader: Grader) -> Judge:
    """Grade a program on tests, all of them public; keywords are fields of the problem."""

    def grade(program: str, *tests: TestCase, **fields: Any) -> Grade:
        return grader.grade(problem(*tests, **fields), program)

    return grade


def problem(*tests: TestCase, **fields: Any) -> Problem:
    """Return a problem with these public tests."""
    return Problem(**{"id": "row", "statement": "See the test.", "public_tests": tests, **fields})


def printed(expected: str, stdin: str = "") -> StdinTest:
    """Return the test that `expected` is printed."""
    return StdinTest(stdin=stdin, expected=expected)


def returned(expected: Any, *args: Any) -> CallTest:
    """Return the test that the call returns `expected`."""
    return CallTest(args=args, expected=expected)


def asserted(code: str) -> CodeTest:
    """Return the test that `code` ends well."""
    return CodeTest(code=code)
