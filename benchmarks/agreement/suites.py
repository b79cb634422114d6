"""Data sets whose tests are suites: Exercism's (unittest) and KodCode's (pytest)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.agreement.cases import Case, problem_of_tests
from benchmarks.agreement.json_lines import objects
from smalt.problems.problem import CodeTest, Limits, Problem

_LIMITS = Limits(cpu_seconds=20, wall_seconds=600)
"""A suite is one test here, and pytest takes a second to import."""

_UNITTEST = """
import sys, types, unittest

def _module(name, source=None):
    module = types.ModuleType(name)
    sys.modules[name] = module
    if source is None:
        module.__dict__.update({key: value for key, value in globals().items() if not key.startswith("_")})
    else:
        exec(compile(source, name + ".py", "exec"), module.__dict__)
    return module

_module(NAME)
_suites = [_module(name, source) for name, source in SOURCES]
_result = unittest.TestResult()
for _suite in _suites:
    unittest.defaultTestLoader.loadTestsFromModule(_suite).run(_result)
assert _result.testsRun, "no tests"
assert _result.wasSuccessful(), "\\n".join(text for _, text in _result.failures + _result.errors)[-1500:]
"""

_PYTEST = """
def _cases(test):
    found = [{}]
    for mark in getattr(test, "pytestmark", ()):
        if mark.name == "parametrize":
            names, rows = mark.args[:2]
            names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
            rows = [row.values if type(row).__name__ == "ParameterSet" else row if names[1:] else [row] for row in rows]
            found = [{**case, **dict(zip(names, row))} for row in rows for case in found]
    return found
"""


def exercism(data: Path) -> Iterator[Case]:
    """Exercism's example solutions, and the stubs that a student starts from."""
    for fields in objects(data / "exercism_python/practice.jsonl"):
        [(stub_name, stub)] = fields["stub"].items()
        # What other files import comes first.
        files = sorted(fields["tests"].items(), key=lambda item: item[0].endswith("_test.py"))
        sources = [(name.removesuffix(".py"), text) for name, text in files]
        header = f"NAME = {stub_name.removesuffix('.py')!r}\nSOURCES = {sources!r}\n"
        problem = problem_of_tests(fields["slug"], [CodeTest(code=header + _UNITTEST)], limits=_LIMITS)
        [example] = fields["example"].values()
        yield Case(problem.id, "reference", problem, example, passes=True)
        yield Case(f"{problem.id} stub", "control", problem, stub, passes=False)


def kodcode(data: Path) -> Iterator[Case]:
    """KodCode's solutions, and the trials of a model with the verdict of each on tests of its own."""
    for path in sorted((data / "kodcode_demo").glob("KodCode_*.json")):
        for fields in objects(path):
            name = fields["question_id"]
            chosen = _pytest_problem(name, fields["test_code"])
            yield Case(name, "reference", chosen, fields["solution"], passes=True)
            for trial, made in fields["trials"].items():
                yield _trial(f"{name} {trial}", made)


def _trial(name: str, made: dict[str, Any]) -> Case:
    result = made["test_result"]
    problem = _pytest_problem(name, made["test_code"])
    return Case(name, "generated", problem, made["solution_code"], result == "Pass", result)


def _pytest_problem(name: str, test_code: str) -> Problem:
    return problem_of_tests(name, [CodeTest(code=f"{test_code}\n{_PYTEST}\n{_calls(test_code)}")], limits=_LIMITS)


def _calls(test_code: str) -> str:
    """Calls of what pytest would collect: test functions and methods of test classes, with all their parameters."""
    try:
        tree = ast.parse(test_code)
    except SyntaxError:
        return ""
    lines = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            lines.append(f"for case in _cases({node.name}): {node.name}(**case)")
        elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            methods = [item.name for item in node.body if isinstance(item, ast.FunctionDef)]
            set_up = "instance.setup_method(); " if "setup_method" in methods else ""
            lines += [
                f"for case in _cases({node.name}.{method}): instance = {node.name}(); {set_up}instance.{method}(**case)"
                for method in methods
                if method.startswith("test")
            ]
    return "\n".join(lines or ["raise AssertionError('no tests collected')"]) + "\n"
