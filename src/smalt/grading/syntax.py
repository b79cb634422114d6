"""Parsing text that may or may not be Python."""

from __future__ import annotations

import ast
import threading
import warnings

MAX_CHARACTERS = 100_000
"""Longer texts are not parsed: the parser takes quadratic time over a long formatted string, and holds the lock."""
# The filters of warnings belong to the process, and replies are read in several threads.
_FILTERS = threading.Lock()
_DOING = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign),
    *(ast.AugAssign, ast.AnnAssign, ast.For, ast.While, ast.If, ast.With, ast.Try, ast.Call),
)


def parse_module(text: str) -> ast.Module | None:
    """Return the syntax tree of `text`, None when it is not Python or too long. Never raises and never warns."""
    return _parse(text)[0]


def first_bad_line(text: str) -> int | None:
    """Return the number, from 1, of the line at which `text` stops being Python; None when it does not, or unknown."""
    return _parse(text)[1]


def _parse(text: str) -> tuple[ast.Module | None, int | None]:
    if len(text) > MAX_CHARACTERS:
        return None, None
    with _FILTERS, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text), None
        except SyntaxError as error:
            return None, error.lineno
        except (ValueError, RecursionError, MemoryError):
            return None, None


def is_doing(tree: ast.Module) -> bool:
    """Whether a module is more than bare names and constants, as which "42" or "YES" would pass."""
    return any(isinstance(node, _DOING) for node in ast.walk(tree))


def does_something(text: str) -> bool:
    """Whether the text is Python that does something."""
    tree = parse_module(text)
    return tree is not None and is_doing(tree)
