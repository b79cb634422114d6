"""KodCode (Xu et al. 2025, arXiv 2503.02951): questions with a pytest file as their tests.

A test function that holds nothing but `assert f(literals) == literal` becomes call tests, whose expected values the
program cannot reach; any other stays code that runs after the program: what the test file defines beside its tests,
then the function and a call of it. `from solution import ...` falls away, as test and program share a namespace.

The first tests are public. The data set tells none apart, and its question often leaves the function's name out, so
the declaration is added to the statement.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeGuard

from smalt.problems.asserts import asserted_rule, call_test, called_names
from smalt.problems.problem import CallTest, CodeTest, Problem, TestCase
from smalt.problems.records import Record, read_records, unique_ids

_PUBLIC_COUNT = 2
"""Public tests of a problem that has more than two (ours); else one."""


def read_kodcode(path: str | Path) -> list[Problem]:
    """Read a KodCode file: `question_id`, `question`, `solution`, `test` or `test_code`, and perhaps `test_info`.

    Raises:
        ProblemFileError: a field is missing, or the tests are no plain pytest functions.
    """
    return unique_ids((record, problem_from_record(record)) for record in read_records(path))


def problem_from_record(record: Record) -> Problem:
    """One problem from a record of the file."""
    module = _module(record)
    functions = _functions(record)
    entry_point = functions[0]["function_name"] if len(functions) == 1 else _only_function(record, module)
    tests = _distinct(_tests(record, module, entry_point))
    if not tests:
        raise record.error(_field(record), "has no test; expected functions named test_...")
    public = _PUBLIC_COUNT if len(tests) > _PUBLIC_COUNT else 1
    difficulty = record.fields.get("gpt_difficulty")
    return record.problem(
        id=f"kodcode/{record.text('question_id')}",
        statement=_statement(record, functions),
        public_tests=tests[:public],
        hidden_tests=tests[public:],
        entry_point=entry_point,
        compare=asserted_rule(tests),
        solutions=[record.text("solution")],
        metadata={"source": "kodcode", "subset": record.text("subset", default=""), "difficulty": difficulty},
    )


def _module(record: Record) -> ast.Module:
    try:
        return ast.parse(_source(record))
    except SyntaxError as error:
        raise record.error(_field(record), f"is not Python: {error}") from None


def _source(record: Record) -> str:
    return record.text(_field(record))


def _field(record: Record) -> str:
    """Where the tests stand: the authors' repository and their data set on the hub differ."""
    return "test" if "test" in record.fields else "test_code"


def _functions(record: Record) -> list[dict[str, Any]]:
    """The functions to write, as `test_info` has them; none where the answer is a class."""
    found = record.fields.get("test_info") or []
    if not isinstance(found, list) or not all(isinstance(f, dict) and "function_name" in f for f in found):
        raise record.error("test_info", "expected a list of objects with 'function_name', or null")
    return found


def _statement(record: Record, functions: Sequence[dict[str, Any]]) -> str:
    question = record.text("question").strip()
    declarations = [str(f["function_declaration"]) for f in functions if f.get("function_declaration")]
    return "\n".join([f"{question}\n\nDeclared as:", *declarations]) if declarations else question


def _only_function(record: Record, module: ast.Module) -> str | None:
    """The one function of the solution that the tests import, or that they call where they import nothing."""
    imported = [alias.name for node in module.body if _is_solution(node) for alias in node.names]
    wanted = imported or called_names(module)
    names = [name for name in _functions_of(record.text("solution")) if name in wanted]
    return names[0] if len(names) == 1 and len(imported) <= 1 else None


def _functions_of(solution: str) -> list[str]:
    try:
        body = ast.parse(solution).body
    except SyntaxError:
        return []
    return [node.name for node in body if isinstance(node, ast.FunctionDef)]


def _tests(record: Record, module: ast.Module, entry_point: str | None) -> Iterator[TestCase]:
    source = _source(record)
    beside = [node for node in module.body if not _is_test(node) and not _is_solution(node) and not _runs(node)]
    for node in module.body:
        if not isinstance(node, ast.FunctionDef) or not _is_test(node):
            continue
        if node.args.args or node.decorator_list:
            raise record.error(_field(record), f"{node.name} wants fixtures or parameters; leave the record out")
        calls = [call_test(statement, entry_point) for statement in node.body] if entry_point else [None]
        plain = [call for call in calls if call is not None]
        if len(plain) == len(calls):
            yield from plain
        else:
            yield CodeTest(code=_code(source, beside, node))


def _code(source: str, beside: Sequence[ast.stmt], test: ast.FunctionDef) -> str:
    """A test function with what stands beside the tests; pytest only where the function names it."""
    body = _segment(source, test)
    kept = [node for node in beside if "pytest" in body or not _is_pytest(node)]
    parts = [_segment(source, node) for node in kept]
    return "\n\n".join([*parts, body, f"{test.name}()"])


def _segment(source: str, node: ast.stmt) -> str:
    """A statement as it stands, with the decorators that `ast` leaves out."""
    lines = source.split("\n")  # as Python's parser does; splitlines() also splits inside strings
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    return "\n".join(lines[first - 1 : node.end_lineno])


def _is_test(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name.startswith("test")


def _is_solution(node: ast.stmt) -> TypeGuard[ast.ImportFrom]:
    return isinstance(node, ast.ImportFrom) and node.module == "solution"


def _runs(node: ast.stmt) -> bool:
    """Whether a statement beside the tests only runs them: `test_add()`, `if __name__ == ...`."""
    return isinstance(node, ast.Expr | ast.If)


def _is_pytest(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import) and [alias.name for alias in node.names] == ["pytest"]


def _distinct(tests: Iterator[TestCase]) -> list[TestCase]:
    """The tests without repetitions; two calls are one when arguments and value are written alike."""
    return list({_key(test): test for test in tests}.values())


def _key(test: TestCase) -> str:
    return repr((test.args, test.expected)) if isinstance(test, CallTest) else test.model_dump_json()
