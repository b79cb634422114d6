"""Comparison rules: when does an output, or a returned value, count as the expected one?

Lenient where an author's formatting is arbitrary (white space, the last digits of a float, list or tuple),
strict where a difference is a different answer (integers of any size, True against 1). What was an assert compares
as `==` does. `docs/grading.md` states the rules; every comparison takes time in proportion to the texts, up to a sort.
"""

from __future__ import annotations

from typing import Any

from smalt.grading.compare_text import lines_match, tokens_match
from smalt.grading.compare_values import ValueComparison, equal_in_python
from smalt.problems.problem import CompareRule, ExactRule, LinesRule, TokensRule, ValueRule

DEFAULT_TOKENS = TokensRule(rule="tokens")
"""The rule for printed output where a problem has none."""
DEFAULT_VALUE = ValueRule(rule="value")
"""The rule for returned values where a problem has none."""
EXACT_VALUE = ValueRule(
    rule="value", relative_tolerance=0, absolute_tolerance=0, tells_tuples_from_lists=True, unordered="nothing"
)
"""What "exact" means for returned values."""


def outputs_match(output: str, expected: str, rule: CompareRule | None = None) -> bool:
    """Whether a printed output is right; a rule that is not for printed output counts as the default, tokens."""
    if output == expected:
        return True
    if rule == "exact" or isinstance(rule, ExactRule):
        return False
    if isinstance(rule, LinesRule):
        return lines_match(output, expected, rule)
    return tokens_match(output, expected, rule if isinstance(rule, TokensRule) else DEFAULT_TOKENS)


def values_match(value: Any, expected: Any, rule: CompareRule | None = None) -> bool:
    """Whether a returned value is right; a rule that is not for returned values counts as the default, value."""
    if rule == "exact" or isinstance(rule, ExactRule):
        return ValueComparison(EXACT_VALUE).match(value, expected)
    if isinstance(rule, ValueRule) and rule.equals_as_python:
        return equal_in_python(value, expected)
    return ValueComparison(rule if isinstance(rule, ValueRule) else DEFAULT_VALUE).match(value, expected)
