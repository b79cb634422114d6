"""What the Python blocks of one reply define and need, to tell a program's parts from demos of it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from smalt.grading.fences import Block
from smalt.grading.syntax import is_doing, parse_module

_READS_INPUT = re.compile(r"\binput\s*\(|\bstdin\b|\bopen\(0\b|\bos\.read\(0\b")
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


@dataclass(frozen=True)
class Part:
    """One Python block among the others of its reply."""

    index: int
    block: Block
    does_something: bool
    """Whether it parses, to more than bare names and constants."""
    defined: frozenset[str] = frozenset()
    """Names its top level binds."""
    needs: frozenset[str] = frozenset()
    """Names it reads, binds nowhere, and an earlier block defines."""
    is_demo: bool = False
    """Whether it only shows off functions or classes of an earlier block."""

    def with_needed(self, parts: Sequence[Part]) -> list[Part]:
        """Return the earlier parts that this one needs, in order, and this one."""
        chosen, missing = [self], set(self.needs)
        for part in reversed(parts[: self.index]):
            if missing & part.defined:
                chosen.append(part)
                missing = (missing - part.defined) | part.needs
        return chosen[::-1]


@dataclass
class _Names:
    """The names of one block."""

    used: set[str] = field(default_factory=set)
    bound: set[str] = field(default_factory=set)
    """Anywhere in the block."""
    defined: set[str] = field(default_factory=set)
    """At its top level."""
    functions: set[str] = field(default_factory=set)
    """Functions and classes of its top level."""


def parts_of(blocks: Sequence[Block]) -> list[Part]:
    """Return the blocks with what each defines and needs; the first is never a demo."""
    parts: list[Part] = []
    earlier, earlier_functions, is_input_read = set[str](), set[str](), False
    for index, block in enumerate(blocks):
        tree = parse_module(block.code)
        names = _names(tree) if tree is not None else _Names()
        needs = (names.used - names.bound) & earlier
        reads_input = _READS_INPUT.search(block.code) is not None
        is_main = reads_input and not is_input_read
        is_demo = bool(needs & earlier_functions) and not is_main
        does_something = tree is not None and is_doing(tree)
        parts.append(Part(index, block, does_something, frozenset(names.defined), frozenset(needs), is_demo))
        earlier |= names.defined
        earlier_functions |= names.functions
        is_input_read |= reads_input
    return parts


def _names(tree: ast.Module) -> _Names:
    names = _Names()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            names.used.add(node.id)
        else:
            names.bound.update(_bound_by(node))
    for node in _top_level(tree):
        names.defined.update(_bound_by(node))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.functions.add(node.name)
    return names


def _bound_by(node: ast.AST) -> Iterator[str]:
    """Yield the names that this node itself binds."""
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.alias):
        yield (node.asname or node.name).partition(".")[0]
    elif isinstance(node, ast.ExceptHandler) and node.name is not None:
        yield node.name


def _top_level(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the nodes outside functions and classes, these included but not entered."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _SCOPES):
            waiting.extend(ast.iter_child_nodes(node))
