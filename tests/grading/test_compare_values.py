import time
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smalt.grading.compare import values_match
from smalt.problems.problem import ValueRule
from smalt.sandbox.worker.values import Opaque

BIG = 10**5000


def rule(**changes: Any) -> ValueRule:
    return ValueRule(rule="value", **changes)


CASES: list[tuple[ValueRule, Any, Any, bool]] = [
    (rule(absolute_tolerance=0.1), [1.05], [1.0], True),
    (rule(absolute_tolerance=0.1), [1.2], [1.0], False),
    (rule(relative_tolerance=0.01, absolute_tolerance=0), 1005.5, 1000.5, True),
    (rule(absolute_tolerance=5), 3, 4, False),
    (rule(relative_tolerance=0.5), BIG, BIG + 1, False),
    (rule(relative_tolerance=0, absolute_tolerance=0), 0.1 + 0.2, 0.3, False),
    (rule(), 1e10 + 1, 10**10, False),
    (rule(), 1e10, 10**10, True),
    (rule(), float(2**53), 2**53 + 1, False),
    (rule(), BIG, 1.0, False),
    (rule(), BIG, 1j, False),
    (rule(tells_tuples_from_lists=True), (1,), [1], False),
    (rule(tells_tuples_from_lists=True), [(1,)], [(1,)], True),
    (rule(tells_tuples_from_lists=True), [(1,)], [[1]], False),
    (rule(tells_tuples_from_lists=True), 0.1 + 0.2, 0.3, True),
    (rule(), [2, 1], [1, 2], False),
    (rule(unordered="outermost"), [2, 1], [1, 2], True),
    (rule(unordered="outermost"), [1, 1, 2], [1, 2, 2], False),
    (rule(unordered="outermost"), [[2, 1], [3]], [[3], [1, 2]], False),
    (rule(unordered="everywhere"), [[2, 1], [3]], [[3], [1, 2]], True),
    (rule(unordered="everywhere"), {"a": [2, 1]}, {"a": [1, 2]}, True),
    (rule(unordered="outermost"), {"a": [2, 1]}, {"a": [1, 2]}, False),
    (rule(unordered="outermost"), [0.1 + 0.2, 5, 0.1], [0.1, 0.3, 5], True),
    (rule(unordered="outermost"), [True, 2], [2, 1], False),
    (
        rule(unordered="outermost"),
        ["b", None, 1.5, (1, "x"), {"k": 1}, {2}],
        [{2}, {"k": 1}, [1, "x"], 1.5, None, "b"],
        True,
    ),
    (rule(unordered="outermost"), [float("nan"), 1], [1, float("nan")], True),
    (rule(unordered="outermost"), [], (), True),
    (rule(), {(1, 0.1 + 0.2)}, {(1, 0.3)}, True),
    (rule(), {(1, 2)}, {(2, 1)}, False),
    (rule(), {frozenset({1, 2})}, {frozenset({2, 1})}, True),
    (rule(), {True, 2}, {1, 2}, False),
    (rule(), [Opaque("A", "x")], [1], False),
    (rule(unordered="outermost"), [Opaque("A", "x"), 1], [1, 2], False),
]


@pytest.mark.parametrize(("by", "value", "expected", "is_right"), CASES, ids=count())
def test_rules(by: ValueRule, value: Any, expected: Any, is_right: bool) -> None:
    assert values_match(value, expected, by) is is_right
    assert values_match(expected, value, by) is is_right


NAN = float("nan")
AS_PYTHON: list[tuple[Any, Any, bool]] = [
    (0, False, True),
    (1.0, True, True),
    (2, True, False),
    ([0, {1: "a"}], [False, {True: "a"}], True),
    ({1, 2}, frozenset({True, 2.0}), True),
    ((1,), [1], False),
    ([(1,)], [[1]], False),
    ((1, [2]), (1.0, [2]), True),
    ({1}, [1], False),
    ("a", b"a", False),
    ("1", 1, False),
    (None, False, False),
    (0.1 + 0.2, 0.3, False),
    (float(2**53), 2**53 + 1, False),
    (1 + 0j, 1, True),
    (NAN, float("nan"), False),
    ([NAN], [float("nan")], False),
    (BIG, BIG, True),
    (Opaque("Fraction", "1"), 1, False),
]


@pytest.mark.parametrize(("value", "expected", "is_right"), AS_PYTHON, ids=count())
def test_what_was_an_assert_compares_as_python_does(value: Any, expected: Any, is_right: bool) -> None:
    assert values_match(value, expected, rule(equals_as_python=True)) is is_right
    assert values_match(expected, value, rule(equals_as_python=True)) is is_right


def _nested(depth: int, wrap: Callable[[Any], Any], core: Any = 0) -> Any:
    for _ in range(depth):
        core = wrap(core)
    return core


HOSTILE: list[Any] = [
    _nested(100_000, lambda inner: [inner]),
    _nested(100_000, lambda inner: (inner,)),
    _nested(100_000, lambda inner: {"a": inner}),
    _nested(400, lambda inner: [inner, list(range(50))]),
    [BIG] * 100,
    list(range(5_000)),
    ["\ud800\0"] * 10_000,
    [[]] * 2_000,
    {str(number): number for number in range(3_000)},
    {float(number) for number in range(3_000)},
]


@pytest.mark.parametrize("value", HOSTILE, ids=count())
@pytest.mark.parametrize("unordered", ["nothing", "outermost", "everywhere"])
def test_hostile_values_end_soon_and_never_raise(value: Any, unordered: Any) -> None:
    started = time.process_time()
    for expected in (1, [1], value, [value, value]):
        values_match(value, expected, rule(unordered=unordered))
        values_match([value, value], expected, rule(unordered=unordered))
        values_match(value, expected, rule(equals_as_python=True))
    assert time.process_time() - started < 5


data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(data, max_size=5), st.randoms())
@settings(max_examples=60, deadline=None)
def test_any_order_of_any_data_is_accepted(items: list[Any], chance: Any) -> None:
    shuffled = list(items)
    chance.shuffle(shuffled)
    assert values_match(shuffled, items, rule(unordered="outermost"))
    assert values_match(shuffled, items, rule(unordered="everywhere"))


@given(data, data)
@settings(max_examples=60, deadline=None)
def test_unordered_comparison_is_symmetric(left: Any, right: Any) -> None:
    by = rule(unordered="everywhere")
    assert values_match(left, right, by) == values_match(right, left, by)
