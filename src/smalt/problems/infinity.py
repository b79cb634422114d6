"""Literals that write infinity as the name `inf`, as some data sets' test code does."""

from __future__ import annotations

import ast
import math
from typing import Any

from smalt.problems.asserts import NotALiteralError, literal


def literal_with_infinity(node: ast.expr) -> Any:
    """The value of a literal expression in which `inf` stands for the number.

    Raises:
        NotALiteralError: it is none.
    """
    try:
        return literal(node)  # most have no infinity, and to look for it takes longer than the rest
    except NotALiteralError:
        return literal(_WithInfinity().visit(node))


class _WithInfinity(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.copy_location(ast.Constant(math.inf), node) if node.id == "inf" else node
