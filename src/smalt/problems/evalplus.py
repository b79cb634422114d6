"""HumanEval+ and MBPP+ (Liu et al. 2023, arXiv 2305.01210), the releases whose tests hold expected results.

Those are the files named `OriginFmt`: HumanEval's or MBPP's fields, with a `test` that lists inputs and
results and compares them in a loop. Taken apart into call tests, the results stay out of the program's
reach. Some tests compare in a way of their own (against a reference function, as sets): they stay code.
The files without `OriginFmt` hold inputs only and cannot be read.

Public tests are as in HumanEval and MBPP; hidden are all others.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smalt.problems import humaneval, mbpp
from smalt.problems.asserts import ASSERTED_EQUALITY, NotALiteralError
from smalt.problems.infinity import literal_with_infinity
from smalt.problems.problem import CallTest, CodeTest, Limits, Problem, TestCase, ValueRule
from smalt.problems.records import Record, read_records, unique_ids

HUMANEVAL_PLUS_TEST = "def check(candidate):\n    inputs = ["
"""What every test of HumanEval+ holds and none of HumanEval does."""
_LOOP = """
for i, (inp, exp) in enumerate(zip(inputs, results)):
    assertion({function}(*inp), exp, {tolerance})
"""
_FLOATS_TOLERANCE = 1e-6
"""Absolute, where every result is a float and the test names none."""
_RELATIVE_TOLERANCE = 1e-7
_BUNDLE_LIMITS = Limits(cpu_seconds=20, wall_seconds=60)
"""Where a thousand inputs are one test: references of HumanEval+ take up to 9 s. evalplus gives each input a second."""
# The two comparisons that amount to ==, with a tolerance where every result is a float.
_PLAIN_ASSERTIONS = (
    """
def assertion(out, exp, atol):
    exact_match = out == exp
    if atol == 0 and is_floats(exp):
        atol = 1e-6
    if not exact_match and atol != 0:
        assert np.allclose(out, exp, rtol=1e-07, atol=atol)
    else:
        assert exact_match
""",
    """
def assertion(out, exp, atol):
    if atol == 0 and is_floats(exp):
        atol = 1e-6
    if out != exp and atol != 0:
        assert np.allclose(out, exp, rtol=1e-07, atol=atol)
    else:
        assert out == exp, f"out: {out}, exp: {exp}"
""",
)


def read_evalplus(path: str | Path) -> list[Problem]:
    """Read `HumanEvalPlus-OriginFmt.jsonl[.gz]` or `MbppPlus-OriginFmt.jsonl[.gz]`.

    Raises:
        ProblemFileError: a field is missing, or the file holds inputs without results.
    """
    return unique_ids((record, problem_from_record(record)) for record in read_records(path))


def problem_from_record(record: Record) -> Problem:
    """One problem from a record of the file."""
    if "plus_input" in record.fields:
        raise record.error("plus_input", "has no results beside it; take the release named OriginFmt")
    # Without its long test, from which the other readers have nothing to learn.
    short = Record(record.place, {**record.fields, "test": "pass"})
    base: Problem = (mbpp if "test_list" in record.fields else humaneval).problem_from_record(short)
    plus = _plus_tests(record, base.entry_point or "")
    public = _without_errors(base.public_tests, plus.tests)
    shown = {_call(test) for test in public}
    return base.model_copy(
        update={
            "public_tests": tuple(public),
            "hidden_tests": tuple(test for test in plus.tests if _call(test) not in shown),
            "compare": plus.compare or base.compare,
            "limits": _BUNDLE_LIMITS if any(isinstance(test, CodeTest) for test in plus.tests) else base.limits,
            "metadata": {**base.metadata, "source": "evalplus"},
        }
    )


def _without_errors(public: Sequence[TestCase], hidden: Sequence[TestCase]) -> list[TestCase]:
    """The public tests without docstring examples that are wrong.

    Wrong is an example that a hidden test contradicts (HumanEval/47), and where some results are numbers and
    others lists, all of them are in doubt (HumanEval/130).
    """
    expected = {_call(test): test.expected for test in hidden if isinstance(test, CallTest)}
    calls = [test for test in public if isinstance(test, CallTest)]
    if len({isinstance(test.expected, list | tuple) for test in calls}) == 2 and any(
        isinstance(test.expected, int | float) for test in calls
    ):
        return [test for test in public if not isinstance(test, CallTest)]
    return [
        test
        for test in public
        if not isinstance(test, CallTest) or expected.get(_call(test), test.expected) == test.expected
    ]


def _call(test: TestCase) -> str:
    """What is called, as a key; for other tests their code."""
    return repr(test.args) if isinstance(test, CallTest) else repr(test)


@dataclass(frozen=True)
class _PlusTests:
    tests: Sequence[TestCase]
    compare: ValueRule | None = None


def _plus_tests(record: Record, entry_point: str) -> _PlusTests:
    source = record.text("test")
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise record.error("test", f"is not Python code ({error}); expected evalplus's test loop") from None
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    calls = _call_tests(tree, functions, entry_point)
    if calls is not None:
        return calls
    source = _with_verdict(source, tree, functions)
    code = f"{source.rstrip()}\n\ncheck({entry_point})\n" if "check" in functions else source
    return _PlusTests([CodeTest(code=code)])


def _with_verdict(source: str, tree: ast.Module, functions: dict[str, ast.FunctionDef]) -> str:
    """The test with the assertion that some of MBPP+ lack (`check_str`): they compare, and let every program pass."""
    assertion = functions.get("assertion")
    if assertion is None or any(isinstance(node, ast.Assert) for node in ast.walk(assertion)):
        return source
    if not any(isinstance(node, ast.Name) and node.id == "exact_match" for node in ast.walk(assertion)):
        return source
    assertion.body += ast.parse("assert exact_match").body
    return ast.unparse(tree)


def _call_tests(tree: ast.Module, functions: dict[str, ast.FunctionDef], entry_point: str) -> _PlusTests | None:
    """The tests of the plain layout, None for any other."""
    if "assertion" not in functions or not _is_source(functions["assertion"], *_PLAIN_ASSERTIONS):
        return None
    body = functions["check"].body if "check" in functions else tree.body
    tolerance = _tolerance(body[-1], "candidate" if "check" in functions else entry_point)
    if tolerance is None:
        return None
    try:
        inputs, results = (_assigned(body, name) for name in ("inputs", "results"))
    except NotALiteralError:
        return None
    if not tolerance and any(map(_is_floats, results)):
        tolerance = _FLOATS_TOLERANCE
    rule = ValueRule(rule="value", relative_tolerance=_RELATIVE_TOLERANCE, absolute_tolerance=tolerance)
    tests = [CallTest(args=tuple(args), expected=result) for args, result in zip(inputs, results, strict=True)]
    return _PlusTests(tests, rule if tolerance else ASSERTED_EQUALITY)


def _tolerance(loop: ast.stmt, function: str) -> float | None:
    """The tolerance that the plain loop compares with, None for any other loop."""
    for tolerance in (0, 1e-6, 1e-4):
        if _is_source(loop, _LOOP.format(function=function, tolerance=tolerance)):
            return tolerance
    return None


def _is_source(node: ast.stmt, *sources: str) -> bool:
    return any(ast.dump(node) == ast.dump(ast.parse(source).body[0]) for source in sources)


def _assigned(body: list[ast.stmt], name: str) -> list[Any]:
    for node in body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return list(literal_with_infinity(node.value))
    raise NotALiteralError(name)


def _is_floats(value: object) -> bool:
    """Whether a result is a float or holds nothing but floats."""
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(item, float) for item in value)
    return isinstance(value, float)
