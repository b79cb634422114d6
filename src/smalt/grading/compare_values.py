"""Comparing returned values: Python's == on plain data, by default with the departures that a `ValueRule` states."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from smalt.problems.problem import ValueRule

MAX_DEPTH = 200
"""Values nested deeper than this never match."""

_CONTAINERS = (list, tuple, dict, set, frozenset)


def equal_in_python(value: Any, expected: Any) -> bool:
    """Whether `value == expected`, for plain data: no object has a say in what it equals."""
    try:
        return bool(value == expected)
    except RecursionError:
        return False


class ValueComparison:
    """One comparison of two values, for plain data from any source: cycles and hostile nesting end it.

    bool is not int; an int is exact; NaN equals NaN; a float matches a number within the tolerances; list and
    tuple are alike unless the rule tells them apart; set and frozenset are alike.
    """

    def __init__(self, rule: ValueRule) -> None:
        """Compare by `rule`; an object serves one comparison."""
        self._rule = rule
        # Pairs met before: either they matched or, inside a cycle, they match if everything else does.
        self._seen: set[tuple[int, int]] = set()

    def match(self, value: Any, expected: Any) -> bool:
        """Whether `value` is right."""
        try:
            if self._rule.unordered != "nothing":
                value, expected = self._arranged(value, 0)[1], self._arranged(expected, 0)[1]
            return self._match(value, expected, 0)
        except RecursionError:
            return False

    def _match(self, value: Any, expected: Any, depth: int) -> bool:
        if isinstance(value, bool) or isinstance(expected, bool):
            return value is expected
        if isinstance(value, int | float | complex) and isinstance(expected, int | float | complex):
            return self._match_numbers(value, expected)
        pair = (id(value), id(expected))
        if pair in self._seen:
            return True
        if depth > MAX_DEPTH:
            return False
        if isinstance(value, _CONTAINERS):
            self._seen.add(pair)
        return self._match_containers(value, expected, depth)

    def _match_containers(self, value: Any, expected: Any, depth: int) -> bool:
        if isinstance(value, list | tuple) and isinstance(expected, list | tuple):
            return self._match_sequences(value, expected, depth)
        if isinstance(value, dict) and isinstance(expected, dict):
            return self._match_dicts(value, expected, depth)
        if isinstance(value, set | frozenset) and isinstance(expected, set | frozenset):
            return self._match_pairs(self._in_order(value, depth), self._in_order(expected, depth), depth)
        return type(value) is type(expected) and bool(value == expected)

    def _match_sequences(self, value: Any, expected: Any, depth: int) -> bool:
        if self._rule.tells_tuples_from_lists and type(value) is not type(expected):
            return False
        return self._match_pairs(value, expected, depth)

    def _match_pairs(self, value: Any, expected: Any, depth: int) -> bool:
        if len(value) != len(expected):
            return False
        return all(self._match(left, right, depth + 1) for left, right in zip(value, expected, strict=True))

    def _match_dicts(self, value: dict[Any, Any], expected: dict[Any, Any], depth: int) -> bool:
        left = {_strict_key(key): item for key, item in value.items()}
        right = {_strict_key(key): item for key, item in expected.items()}
        return left.keys() == right.keys() and all(
            self._match(item, right[key], depth + 1) for key, item in left.items()
        )

    def _in_order(self, items: Iterable[Any], depth: int) -> list[Any]:
        """Sort so that equal collections stand in equal order; near floats among their like keep their ranks."""
        return sorted(items, key=lambda item: self._arranged(item, depth + 1)[0])

    def _arranged(self, value: Any, depth: int) -> tuple[tuple[Any, ...], Any]:
        """Return a sort key for any plain data, and the value with its unordered lists sorted, in one pass."""
        if isinstance(value, bool) or value is None:
            return (0, repr(value)), value
        if isinstance(value, int | float):
            return ((1, value) if value == value else (2,)), value
        if isinstance(value, str):
            return (3, value), value
        if not isinstance(value, _CONTAINERS):
            return (7, type(value).__name__, repr(value)), value
        return self._arranged_container(value, depth) if depth <= MAX_DEPTH else ((8,), value)

    def _arranged_container(self, value: Any, depth: int) -> tuple[tuple[Any, ...], Any]:
        if isinstance(value, dict):
            keys = [self._arranged(key, depth + 1)[0] for key in value]
            items = [self._arranged(item, depth + 1) for item in value.values()]
            order = sorted(zip(keys, (key for key, _ in items), strict=True))
            return (6, order), dict(zip(value, (item for _, item in items), strict=True))
        arranged = [self._arranged(item, depth + 1) for item in value]
        if isinstance(value, set | frozenset):
            return (5, sorted(key for key, _ in arranged)), value
        if self._is_unordered(depth):
            arranged.sort(key=lambda pair: pair[0])
        return (4, [key for key, _ in arranged]), type(value)(item for _, item in arranged)

    def _is_unordered(self, depth: int) -> bool:
        return self._rule.unordered == "everywhere" or (self._rule.unordered == "outermost" and depth == 0)

    def _match_numbers(self, value: complex, expected: complex) -> bool:
        if value == expected:
            return True
        if isinstance(value, int) and isinstance(expected, int):
            return False
        try:
            if isinstance(value, complex) or isinstance(expected, complex):
                left, right = complex(value), complex(expected)
                return self._are_close(left.real, right.real) and self._are_close(left.imag, right.imag)
            return self._are_close(value, expected)
        except OverflowError:  # an int beyond any float
            return False

    def _are_close(self, value: float, expected: float) -> bool:
        """Whether two numbers, at least one of them a float, are within the tolerances."""
        if math.isnan(value) or math.isnan(expected):
            return math.isnan(value) and math.isnan(expected)
        relative, absolute = self._rule.relative_tolerance, self._rule.absolute_tolerance
        if not math.isclose(value, expected, rel_tol=relative, abs_tol=absolute):
            return False
        # As for printed numbers: a relative tolerance reaches no further than an integer's own rounding.
        is_integer = isinstance(value, int) or isinstance(expected, int)
        return not is_integer or _distance(value, expected) <= max(absolute, 0.49)


def _distance(value: float, expected: float) -> float:
    """Return the exact distance of two finite numbers; floats run out of digits at 2**53."""
    left, right = (int(number) if float(number).is_integer() else number for number in (value, expected))
    return abs(left - right)


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
