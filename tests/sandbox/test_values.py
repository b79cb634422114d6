import enum
import json
import math
from collections import Counter, defaultdict, namedtuple
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smalt.sandbox.worker.values import MAX_DEPTH, Opaque, ValueEncodingError, decode, encode

_keys = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3),
    max_leaves=5,
)
_values = st.recursive(
    _keys | st.complex_numbers(allow_nan=False),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(_keys, inner, max_size=4)
        | st.sets(_keys, max_size=4)
    ),
    max_leaves=15,
)


def through_json(value: Any) -> Any:
    return decode(json.loads(json.dumps(encode(value))))


@given(_values)
@settings(max_examples=150, deadline=None)
def test_plain_data_survives_with_its_types(value: Any) -> None:
    back = through_json(value)
    assert back == value
    assert repr(back) == repr(value) or isinstance(value, set | frozenset | dict | list | tuple)
    assert type(back) is type(value)


@given(_keys | st.lists(st.integers()))
@settings(max_examples=50, deadline=None)
def test_arbitrary_json_either_decodes_or_is_refused(value: Any) -> None:
    for data in ({"t": [repr(value)]}, {"x": repr(value)}, {"s": [[1]]}, {"i": repr(value)}):
        try:
            decode(data)
        except ValueEncodingError:
            continue


def test_integers_beyond_the_print_limit() -> None:
    assert through_json(-(10**6000)) == -(10**6000)


def test_special_floats() -> None:
    assert math.isnan(through_json(math.nan))
    assert through_json([math.inf, -math.inf]) == [math.inf, -math.inf]


class Liar(int):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__


class Colour(enum.IntEnum):
    RED = 1


def test_subclasses_collapse() -> None:
    Point = namedtuple("Point", "x y")
    assert type(through_json(Liar(3))) is int
    assert through_json([Colour.RED, defaultdict(int, a=1), Counter("aa")]) == [1, {"a": 1}, {"a": 2}]
    assert type(through_json(Point(1, 2))) is tuple
    assert through_json([np.int64(3), np.float64(0.5), np.array([[1, 2]])]) == [3, 0.5, [[1, 2]]]


def test_other_values_are_opaque() -> None:
    back = through_json([range(3), object()])
    assert [type(item) for item in back] == [Opaque, Opaque]
    assert repr(back[0]) == "range(0, 3)"


def test_depth_and_cycles_are_bounded() -> None:
    cyclic: list[Any] = []
    cyclic.append(cyclic)
    deep: Any = 0
    for _ in range(MAX_DEPTH + 2):
        deep = (deep,)
    for value in (cyclic, deep):
        with pytest.raises(ValueEncodingError):
            encode(value)


@pytest.mark.parametrize(
    "data",
    [{"s": [[1]]}, {"d": [[1]]}, {"d": [1]}, {"i": 3}, {"i": "x"}, {"q": []}, {}, {"t": 1, "s": 2}, {"c": [1]}],
)
def test_malformed_data_is_refused(data: Any) -> None:
    with pytest.raises(ValueEncodingError):
        decode(data)


def test_keys_with_one_hash_are_refused() -> None:
    prime = (1 << 61) - 1
    with pytest.raises(ValueEncodingError, match="hash"):
        decode({"s": [{"i": hex(k * prime)} for k in range(1, 200)]})
