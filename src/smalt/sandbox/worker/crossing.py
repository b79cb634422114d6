"""How calls cross between test code and a program that run in two processes.

Messages are lists in JSON; values are plain data as in `values`, with some more tags:

    range {"r": [start, stop, step]}   deque {"q": [...]}   Decimal, Fraction {"D": [type, text]}
    numpy array {"n": [dtype, nested lists]}   a builtin type or function {"B": name}
    an object of the program {"h": [number, type name]}: only its number crosses, the object stays
"""

from __future__ import annotations

import builtins
import json
import sys
from collections import deque
from collections.abc import Callable
from typing import Any

from smalt.sandbox.worker import values
from smalt.sandbox.worker.frames import ProtocolError, receive_frame, send_frame
from smalt.sandbox.worker.requests import MAX_VALUE_BYTES

_to_json = json.JSONEncoder(check_circular=False, separators=(",", ":")).encode
_NUMPY_KINDS = frozenset("biufcU")
_FUNCTIONS = frozenset(("abs", "len", "max", "min", "sum", "sorted", "all", "any", "round", "repr"))

MAX_MESSAGE_BYTES = 4 * MAX_VALUE_BYTES
"""More than a returned value may have elsewhere: the test's large inputs come back when changed in place."""


class UnsendableError(Exception):
    """A value has no form in which it could cross."""


def send(connection: int, message: list[Any], max_bytes: int = MAX_MESSAGE_BYTES) -> None:
    """Send one message; raises UnsendableError when it is too large, OSError when the other side is gone."""
    data = _to_json(message).encode("utf-8", "surrogatepass")
    if len(data) > max_bytes:
        raise UnsendableError(f"a message of {len(data)} bytes is too large to cross")
    send_frame(connection, data)


def receive(connection: int) -> list[Any] | None:
    """Receive one message; None when the other side is gone or sends something else."""
    try:
        data = receive_frame(connection, MAX_MESSAGE_BYTES)
        message = None if data is None else json.loads(data)
    except (OSError, ProtocolError, ValueError, RecursionError):
        return None
    return message if isinstance(message, list) and message else None


def encode(value: Any, handle: Callable[[Any], Any]) -> Any:
    """Return the JSON-ready form; `handle` gives that of objects that are no data (or raises)."""

    def other(item: Any) -> Any:
        return _encode_known(item, handle)

    return _encode_array(value) or values.encode(value, 0, other)


def _encode_known(item: Any, handle: Callable[[Any], Any]) -> Any:
    kind = type(item)
    if kind is range:
        return {"r": [values.encode(number) for number in (item.start, item.stop, item.step)]}
    if kind is deque:
        return {"q": [encode(part, handle) for part in item]}
    if kind.__module__ in ("decimal", "fractions") and kind.__name__ in ("Decimal", "Fraction"):
        return {"D": [kind.__name__, str(item)]}
    name = getattr(item, "__name__", None)
    if isinstance(name, str) and getattr(builtins, name, None) is item and _is_harmless(name, item):
        return {"B": name}
    return handle(item)


def _encode_array(value: Any) -> Any:
    kind = type(value)
    if kind.__name__ == "ndarray" and kind.__module__ == "numpy" and value.dtype.kind in _NUMPY_KINDS:
        return {"n": [value.dtype.str, values.encode(value.tolist())]}
    return None


def decode(data: Any, rebuild: Callable[[int, str], Any], note: Callable[[Any], None] = lambda value: None) -> Any:
    """Rebuild a value; `rebuild` gives the stand-in for an object by number and type name.

    Each value in it that JSON's tags in `values` do not cover is told to `note`. Raises ValueEncodingError for
    what `encode` cannot have written.
    """

    def other(tag: str, body: Any) -> Any:
        if tag == "h":
            number, name = body
            value = rebuild(int(number), str(name)[:200])
        elif tag == "q":
            value = deque(decode(part, rebuild, note) for part in body)
        else:
            value = _decode_known(tag, body)
        note(value)
        return value

    return values.decode(data, other)


def has_nan(value: Any) -> bool:
    """Whether a decoded value is or contains NaN."""
    kind = type(value)
    if kind is float or kind is complex:
        return bool(value != value)
    if kind is dict:
        return any(map(has_nan, value)) or any(map(has_nan, value.values()))
    if kind in (list, tuple, set, frozenset, deque):
        return any(map(has_nan, value))
    return kind.__name__ == "ndarray" and bool((value != value).any())


def _decode_known(tag: str, body: Any) -> Any:
    if tag == "r":
        return range(*(int(values.decode(number)) for number in body))
    if tag == "B":
        return _builtin(str(body))
    if tag == "D":
        from decimal import Decimal
        from fractions import Fraction

        name, text = body
        return {"Decimal": Decimal, "Fraction": Fraction}[str(name)](str(text))
    if tag == "n" and "numpy" in sys.modules:
        dtype, nested = body
        numpy = sys.modules["numpy"]
        return numpy.array(values.decode(nested), dtype=_checked_dtype(numpy, dtype))
    raise ValueError(f"unknown tag {tag!r}")


def _builtin(name: str) -> Any:
    found = getattr(builtins, name)
    if _is_harmless(name, found):
        return found
    raise ValueError(f"{name} does not cross")


def _is_harmless(name: str, item: Any) -> bool:
    # The program chooses the name: types and exceptions only, whose calls give instances of themselves (those of
    # `reversed` do not, and `__loader__` is a type), besides functions that give plain data.
    is_proper_type = isinstance(item, type) and name != "reversed" and not name.startswith("_")
    return is_proper_type or name in _FUNCTIONS


def _checked_dtype(numpy: Any, text: Any) -> Any:
    dtype = numpy.dtype(str(text))
    if dtype.kind not in _NUMPY_KINDS:
        raise ValueError(f"arrays of {text} do not cross")
    return dtype
