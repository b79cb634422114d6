"""Programs that models wrote for HumanEval and MBPP, with recorded verdicts: LDB's and CodeT's."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.agreement.cases import Case, problem_of_tests
from benchmarks.agreement.json_lines import objects
from smalt.problems.asserts import asserted_rule, call_test
from smalt.problems.humaneval import read_humaneval
from smalt.problems.problem import CodeTest, Problem, TestCase

_MODELS = ("gpt-3.5-turbo-0613", "codellama")


def ldb(data: Path) -> Iterator[Case]:
    """LDB's first programs, its debugged programs, and on the public tests every program on the way."""
    for source in ("humaneval", "mbpp"):
        for model in _MODELS:
            seed_path = data / f"ldb/{source}_seed_{model}.jsonl"
            problems = {fields["task_id"]: _hidden(fields) for fields in objects(seed_path)}
            for fields in objects(seed_path):
                yield _solved_case(f"{model} seed", problems, fields)
            debug_path = data / f"ldb/{source}_debug_{model}.jsonl"
            if debug_path.exists():
                for fields in objects(debug_path):
                    yield _solved_case(f"{model} debugged", problems, fields)
                    yield from _turns(model, fields)


def _solved_case(source: str, problems: dict[str, Problem], fields: dict[str, Any]) -> Case:
    problem = problems[fields["task_id"]]
    return Case(f"{problem.id} {source}", "generated", problem, fields["solution"], fields["is_solved"])


def _turns(model: str, fields: dict[str, Any]) -> Iterator[Case]:
    tests = [_test(ast.parse(text).body[0], fields["entry_point"]) for text in fields["generated_test"]]
    if not tests:
        return
    problem = problem_of_tests(
        f"{fields['task_id']} public",
        tests,
        fields["entry_point"],
        "from typing import *\n",
        compare=asserted_rule(tests),
    )
    for turn, (program, failed) in enumerate(zip(fields["implementations"], fields["test_feedback"], strict=False)):
        yield Case(f"{problem.id} {model} turn {turn}", "generated", problem, program, passes=not failed)


def _hidden(fields: dict[str, Any]) -> Problem:
    """The hidden tests as our readers take them: MBPP's asserts one by one, HumanEval's `check` as it is."""
    entry_point, source = fields["entry_point"], fields["test"]
    check = next(node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef) and node.name == "check")
    tests: list[TestCase] = [CodeTest(code=f"{source}\n\ncheck({entry_point})\n")]
    if fields["task_id"].startswith("MBPP") and all(isinstance(node, ast.Assert) for node in check.body):
        tests = [_test(node, entry_point) for node in check.body]
    return problem_of_tests(fields["task_id"], tests, entry_point, compare=asserted_rule(tests))


def _test(node: ast.stmt, entry_point: str) -> TestCase:
    return call_test(node, entry_point) or CodeTest(code=ast.unparse(node))


def codet(data: Path) -> Iterator[Case]:
    """Twenty of CodeGen-16B's programs for each HumanEval problem."""
    folder = data / "codet_humaneval"
    problems = {problem.id: problem for problem in read_humaneval(folder / "HumanEval_for_code_generation.jsonl")}
    samples = {fields["task_id"]: fields for fields in objects(folder / "codegen16B_100samples.jsonl")}
    for fields in objects(folder / "verdicts_first20.jsonl"):
        problem, made = problems[fields["task_id"]], samples[fields["task_id"]]
        for index, verdict in enumerate(fields["verdicts"]):
            program = made["prompt"] + made["samples"][index]
            yield Case(f"{problem.id} sample {index}", "generated", problem, program, verdict == "passed", verdict)
