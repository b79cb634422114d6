"""Plain Python data as JSON with tags, for values that cross the sandbox in either direction.

Pickle and marshal are out of the question: what comes out of a program's process is hostile until proven
plain. JSON alone loses tuples, sets, bytes, big integers, NaN and dict keys that are not strings, so each of
those is written as an object with one key, its tag:

    tuple {"t": [...]}   set {"s": [...]}   frozenset {"z": [...]}   dict {"d": [[key, value], ...]}
    big int {"i": "0x.."}   nan, inf {"f": "nan"}   complex {"c": [re, im]}   bytes {"b": hex}
    anything else {"o": [type name, repr]}, which decodes to an `Opaque` and equals nothing

Subclasses collapse to the plain type they extend, so a value's own `__eq__` never leaves the sandbox.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

MAX_CONTAINERS = 300_000
MAX_DEPTH = 200
"""Nesting levels of a value; deeper (or cyclic) values are refused on both sides."""

_CONTAINER_TAGS = frozenset("ctdsz")
_Other = Callable[[str, Any], Any] | None
_JSON_INT = 1 << 62
_REPR_LENGTH = 500
# More equal hashes than this among the keys of one container are an attack on the decoder's time.
_MAX_EQUAL_HASHES = 64


class ValueEncodingError(Exception):
    """A value cannot cross: too deep, cyclic, or (when decoding) not what the encoder writes."""


@dataclass(frozen=True)
class Opaque:
    """Stands for a value that is not plain data, such as a generator or a class instance."""

    type_name: str
    text: str

    def __repr__(self) -> str:
        """Return the repr of the original."""
        return self.text


def _opaque(value: Any) -> Any:
    return {"o": [type(value).__name__, repr(value)[:_REPR_LENGTH]]}


def encode(value: Any, depth: int = 0, other: Callable[[Any], Any] = _opaque) -> Any:
    """Return the JSON-ready form of `value`; `other` gives the form of values that are not plain data."""
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return value if -_JSON_INT < value < _JSON_INT else {"i": hex(value)}
    if kind is float:
        return value if value - value == 0 else {"f": float.__repr__(value)}
    if depth > MAX_DEPTH:
        raise ValueEncodingError(f"a value is nested more than {MAX_DEPTH} levels deep")
    if kind is list:
        return [encode(item, depth + 1, other) for item in value]
    if kind is tuple:
        return {"t": [encode(item, depth + 1, other) for item in value]}
    if kind is dict:
        return {"d": [[encode(key, depth + 1, other), encode(item, depth + 1, other)] for key, item in value.items()]}
    return _encode_rare(value, kind, depth, other)


def _encode_rare(value: Any, kind: type, depth: int, other: Callable[[Any], Any]) -> Any:
    if kind is set or kind is frozenset:
        return {"s" if kind is set else "z": [encode(item, depth + 1, other) for item in value]}
    if kind is bytes or kind is bytearray:
        return {"b": bytes(value).hex()}
    if kind is complex:
        return {"c": [float.__repr__(value.real), float.__repr__(value.imag)]}
    if (kind.__module__ or "").partition(".")[0] == "numpy" and hasattr(value, "tolist"):
        return encode(value.tolist(), depth + 1, other)
    for base, collapse in _COLLAPSE:
        if isinstance(value, base):
            return encode(collapse(value), depth + 1, other)
    return other(value)


# bool cannot be subclassed. The base class's own methods are called, not the subclass's.
_COLLAPSE: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (int, int.__int__),
    (float, float.__float__),
    (str, str.__str__),
    (list, lambda value: list(list.__iter__(value))),
    (tuple, lambda value: tuple(tuple.__iter__(value))),
    (dict, lambda value: dict(dict.items(value))),
    (set, lambda value: set(set.__iter__(value))),
    (frozenset, lambda value: frozenset(frozenset.__iter__(value))),
    (bytes, lambda value: bytes(memoryview(value))),
)


def decode(data: Any, other: Callable[[str, Any], Any] | None = None) -> Any:
    """Rebuild the value behind `data`; `other` rebuilds what the encoder's `other` wrote, by tag and body.

    Raises ValueEncodingError for what the encoder cannot have written.
    """
    try:
        return _Decoder(other).value(data, 0)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ValueEncodingError(f"malformed value: {error}") from None


class _Decoder:
    """Rebuilds one value, of a bounded number of containers: a short text can hold millions of empty lists."""

    def __init__(self, other: _Other) -> None:
        self._other = other
        self._left = MAX_CONTAINERS

    def value(self, data: Any, depth: int) -> Any:
        if data is None or isinstance(data, bool | str | int | float):
            return data
        self._left -= 1
        if depth > 2 * MAX_DEPTH or self._left < 0:
            raise ValueEncodingError(f"a value is nested too deep or has more than {MAX_CONTAINERS} containers")
        if isinstance(data, list):
            return self._values(data, depth)
        if not isinstance(data, dict) or len(data) != 1:
            raise ValueEncodingError("a tagged value must be an object with one key")
        ((tag, body),) = data.items()
        if tag in ("i", "f", "b") and isinstance(body, str):
            return int(body, 16) if tag == "i" else float(body) if tag == "f" else bytes.fromhex(body)
        if self._other is not None and tag not in _CONTAINER_TAGS:
            return self._other(tag, body)
        if not isinstance(body, list):
            raise ValueEncodingError(f"unknown tag {tag!r}")
        return self._container(tag, body, depth)

    def _values(self, data: Iterable[Any], depth: int) -> list[Any]:
        return [self.value(item, depth + 1) for item in data]

    def _container(self, tag: str, body: list[Any], depth: int) -> Any:
        if tag == "c":
            real, imaginary = body
            return complex(float(real), float(imaginary))
        if tag == "o":
            name, text = body
            return Opaque(str(name)[:_REPR_LENGTH], str(text)[:_REPR_LENGTH])
        if tag == "d":
            keys = self._values((key for key, _ in body), depth)
            _refuse_colliding(keys)
            return dict(zip(keys, self._values((item for _, item in body), depth), strict=True))
        items = self._values(body, depth)
        if tag == "t":
            return tuple(items)
        if tag not in ("s", "z"):
            raise ValueEncodingError(f"unknown tag {tag!r}")
        _refuse_colliding(items)
        return set(items) if tag == "s" else frozenset(items)


def _refuse_colliding(keys: list[Any]) -> None:
    """Refuse keys chosen to share one hash: building a dict of n such keys takes n squared steps."""
    if len(keys) > _MAX_EQUAL_HASHES and max(Counter(map(hash, keys)).values()) > _MAX_EQUAL_HASHES:
        raise ValueEncodingError("too many keys of one container share a hash")
