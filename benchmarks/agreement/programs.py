"""Data sets of programs on standard input and output, with the verdicts their sources recorded."""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.agreement.cases import Case, problem_of_tests, references
from benchmarks.agreement.json_lines import objects
from smalt.problems import livecodebench as livecodebench_reader
from smalt.problems.apps import read_apps
from smalt.problems.codecontests import read_codecontests
from smalt.problems.problem import CallTest, Limits, Problem, StdinTest
from smalt.problems.records import Record

_CODECONTESTS_LIMITS = Limits(cpu_seconds=10, wall_seconds=600, memory_mb=2048)
"""Those that the recorded status of the references was made under."""
_LIVECODEBENCH_LIMITS = Limits(cpu_seconds=6, wall_seconds=300)
"""LiveCodeBench gives a test six seconds."""


def codecontests(data: Path) -> Iterator[Case]:
    """Accepted programs of Codeforces, each also as the answer to the next problem, which it does not solve."""
    folder = data / "codecontests_cf"
    problems = [
        problem.model_copy(update={"limits": _CODECONTESTS_LIMITS})
        for problem in read_codecontests(folder / "problems.jsonl.gz")
    ]
    status = json.loads((folder / "reference_status.json").read_text())["status"]
    for index, problem in enumerate(problems):
        known = status[problem.id]
        program = problem.solutions[0]
        yield Case(problem.id, "reference", problem, program, passes=known == "ok", recorded_as=known)
        other = problems[(index + 1) % len(problems)]
        quick = other.model_copy(update={"limits": Limits(cpu_seconds=2, wall_seconds=300)})
        yield Case(f"{other.id} by the program of another", "control", quick, program, passes=False)


def apps150(data: Path) -> Iterator[Case]:
    """Programs of two models for APPS problems, where the recorded verdict is one.

    The source's judge raises an error when an expected output is no string, and then records a failure
    without running anything: problems with such outputs are left out.
    """
    problems = [_apps150_problem(row, fields) for row, fields in enumerate(objects(data / "apps150/selected150.jsonl"))]
    seen: Counter[str] = Counter()
    for fields in objects(data / "apps150/mapcoder_candidates.jsonl"):
        problem = problems[fields["row"]]
        if problem is not None:
            name = f"{problem.id} {fields['model']} {fields['method']}"
            seen[name] += 1
            program_id = name if seen[name] == 1 else f"{name} {seen[name]}"
            yield Case(program_id, "generated", problem, fields["source_codes"][0], passes=fields["is_solved"])


def _apps150_problem(row: int, fields: dict[str, Any]) -> Problem | None:
    tests = fields["test_list"]
    if any(not isinstance(output, str) for test in tests for output in test["output"]):
        return None
    return problem_of_tests(
        f"row {row}", [StdinTest(stdin=test["input"], expected=test["output"][0]) for test in tests]
    )


def apps_coderl(data: Path) -> Iterator[Case]:
    """Five APPS problems: human solutions, and programs of a small model with its judge's verdicts."""
    path = data / "apps_coderl/apps_train_5.jsonl"
    problems = read_apps(path)
    yield from references(problems)
    for problem, fields in zip(problems, objects(path), strict=True):
        for index, made in enumerate(fields["gen_solutions"]):
            word = f"{made['result']} {made['error_type']}"
            yield Case(
                f"{problem.id} generated {index}", "generated", problem, made["code"], made["result"] is True, word
            )


def kattis(data: Path) -> Iterator[Case]:
    """The examples of Kattis' problem tools."""
    for fields in objects(data / "kattis_examples/problems.jsonl"):
        tests = [StdinTest(stdin=test["input"], expected=test["output"]) for test in fields["tests"]]
        problem = problem_of_tests(fields["name"], tests)
        for made in fields["submissions"]:
            passes = made["expected"] in ("accepted", "slow_accepted")
            yield Case(f"{problem.id} {made['file']}", "reference", problem, made["code"], passes, made["expected"])


def livecodebench(data: Path) -> Iterator[Case]:
    """o1-mini's programs: a solved one passes the public tests, an unsolved one the recorded failing test not."""
    folder = data / "livecodebench_o1"
    public = {fields["question_id"]: fields for fields in objects(folder / "public_tests_400.jsonl")}
    starters = {fields["question_id"]: fields["starter_code"] for fields in objects(folder / "problems.jsonl")}
    for fields in objects(folder / "o1_mini.jsonl"):
        name, program = fields["question_id"], fields["code_list"][0]
        if fields["graded_list"][0]:
            if name in public:
                record = Record(name, {**public[name], "question_content": "With public tests only."})
                problem = livecodebench_reader.problem_from_record(record)
                patient = problem.model_copy(update={"limits": _LIVECODEBENCH_LIMITS})
                yield Case(name, "generated", patient, program, passes=True)
            continue
        failed = json.loads(fields["metadata"][0])
        unsolved = _failed_test_problem(name, failed, starters[name])
        if unsolved is not None:
            word = str(failed.get("error_message", ""))
            yield Case(f"{name} failed test", "generated", unsolved, program, passes=False, recorded_as=word)


def _failed_test_problem(name: str, failed: dict[str, Any], starter_code: str) -> Problem | None:
    """The test that a program is recorded to fail; None where the record cuts it short."""
    given, expected = failed.get("inputs"), failed.get("expected")
    if not isinstance(given, str) or not isinstance(expected, str) or "...(truncated)" in given + expected:
        return None
    if not starter_code:
        return problem_of_tests(name, [StdinTest(stdin=given, expected=expected)], limits=_LIVECODEBENCH_LIMITS)
    methods = [node.name for node in ast.walk(ast.parse(f"{starter_code} pass")) if isinstance(node, ast.FunctionDef)]
    try:
        test = CallTest(args=tuple(ast.literal_eval(given)), expected=ast.literal_eval(expected))
    except (SyntaxError, ValueError):
        return None
    return problem_of_tests(name, [test], methods[0], "from typing import *\n", _LIVECODEBENCH_LIMITS)
