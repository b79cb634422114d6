"""Repeated blocks: boundaries, any place and period, speed, agreement with a plain regular expression."""

import random
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smalt.credit.cobalt_reward import repeats_a_block

RANDOM = random.Random(0)
BLOCK = "".join(RANDOM.sample("abcdefghijklmnopqrstuvwxyzABCDEFGHIJ", 32))


def noise(length: int) -> str:
    return "".join(RANDOM.choice("0123456789 \n") for _ in range(length))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", False),
        (BLOCK * 8, True),
        (BLOCK * 7, False),
        (BLOCK * 7 + BLOCK[:31], False),
        (BLOCK[:31] * 8, False),
        (BLOCK[:31] * 16, True),  # a block of 62 stands 8 times
        (noise(77) + BLOCK * 8 + noise(13), True),
        (noise(77) + BLOCK * 7 + noise(250), False),
        ((BLOCK + noise(1000)) * 8, True),
        ((BLOCK + noise(1000)) * 7, False),
        ((BLOCK + "#") * 4 + "x" + (BLOCK + "#") * 7, False),
        ("a" * 256, True),
        ("a" * 255, False),
        ("line of code\n" * 30, True),
        ("é" * 300 + "😀", True),
        ("\ud800" * 300, True),  # a lone surrogate is no reason to fail
    ],
)
def test_blocks(text, expected):
    assert repeats_a_block(text) is expected


def test_other_thresholds():
    assert repeats_a_block("abcabcabc", block=3, times=3)
    assert not repeats_a_block("abcabcabc", block=4, times=3)
    with pytest.raises(ValueError, match="times"):
        repeats_a_block("abab", block=2, times=2)


@pytest.mark.parametrize("offset", range(0, 70, 7))
@pytest.mark.parametrize("length", [32, 33, 47, 100])
def test_found_at_every_offset(offset, length):
    block = noise(length - 1) + "|"
    assert repeats_a_block(noise(offset) + block * 8 + noise(5))
    assert not repeats_a_block(noise(offset) + block * 7 + "|" + noise(500))


@given(
    unit=st.text("ab", min_size=1, max_size=5),
    copies=st.integers(0, 14),
    before=st.text("ab", max_size=9),
    after=st.text("ab", max_size=9),
    block=st.integers(1, 6),
    times=st.integers(3, 6),
)
def test_agrees_with_a_back_reference(unit, copies, before, after, block, times):
    text = before + unit * copies + after
    expected = any(
        re.search(rf"(.{{{length}}})\1{{{times - 1},}}", text, re.DOTALL)
        for length in range(block, len(text) // times + 1)
    )
    assert repeats_a_block(text, block, times) is expected


@pytest.mark.parametrize(
    "text",
    [
        noise(30_000),
        ("x = x + 1\n" * 25 + "y") * 120,
        ("ab" * 127 + "\n") * 7 * 17,
        "a" * 255 + noise(29_000),
    ],
    ids=["noise", "near miss", "short periods", "one run"],
)
def test_quick_on_30_kb(text):
    begin = time.process_time()
    repeats_a_block(text)
    assert time.process_time() - begin < 1.0
