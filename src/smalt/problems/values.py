"""Python values in JSON: the tagged encoding of the native format.

A test's arguments and expected value are Python data, and JSON lacks some of it. Turning a tuple into a list
would be no rounding: a reference solution that adds a tuple to its argument then crashes. So what JSON
cannot hold is an object with one key that starts with `$`; everything else is plain JSON.

    (1, 2)         {"$tuple": [1, 2]}
    {1, 2}         {"$set": [1, 2]}
    {1: "a"}       {"$dict": [[1, "a"]]}     (keys that are no strings, or start with "$")
    float("inf")   {"$float": "inf"}         (also "-inf" and "nan")
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any


def encode_value(value: Any) -> Any:
    """Python data as JSON data.

    Raises:
        ValueError: a value that is not plain data (bytes, complex, frozenset, an object).
    """
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if math.isfinite(value) else {"$float": repr(value)}
    if kind is list:
        return [encode_value(item) for item in value]
    if kind is tuple:
        return {"$tuple": [encode_value(item) for item in value]}
    if kind is set:
        return {"$set": [encode_value(item) for item in _in_stable_order(value)]}
    if kind is dict:
        return _encode_dict(value)
    raise ValueError(f"a {kind.__name__} cannot be written; use None, bool, int, float, str, list, tuple, dict, set")


def decode_value(value: Any) -> Any:
    """JSON data as Python data: the inverse of `encode_value`.

    Raises:
        ValueError: an unknown `$` tag, or contents that do not fit their tag.
    """
    if isinstance(value, list):
        return [decode_value(item) for item in value]
    if not isinstance(value, dict):
        return value
    if any(key.startswith("$") for key in value):
        return _decode_tagged(value)
    return {key: decode_value(item) for key, item in value.items()}


def is_plain_data(value: Any) -> bool:
    """Whether a value is data that a call test may hold."""
    try:
        encode_value(value)
    except ValueError:
        return False
    return True


def _encode_dict(value: dict[Any, Any]) -> dict[str, Any]:
    if all(type(key) is str and not key.startswith("$") for key in value):
        return {key: encode_value(item) for key, item in value.items()}
    return {"$dict": [[encode_value(key), encode_value(item)] for key, item in value.items()]}


def _in_stable_order(items: set[Any]) -> list[Any]:
    # Strings hash differently in each process; files must not change for it.
    return sorted(items, key=lambda item: (type(item).__name__, repr(item)))


def _decode_tagged(value: dict[str, Any]) -> Any:
    if len(value) != 1:
        raise ValueError('a key that starts with "$" must be the only one; write the object as {"$dict": ...}')
    [(tag, content)] = value.items()
    if tag == "$float" and content in ("inf", "-inf", "nan"):
        return float(content)
    if tag in _CONTAINERS and isinstance(content, list):
        try:
            return _CONTAINERS[tag]([decode_value(item) for item in content])
        except (TypeError, ValueError) as error:
            raise ValueError(f"the contents of {tag} do not fit: {error}") from None
    raise ValueError(
        f'{tag} is no known tag or has the wrong contents; known are {{"$tuple": [..]}}, {{"$set": [..]}}, '
        '{"$dict": [[key, value], ..]}, {"$float": "inf" | "-inf" | "nan"}'
    )


def _pairs(items: list[Any]) -> dict[Any, Any]:
    if not all(isinstance(item, list) and len(item) == 2 for item in items):
        raise ValueError("expected a list of [key, value] pairs")
    return dict(items)


_CONTAINERS: dict[str, Callable[[list[Any]], Any]] = {"$tuple": tuple, "$set": set, "$dict": _pairs}


def value_text(value: object) -> str:
    """A value as a person would write it, or words for one that Python refuses to print."""
    try:
        return repr(value)
    except ValueError:  # the interpreter's bound on printing integers
        return "<a value with an integer too long to print>"
    except RecursionError:
        return "<a value nested too deep to print>"
