"""Parsing text that may or may not be Python."""

from __future__ import annotations

import ast
import warnings


def parse_module(text: str) -> ast.Module | None:
    """Return the syntax tree of `text`, None when it is not Python. Never raises and never warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
