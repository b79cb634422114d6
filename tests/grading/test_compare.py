import math
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smalt.grading.compare import outputs_match, values_match
from smalt.sandbox.worker.values import Opaque

BIG = 10**5000

OUTPUT_CASES = [
    ("1 2\n", "1 2", True),
    ("1 2 \n3\t\n\n", "1 2\n3", True),
    ("1\r\n2\r\n", "1\n2", True),
    ("0.333333333", "0.3333333333333333", True),
    ("0.3333", "0.3333333333333333", False),
    ("1.0", "1", True),
    ("1e3", "1000", True),
    ("50000000000000001", "50000000000000000", False),
    ("7", "007", False),
    ("1" * 6000, "1" * 6000, True),
    ("1" * 6000, "1" * 5999 + "2", False),
    ("nan", "NaN", False),
    ("1_0", "10", False),
    ("1_0.0", "10.0", False),
    ("1e400", "1e500", False),
    ("YES", "Yes", False),
    ("1 2", "1 2 3", False),
    ("", "1", False),
    ("", "", True),
    ("\n1", "1", True),
    ("a 1.0000001 b", "a 1 b", True),
    ("٣", "3", False),
]


@pytest.mark.parametrize(("output", "expected", "is_right"), OUTPUT_CASES, ids=count())
def test_outputs(output: str, expected: str, is_right: bool) -> None:
    assert outputs_match(output, expected, "tokens") is is_right
    assert outputs_match(output, expected) is is_right


def test_exact_outputs() -> None:
    assert outputs_match("1 \n", "1 \n", "exact")
    assert not outputs_match("1 \n", "1\n", "exact")


VALUE_CASES: list[tuple[Any, Any, bool]] = [
    (1, 1, True),
    (1, True, False),
    (True, 1, False),
    (False, False, True),
    (1, 1.0, True),
    (0.1 + 0.2, 0.3, True),
    (0.3001, 0.3, False),
    (1e20, 1.0000000001e20, True),
    (math.nan, math.nan, True),
    (math.nan, 0.0, False),
    (math.inf, math.inf, True),
    (math.inf, 1e308, False),
    (BIG, BIG, True),
    (BIG, BIG + 1, False),
    (BIG, 1.0, False),
    (2**53 + 1, 2**53, False),
    ((1, [2]), [1, (2,)], True),
    ([1, 2], [1, 2, 3], False),
    (1, [1, 2, 3], False),
    ([1], 1, False),
    ("a", "a", True),
    ("1", 1, False),
    ("a", ["a"], False),
    (None, None, True),
    (None, 0, False),
    (b"a", "a", False),
    ({"a": [0.1 + 0.2]}, {"a": [0.3]}, True),
    ({1: 2}, {True: 2}, False),
    ({1: 2}, {"1": 2}, False),
    ({1: 2}, {1: 2, 3: 4}, False),
    ({1, 2}, {2, 1}, True),
    ({1}, {True}, False),
    ({0.1 + 0.2, 5}, {0.3, 5}, True),
    ({"a", 1}, {"b", 1}, False),
    ({(1, 2)}, {(1, 2)}, True),
    ({math.nan}, {math.nan}, True),
    ({1}, [1], False),
    (frozenset({1}), {1}, True),
    (1 + 2j, 1 + 2j, True),
    (Opaque("A", "x"), 1, False),
    ([], (), True),
    ({}, [], False),
]


@pytest.mark.parametrize(("value", "expected", "is_right"), VALUE_CASES, ids=count())
def test_values(value: Any, expected: Any, is_right: bool) -> None:
    assert values_match(value, expected) is is_right


def test_exact_values() -> None:
    assert not values_match((1,), [1], "exact")
    assert values_match((1, [math.nan]), (1, [math.nan]), "exact")
    assert not values_match(0.1 + 0.2, 0.3, "exact")


def test_cycles_and_depth_end() -> None:
    left: list[Any] = []
    right: list[Any] = []
    left += [left, left, 1]
    right += [right, right, 1]
    assert values_match(left, right)
    right[2] = 2
    assert not values_match(left, [left, left, 2])
    deep: Any = 0
    other: Any = 0
    for _ in range(10_000):
        deep, other = [deep], [other]
    assert not values_match(deep, other)


_data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


def _with_tuples(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_with_tuples, value))
    return {key: _with_tuples(item) for key, item in value.items()} if isinstance(value, dict) else value


@given(_data, _data)
@settings(max_examples=150, deadline=None)
def test_value_comparison_is_reflexive_and_symmetric(left: Any, right: Any) -> None:
    assert values_match(left, left, "exact")
    assert values_match(_with_tuples(left), left)
    assert values_match(left, right) == values_match(right, left)


@given(st.text(max_size=20), st.text(max_size=20))
@settings(max_examples=100, deadline=None)
def test_output_comparison_is_reflexive_and_symmetric(left: str, right: str) -> None:
    assert outputs_match(left, left)
    assert outputs_match(f" {left}\n\n", left)
    assert outputs_match(left, right) == outputs_match(right, left)


@given(st.lists(st.integers(), min_size=1))
@settings(max_examples=50, deadline=None)
def test_no_integer_passes_for_another(numbers: list[int]) -> None:
    text = " ".join(map(str, numbers))
    assert outputs_match("\n".join(map(str, numbers)), text)
    assert not outputs_match(" ".join(map(str, [*numbers[:-1], numbers[-1] + 1])), text)
