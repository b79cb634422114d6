"""Comparison rules: when does an output, or a returned value, count as the expected one?

Lenient where an author's formatting is arbitrary (white space, the last digits of a float, list or tuple),
strict where a difference is a different answer (integers of any size, True against 1).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any

from smalt.problems.problem import CompareRule

TOKEN_TOLERANCE = 1e-6
"""Relative and absolute, for printed floats."""
VALUE_TOLERANCE = 1e-9
"""Relative and absolute, for returned floats."""
MAX_DEPTH = 200
"""Values nested deeper than this never match."""

_INTEGER = re.compile(r"[+-]?[0-9]+\Z")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\Z")


def outputs_match(output: str, expected: str, rule: CompareRule | None = None) -> bool:
    """Whether a printed output is right. "exact" compares the texts; any other rule compares tokens.

    Tokens are what white space separates, so line breaks do not matter. Integers must be the same digits,
    since "007" may be meant; a float matches a number within `TOKEN_TOLERANCE`.
    """
    if rule == "exact" or output == expected:
        return output == expected
    tokens, expected_tokens = output.split(), expected.split()
    if len(tokens) != len(expected_tokens):
        return False
    return all(map(_tokens_match, tokens, expected_tokens))


def _tokens_match(token: str, expected: str) -> bool:
    if token == expected:
        return True
    if _INTEGER.match(token) and _INTEGER.match(expected):
        return False
    if not (_NUMBER.match(token) and _NUMBER.match(expected)):
        return False
    left, right = float(token), float(expected)
    # "1e400" reads as infinity, which is close to any other overflow.
    return math.isfinite(left) and math.isclose(left, right, rel_tol=TOKEN_TOLERANCE, abs_tol=TOKEN_TOLERANCE)


def values_match(value: Any, expected: Any, exact: bool = False) -> bool:
    """Whether a returned value is right: Python's == on plain data, with a few departures.

    bool is not int; NaN equals NaN; floats match within `VALUE_TOLERANCE` (inside sets: only when the sets
    hold nothing else that differs); list and tuple are alike. With `exact` they are not, and floats must be
    equal.
    """
    return _Comparison(exact).match(value, expected, 0)


class _Comparison:
    def __init__(self, exact: bool) -> None:
        self._exact = exact
        # Pairs met before: either they matched or, inside a cycle, they match if everything else does.
        self._seen: set[tuple[int, int]] = set()

    def match(self, value: Any, expected: Any, depth: int) -> bool:
        if isinstance(value, bool) or isinstance(expected, bool):
            return value is expected
        if isinstance(value, int | float | complex) and isinstance(expected, int | float | complex):
            return _numbers_match(value, expected, 0.0 if self._exact else VALUE_TOLERANCE)
        pair = (id(value), id(expected))
        if pair in self._seen:
            return True
        if depth > MAX_DEPTH:
            return False
        if isinstance(value, list | tuple | dict | set | frozenset):
            self._seen.add(pair)
        return self._match_containers(value, expected, depth)

    def _match_containers(self, value: Any, expected: Any, depth: int) -> bool:
        if isinstance(value, list | tuple) and isinstance(expected, list | tuple):
            if len(value) != len(expected) or (self._exact and type(value) is not type(expected)):
                return False
            return all(self.match(left, right, depth + 1) for left, right in zip(value, expected, strict=True))
        if isinstance(value, dict) and isinstance(expected, dict):
            return self._match_dicts(value, expected, depth)
        if isinstance(value, set | frozenset) and isinstance(expected, set | frozenset):
            return self._match_sets(value, expected)
        return type(value) is type(expected) and bool(value == expected)

    def _match_dicts(self, value: dict[Any, Any], expected: dict[Any, Any], depth: int) -> bool:
        left = {_strict_key(key): item for key, item in value.items()}
        right = {_strict_key(key): item for key, item in expected.items()}
        return left.keys() == right.keys() and all(
            self.match(item, right[key], depth + 1) for key, item in left.items()
        )

    def _match_sets(self, value: Any, expected: Any) -> bool:
        left, right = Counter(map(_strict_key, value)), Counter(map(_strict_key, expected))
        rest, expected_rest = list((left - right).elements()), list((right - left).elements())
        if len(rest) != len(expected_rest) or not all(isinstance(item, int | float) for item in rest + expected_rest):
            return False
        return all(self.match(a, b, 0) for a, b in zip(sorted(rest), sorted(expected_rest), strict=True))


def _numbers_match(value: complex, expected: complex, tolerance: float) -> bool:
    if value == expected:
        return True
    if isinstance(value, int) and isinstance(expected, int):
        return False
    if isinstance(value, complex) or isinstance(expected, complex):
        left, right = complex(value), complex(expected)
        parts = ((left.real, right.real), (left.imag, right.imag))
        return all(_numbers_match(a, b, tolerance) for a, b in parts)
    try:
        if math.isnan(value) or math.isnan(expected):
            return math.isnan(value) and math.isnan(expected)
        return math.isclose(value, expected, rel_tol=tolerance, abs_tol=tolerance)
    except OverflowError:  # an int beyond any float
        return False


def _strict_key(key: Any) -> Any:
    """Return a key under which True and 1 differ, and NaN equals itself."""
    if isinstance(key, bool):
        return ("bool", key)
    if isinstance(key, float) and math.isnan(key):
        return ("nan",)
    if isinstance(key, tuple):
        return ("tuple", *map(_strict_key, key))
    if isinstance(key, frozenset):
        return ("frozenset", frozenset(map(_strict_key, key)))
    return key
