"""Data sets of functions: HumanEval, MBPP, their extensions, LeetCodeDataset, QuixBugs, CRUXEval."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.agreement.cases import Case, empty_answers, problem_of_tests, references
from benchmarks.agreement.json_lines import objects
from smalt.problems.asserts import NotALiteralError, call_arguments, literal
from smalt.problems.evalplus import read_evalplus
from smalt.problems.humaneval import read_humaneval
from smalt.problems.leetcode import read_leetcode
from smalt.problems.mbpp import read_mbpp
from smalt.problems.problem import CallTest, CodeTest, Limits, Problem, TestCase


def humaneval(data: Path) -> Iterator[Case]:
    """HumanEval's solutions."""
    yield from _solved(read_humaneval(data / "humaneval/HumanEval.jsonl.gz"))


def humaneval_plus(data: Path) -> Iterator[Case]:
    """HumanEval+'s solutions on its many tests."""
    yield from _solved(read_evalplus(data / "humanevalplus/HumanEvalPlus-OriginFmt.jsonl.gz"))


def humanevalpack(data: Path) -> Iterator[Case]:
    """HumanEvalPack's solutions and the same programs with one bug each."""
    path = data / "humanevalpack/humanevalpack_python.jsonl"
    problems = read_humaneval(path)
    yield from references(problems)
    for problem, fields in zip(problems, objects(path), strict=True):
        program = fields["prompt"] + fields["buggy_solution"]
        yield Case(f"{problem.id} buggy", "buggy", problem, program, passes=False, recorded_as=fields["bug_type"])


def mbpp(data: Path) -> Iterator[Case]:
    """The solutions of MBPP, all 974."""
    yield from _solved(read_mbpp(data / "mbpp/mbpp.jsonl"))


def mbpp_sanitized(data: Path) -> Iterator[Case]:
    """The solutions of the sanitized MBPP."""
    yield from _solved(read_mbpp(data / "mbpp/sanitized-mbpp.json"))


def mbpp_plus(data: Path) -> Iterator[Case]:
    """MBPP+'s solutions on its many tests."""
    yield from _solved(read_evalplus(data / "mbppplus/MbppPlus-OriginFmt.jsonl.gz"))


def leetcode(data: Path) -> Iterator[Case]:
    """LeetCodeDataset's solutions."""
    for name in ("LeetCodeDataset-v0.3.1-test.jsonl.gz", "v0.2.0-train-every8th.jsonl.gz"):
        yield from _solved(read_leetcode(data / "leetcodedataset" / name))


def _solved(problems: Iterable[Problem]) -> Iterator[Case]:
    problems = list(problems)
    yield from references(problems)
    yield from empty_answers(problems)


_QUIXBUGS_LIMITS = (Limits(cpu_seconds=10, wall_seconds=600), Limits(cpu_seconds=1, wall_seconds=100))
_GENERATORS = ("flatten", "kheapsort")
"""QuixBugs' programs that return a generator, which its tests turn into a list."""


def quixbugs(data: Path) -> Iterator[Case]:
    """QuixBugs' programs, buggy and corrected."""
    for fields in objects(data / "quixbugs/quixbugs_json31.jsonl"):
        name = fields["name"]
        problem = problem_of_tests(name, [_quixbugs_test(name, test) for test in fields["tests"]], fields["fn_name"])
        # Some corrected programs are slow, some buggy ones never end.
        patient, impatient = (problem.model_copy(update={"limits": limits}) for limits in _QUIXBUGS_LIMITS)
        yield Case(name, "reference", patient, fields["correct"], passes=True)
        yield Case(f"{name} buggy", "buggy", impatient, fields["buggy"], passes=False)


def _quixbugs_test(name: str, test: dict[str, Any]) -> TestCase:
    arguments = test["args"] if isinstance(test["args"], list) else [test["args"]]
    if name in _GENERATORS:
        return CodeTest(code=f"assert list({name}(*{arguments!r})) == {test['expected']!r}")
    if name == "sqrt":  # as precise as its last argument asks for
        return CodeTest(code=f"assert abs({name}(*{arguments!r}) - {test['expected']!r}) <= {arguments[-1]!r}")
    return CallTest(args=tuple(arguments), expected=test["expected"])


def cruxeval(data: Path) -> Iterator[Case]:
    """CRUXEval's functions with their output, and with the output of the next function, which is wrong."""
    rows = list(objects(data / "cruxeval/cruxeval.jsonl"))
    for index, fields in enumerate(rows):
        other = rows[(index + 1) % len(rows)]["output"]
        right, wrong = (_cruxeval_problem(fields, output) for output in (fields["output"], other))
        yield Case(fields["id"], "reference", right, fields["code"], passes=True)
        if ast.dump(ast.parse(other)) != ast.dump(ast.parse(fields["output"])):
            yield Case(f"{fields['id']} wrong output", "control", wrong, fields["code"], passes=False)


def _cruxeval_problem(fields: dict[str, Any], output: str) -> Problem:
    call = f"f({fields['input']})"
    test: TestCase = CodeTest(code=f"assert {call} == {output}")
    arguments = call_arguments(ast.parse(call, mode="eval").body, "f")
    if arguments is not None:
        with contextlib.suppress(NotALiteralError):
            test = CallTest(args=arguments, expected=literal(output))
    return problem_of_tests(fields["id"], [test], "f")
