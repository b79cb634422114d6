"""LeetCodeDataset (Xia et al. 2025, arXiv 2504.14655): a method of `class Solution`, tested by asserts.

The data set's prompt (imports, list and tree nodes) is the preamble, as its statements take it for granted.
An assert `candidate(name=literal, ...) == literal` becomes a call test. The others, about linked lists and
trees, become code tests. Public are the tests whose input the statement shows as an example; where it shows
none, the first test.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

from smalt.problems.asserts import NotALiteralError, asserted_rule
from smalt.problems.infinity import literal_with_infinity
from smalt.problems.problem import CallTest, CodeTest, Problem, TestCase
from smalt.problems.records import Record, read_records, unique_ids

_EXAMPLE_INPUT = re.compile(r"^\s*Input:\s*(.+?)\s*$", re.MULTILINE)
_FENCE = re.compile(r"```python\n(.*?)```", re.DOTALL)


def read_leetcode(path: str | Path) -> list[Problem]:
    """Read a file of LeetCodeDataset, `.jsonl` or `.jsonl.gz`.

    Raises:
        ProblemFileError: a field is missing, or the tests are no `check` of asserts on the entry point.
    """
    return unique_ids((record, problem_from_record(record)) for record in read_records(path))


def problem_from_record(record: Record) -> Problem:
    """One problem from a line of the file."""
    method = record.text("entry_point").removeprefix("Solution().")
    completion = record.text("completion")
    parameters = _parameters(record, completion, method)
    statement = record.text("problem_description" if "problem_description" in record.fields else "query")
    tests = [_test(node, method, parameters) for node in _asserts(record)]
    shown = _shown_calls(statement, parameters)
    is_public = [isinstance(test, CallTest) and repr(test.args) in shown for test in tests]
    if not any(is_public):
        is_public[0] = True
    return record.problem(
        id=record.text("task_id"),
        statement=statement,
        public_tests=[test for test, shows in zip(tests, is_public, strict=True) if shows],
        hidden_tests=[test for test, shows in zip(tests, is_public, strict=True) if not shows],
        entry_point=method,
        compare=asserted_rule(tests),
        starter_code=_starter_code(record),
        preamble=record.text("prompt"),
        solutions=[completion],
        metadata={"source": "leetcode", "difficulty": _difficulty(record)},
    )


def _parameters(record: Record, completion: str, method: str) -> list[str]:
    """The method's parameter names, which the tests name their arguments by."""
    try:
        tree = ast.parse(completion)
    except SyntaxError as error:
        raise record.error("completion", f"is not Python code ({error}); expected class Solution") from None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == method:
            return [argument.arg for argument in node.args.args[1:]]
    raise record.error("entry_point", f"the completion defines no method {method!r}")


def _asserts(record: Record) -> list[ast.stmt]:
    try:
        functions = [node for node in ast.parse(record.text("test")).body if isinstance(node, ast.FunctionDef)]
    except SyntaxError as error:
        raise record.error("test", f"is not Python code ({error}); expected def check(candidate)") from None
    if len(functions) != 1 or functions[0].name != "check":
        raise record.error("test", "expected one function, check(candidate)")
    return functions[0].body


def _test(node: ast.stmt, method: str, parameters: list[str]) -> TestCase:
    if isinstance(node, ast.Assert) and isinstance(node.test, ast.Compare) and isinstance(node.test.ops[0], ast.Eq):
        try:
            arguments = _arguments(node.test.left, parameters)
            return CallTest(args=arguments, expected=literal_with_infinity(node.test.comparators[0]))
        except NotALiteralError:
            pass
    return CodeTest(code=f"candidate = Solution().{method}\n{ast.unparse(node)}")


def _arguments(call: ast.expr, parameters: list[str]) -> tuple[Any, ...]:
    """The literal arguments of `candidate(...)` in the order of the parameters."""
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "candidate"):
        raise NotALiteralError("no call of the candidate")
    named = dict(zip(parameters, call.args, strict=False))
    named |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
    if list(named) != parameters[: len(named)] and set(named) != set(parameters):
        raise NotALiteralError("the names are not the parameters")
    return tuple(literal_with_infinity(named[name]) for name in parameters if name in named)


def _shown_calls(statement: str, parameters: list[str]) -> set[str]:
    """repr() of the arguments of each example `Input: name = value, ...` in the statement."""
    shown = set()
    for text in _EXAMPLE_INPUT.findall(statement):
        text = re.sub(r"\btrue\b", "True", re.sub(r"\bfalse\b", "False", text))
        try:
            shown.add(repr(_arguments(ast.parse(f"candidate({text})", mode="eval").body, parameters)))
        except (SyntaxError, ValueError):
            continue
    return shown


def _starter_code(record: Record) -> str | None:
    if "starter_code" in record.fields:
        return record.text("starter_code")
    fenced = _FENCE.search(record.text("query"))
    return fenced[1] if fenced else None


def _difficulty(record: Record) -> str:
    meta = record.fields.get("meta")
    return record.text("difficulty", default=str(meta.get("difficulty", "")) if isinstance(meta, dict) else "")
