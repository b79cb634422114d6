"""Assert statements as tests: `assert f(1, [2]) == 3` is a call test when everything in it is a literal.

A call test is worth having: its expected value stays in the grader's process, where the program cannot
reach it. Whatever cannot be taken apart stays code. The call tests compare as the asserts would have, by `==`
(`ASSERTED_EQUALITY`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from smalt.problems.problem import CallTest, TestCase, ValueRule
from smalt.problems.values import is_plain_data

ASSERTED_EQUALITY = ValueRule(rule="value", equals_as_python=True)


class NotALiteralError(ValueError):
    """An expression that is no literal of plain data."""


def literal(node: ast.expr | str) -> Any:
    """The value of a literal expression.

    Raises:
        NotALiteralError: names, calls, arithmetic; also literals that are no plain data, such as bytes.
    """
    try:
        value = ast.literal_eval(node.strip() if isinstance(node, str) else node)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise NotALiteralError("not a literal") from None
    if not is_plain_data(value):
        raise NotALiteralError("not plain data")
    return value


def call_arguments(node: ast.expr, entry_point: str) -> tuple[Any, ...] | None:
    """The arguments of `entry_point(literal, ...)`, or None for any other expression."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == entry_point):
        return None
    if node.keywords:
        return None
    try:
        return tuple(literal(argument) for argument in node.args)
    except NotALiteralError:
        return None


def call_test(statement: ast.stmt, entry_point: str) -> CallTest | None:
    """The call test that an `assert entry_point(literals) == literal` stands for, or None."""
    if not isinstance(statement, ast.Assert) or not isinstance(statement.test, ast.Compare):
        return None
    compare = statement.test
    if len(compare.ops) != 1 or not isinstance(compare.ops[0], ast.Eq):
        return None
    arguments = call_arguments(compare.left, entry_point)
    if arguments is None:
        return None
    try:
        return CallTest(args=arguments, expected=literal(compare.comparators[0]))
    except NotALiteralError:
        return None


def asserted_rule(*tests: Iterable[TestCase]) -> ValueRule | None:
    """The rule for tests that were asserts; None when no call test is among them."""
    has_calls = any(isinstance(test, CallTest) for some in tests for test in some)
    return ASSERTED_EQUALITY if has_calls else None


def called_names(source: str | ast.AST) -> list[str]:
    """Names that the code calls as plain functions, outermost first."""
    tree = ast.parse(source) if isinstance(source, str) else source
    return [node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
