"""A small assembler for seccomp filters: what to do for each system call, compiled to a binary search tree.

The layout matters: when a filter is installed the kernel walks it once per system call number to find out
which ones it may let pass without asking. A list of comparisons takes five times as long to install.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterable, Mapping

from smalt.sandbox.worker.layers.kernel import prepared_call
from smalt.sandbox.worker.layers.numbers import AUDIT_ARCHITECTURES, MACHINE

Instruction = tuple[int, int, int, int]
"""Operation, jump if true, jump if false, operand."""
Decision = int | tuple[Instruction, ...]
"""A final action, or instructions that look at the arguments and end in actions."""

ALLOW = 0x7FFF0000
KILL_PROCESS = 0x80000000
_ERRNO = 0x00050000

_LOAD, _RETURN, _JUMP = 0x20, 0x06, 0x05
_IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT = 0x15, 0x35, 0x45
_NUMBER_OFFSET, _ARCHITECTURE_OFFSET, _ARGUMENTS_OFFSET = 0, 4, 16
_X32_BIT = 0x40000000
_ENOSYS = 38
_MAX_JUMP = 255
_SET_MODE_FILTER, _FLAG_SPEC_ALLOW = 1, 4


def refuse(errno: int) -> int:
    """The call fails with this error number."""
    return _ERRNO | errno


def if_argument_in(index: int, values: Iterable[int], then: int, otherwise: int) -> Decision:
    """Decide by whether the lower half of an argument is one of `values`."""
    listed = tuple(values)
    tests = [(_IF_EQUAL, len(listed) - place, 0, value) for place, value in enumerate(listed)]
    return (_load_argument(index), *tests, (_RETURN, 0, 0, otherwise), (_RETURN, 0, 0, then))


def if_argument_has(index: int, bits: int, then: int, otherwise: int) -> Decision:
    """Decide by whether the lower half of an argument has any of `bits`."""
    return (_load_argument(index), (_IF_ANY_BIT, 0, 1, bits), (_RETURN, 0, 0, then), (_RETURN, 0, 0, otherwise))


def only_if_argument_is(index: int, value: int, then: Decision, otherwise: int) -> Decision:
    """Go on to `then` when the lower half of an argument is `value`."""
    rest = then if isinstance(then, tuple) else ((_RETURN, 0, 0, then),)
    return (_load_argument(index), (_IF_EQUAL, 1, 0, value), (_RETURN, 0, 0, otherwise), *rest)


def _load_argument(index: int) -> Instruction:
    return (_LOAD, 0, 0, _ARGUMENTS_OFFSET + 8 * index)


def assemble(decisions: Mapping[int, Decision], default: int) -> bytes:
    """Return the filter that decides by system call number, as the kernel reads it.

    Calls in the conventions of another architecture end the process; there the numbers mean other things.
    """
    instructions = [*_header(), *_tree(_segments(decisions, default))]
    return b"".join(struct.pack("HBBI", *instruction) for instruction in instructions)


def _header() -> list[Instruction]:
    header = [
        (_LOAD, 0, 0, _ARCHITECTURE_OFFSET),
        (_IF_EQUAL, 1, 0, AUDIT_ARCHITECTURES[MACHINE]),
        (_RETURN, 0, 0, KILL_PROCESS),
        (_LOAD, 0, 0, _NUMBER_OFFSET),
    ]
    if MACHINE == "x86_64":
        header += [(_IF_AT_LEAST, 0, 1, _X32_BIT), (_RETURN, 0, 0, refuse(_ENOSYS))]
    return header


def _segments(decisions: Mapping[int, Decision], default: int) -> list[tuple[int, Decision]]:
    """Return ranges of numbers as (first number, decision), neighbours with equal decisions joined."""
    segments: list[tuple[int, Decision]] = []
    following = 0
    for number in sorted(decisions):
        if number > following:
            segments.append((following, default))
        segments.append((number, decisions[number]))
        following = number + 1
    segments.append((following, default))
    return [
        segment
        for place, segment in enumerate(segments)
        if place == 0 or isinstance(segment[1], tuple) or segment[1] != segments[place - 1][1]
    ]


def _tree(segments: list[tuple[int, Decision]]) -> list[Instruction]:
    if len(segments) == 1:
        decision = segments[0][1]
        return list(decision) if isinstance(decision, tuple) else [(_RETURN, 0, 0, decision)]
    middle = len(segments) // 2
    lower, upper = _tree(segments[:middle]), _tree(segments[middle:])
    first = segments[middle][0]
    if len(lower) <= _MAX_JUMP:
        return [(_IF_AT_LEAST, len(lower), 0, first), *lower, *upper]
    return [(_IF_AT_LEAST, 0, 1, first), (_JUMP, 0, 0, len(lower)), *lower, *upper]


class Filter:
    """An assembled filter, ready to be installed; can be made before a fork and installed after it."""

    def __init__(self, code: bytes) -> None:
        """Lay the filter out in memory, where `placeholders` can be written over."""
        self._code = bytearray(code)
        memory = (ctypes.c_char * len(code)).from_buffer(self._code)
        head = struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(memory))
        self._head = ctypes.create_string_buffer(head, len(head))
        # Without SPEC_ALLOW some kernels slow every program down, against attacks on data that is not there.
        self._install = prepared_call("seccomp", _SET_MODE_FILTER, _FLAG_SPEC_ALLOW, self._head)

    def places_of(self, operand: int) -> list[int]:
        """Return the offsets at which `operand` stands, for `write`."""
        wanted = struct.pack("I", operand)
        return [place for place in range(4, len(self._code), 8) if self._code[place : place + 4] == wanted]

    def write(self, places: Iterable[int], operand: int) -> None:
        """Write `operand` at these offsets."""
        for place in places:
            struct.pack_into("I", self._code, place, operand)

    def install(self) -> None:
        """Put the filter on this thread and all it will start; needs no_new_privs. Raises OSError."""
        self._install()
