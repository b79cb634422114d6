"""The filter assembler, against a small interpreter of the kernel's instructions."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smalt.sandbox.worker.layers import bpf, numbers
from smalt.sandbox.worker.layers.filters import ChildFilter, server_filter

pytestmark = pytest.mark.skipif(not numbers.is_known_machine(), reason="no table of system calls for this machine")
DENY = bpf.refuse(1)
OTHER = bpf.refuse(13)


def decide(code: bytes, number: int, arguments: tuple[int, ...] = (), architecture: int | None = None) -> int:
    """Run a filter on a system call as the kernel does."""
    known = numbers.AUDIT_ARCHITECTURES[numbers.MACHINE]
    data = struct.pack("iIQ6Q", number, architecture or known, 0, *arguments, *[0] * (6 - len(arguments)))
    program = list(struct.iter_unpack("HBBI", code))
    accumulator = place = 0
    while True:
        operation, if_true, if_false, operand = program[place]
        place += 1
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("I", data, operand)
        elif operation == 0x06:
            return operand
        elif operation == 0x05:
            place += operand
        else:
            holds = {0x15: accumulator == operand, 0x35: accumulator >= operand, 0x45: bool(accumulator & operand)}
            place += if_true if holds[operation] else if_false


_decisions = st.dictionaries(st.integers(0, 600), st.sampled_from([bpf.ALLOW, DENY, OTHER]), max_size=250)


@given(_decisions, st.lists(st.integers(0, 700), max_size=40))
@settings(max_examples=60, deadline=None)
def test_the_tree_decides_as_its_table(decisions: dict[int, int], asked: list[int]) -> None:
    code = bpf.assemble(decisions, DENY)
    for number in [*asked, *decisions]:
        assert decide(code, number) == decisions.get(number, DENY)


@given(st.integers(0, 2**64 - 1), st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=12))
@settings(deadline=None)
def test_decisions_by_argument(argument: int, listed: list[int]) -> None:
    code = bpf.assemble(
        {
            1: bpf.if_argument_in(2, listed, bpf.ALLOW, DENY),
            2: bpf.if_argument_has(0, listed[0], bpf.ALLOW, DENY),
            3: bpf.only_if_argument_is(1, listed[0], bpf.if_argument_in(2, listed, bpf.ALLOW, OTHER), DENY),
        },
        OTHER,
    )
    low = argument & 0xFFFFFFFF
    assert decide(code, 1, (0, 0, argument)) == (bpf.ALLOW if low in listed else DENY)
    assert decide(code, 2, (argument,)) == (bpf.ALLOW if low & listed[0] else DENY)
    assert decide(code, 3, (0, argument, listed[-1])) == (bpf.ALLOW if low == listed[0] else DENY)


def test_other_architectures_end_the_process() -> None:
    code = bpf.assemble({1: bpf.ALLOW}, DENY)
    assert decide(code, 1) == bpf.ALLOW
    assert decide(code, 1, architecture=0x40000003) == bpf.KILL_PROCESS


def test_the_server_may_fork_and_its_child_may_not() -> None:
    clone, kill, fcntl, read = (numbers.number_of(name) for name in ("clone", "kill", "fcntl", "read"))
    outer = bytes(server_filter(may_write=False)._code)
    child_filter = ChildFilter()
    child_filter._filter.write(child_filter._places, 4711)
    inner = bytes(child_filter._filter._code)
    assert decide(outer, clone, (17,)) == decide(outer, kill, (1, 9)) == bpf.ALLOW
    assert decide(inner, clone, (17,)) == bpf.refuse(11) and decide(inner, clone, (0x10000,)) == bpf.ALLOW
    assert decide(inner, kill, (1, 9)) == decide(inner, kill, (0, 9)) == DENY
    assert decide(inner, kill, (4711, 9)) == bpf.ALLOW
    assert decide(outer, fcntl, (0, 3)) == bpf.ALLOW and decide(outer, fcntl, (0, 8)) == DENY
    assert decide(outer, read) == decide(inner, read) == bpf.ALLOW


def test_files_are_opened_for_writing_only_where_they_may_be() -> None:
    openat = numbers.number_of("openat")
    for may_write, expected in ((True, bpf.ALLOW), (False, OTHER)):
        code = bytes(server_filter(may_write)._code)
        assert decide(code, openat, (0, 0, 0o1)) == decide(code, openat, (0, 0, 0o100)) == expected
        assert decide(code, openat, (0, 0, 0)) == bpf.ALLOW


def test_every_number_is_used_once() -> None:
    for place in (0, 1):
        found = [pair[place] for pair in numbers._NUMBERS.values() if pair[place] is not None]
        assert len(found) == len(set(found))
