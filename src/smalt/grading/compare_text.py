"""Comparing printed output: token by token with a tolerance for floats, or line by line."""

from __future__ import annotations

import math
import re
from collections import Counter

from smalt.problems.problem import LinesRule, TokensRule

# More digits than a finite float has; what is longer is padded with zeros.
_LONGEST_FINITE = 400
_INTEGER = re.compile(r"[+-]?[0-9]+\Z")
# Written so that a long run of digits is read once: `[0-9]+\.?[0-9]*` would take quadratic time to refuse it.
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\Z")
_ZERO_FRACTION = re.compile(r"\.0*\Z")


def tokens_match(output: str, expected: str, rule: TokensRule) -> bool:
    """Whether two texts hold the same tokens, which are what white space separates.

    Integers must be the same digits, since "007" may be meant; other numbers match within the tolerances.
    """
    left, right = _folded(output, rule.ignores_case).split(), _folded(expected, rule.ignores_case).split()
    if len(left) != len(right):
        return False
    if rule.ignores_order:
        left, right = _in_order(left), _in_order(right)
    return left == right or all(
        token == wanted or _numbers_match(token, wanted, rule) for token, wanted in zip(left, right, strict=True)
    )


def lines_match(output: str, expected: str, rule: LinesRule) -> bool:
    """Whether two texts hold the same lines, up to white space at line ends and blank lines at the end."""
    left, right = _lines(_folded(output, rule.ignores_case)), _lines(_folded(expected, rule.ignores_case))
    return Counter(left) == Counter(right) if rule.ignores_order else left == right


def _folded(text: str, ignores_case: bool) -> str:
    return text.casefold() if ignores_case else text


def _lines(text: str) -> list[str]:
    # Not splitlines(), which also splits at form feeds and the like; "\r\n" goes with the white space.
    return [line.rstrip() for line in text.rstrip().split("\n")]


def _in_order(tokens: list[str]) -> list[str]:
    """Sort so that numbers that can match stand at the same place: by value, words after them by text.

    Where a matching within the tolerances exists, pairing by rank is one, as both ends of the interval that a
    number accepts grow with the number.
    """
    return sorted(tokens, key=lambda token: (_value(token), token))


def _value(token: str) -> float:
    return float(token) if _NUMBER.match(token) else math.inf


def _numbers_match(token: str, expected: str, rule: TokensRule) -> bool:
    if not (_NUMBER.match(token) and _NUMBER.match(expected)):
        return False
    is_integer, expects_integer = bool(_INTEGER.match(token)), bool(_INTEGER.match(expected))
    if is_integer and expects_integer:
        return False
    if is_integer or expects_integer:
        return _integer_matches(token, expected, rule)
    return _within(float(token), float(expected), rule)


def _integer_matches(token: str, expected: str, rule: TokensRule) -> bool:
    """Whether an integer and a float match.

    1.0 stands for 1, and 5e16 for its integer; but a relative tolerance reaches no further than the integer's
    own rounding: 999999999.5 is not 1000000000, at any size of the numbers.
    """
    if _ZERO_FRACTION.sub("", token) == _ZERO_FRACTION.sub("", expected):
        return True
    left, right = float(token), float(expected)
    if not _within(left, right, rule):
        return False
    difference = abs(_exact(token) - _exact(expected))
    return difference < 0.5 or difference <= rule.absolute_tolerance


def _exact(token: str) -> int | float:
    """Return the number behind a token; an int where there is one, as floats run out of digits at 2**53."""
    if _INTEGER.match(token) and len(token) < _LONGEST_FINITE:
        return int(token)
    value = float(token)
    return int(value) if value.is_integer() else value


def _within(left: float, right: float, rule: TokensRule) -> bool:
    # "1e400" reads as infinity, which is close to any other overflow.
    if not (math.isfinite(left) and math.isfinite(right)):
        return False
    return math.isclose(left, right, rel_tol=rule.relative_tolerance, abs_tol=rule.absolute_tolerance)
