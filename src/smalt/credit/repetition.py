"""Does a text loop? A block of characters written over and over is what a degenerate completion looks like.

A regular expression with a back-reference per block length, as in the authors' code, takes seconds on a long
reply. This file looks at one aligned block in every few instead: about n ln(n) / times comparisons.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FEWEST_TIMES = 3  # with two copies no aligned block need lie inside the repeated part


def repeats_a_block(text: str, block: int = 32, times: int = 8) -> bool:
    """Whether some block of at least `block` characters stands at least `times` times in a row in `text`.

    The block may begin anywhere and may itself be periodic: 256 equal characters are 8 times a block of 32.
    Source: `find_repetitive_pattern` of the Cobalt code (32 characters, 8 times).

    Raises ValueError when `block` < 1 or `times` < 3.
    """
    if block < 1 or times < FEWEST_TIMES:
        raise ValueError(f"block must be >= 1 and times >= {FEWEST_TIMES}, got {block} and {times}")
    longest = len(text) // times
    if longest < block:
        return False
    characters = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    return any(_repeats_length(text, characters, length, times) for length in range(block, longest + 1))


def _repeats_length(text: str, characters: NDArray[np.uint32], length: int, times: int) -> bool:
    """Whether a block of exactly `length` characters stands `times` times in a row.

    That means text[i] == text[i + length] for (times - 1) * length positions in a row, a stretch that covers
    at least times - 2 whole blocks of the grid 0, length, 2 * length, ... So one of every times - 2 grid
    blocks equals its successor, and only around such a block is the stretch measured.
    """
    needed = (times - 1) * length
    for start in range(0, len(text) - 2 * length + 1, (times - 2) * length):
        middle = start + length
        if text[start:middle] != text[middle : middle + length]:
            continue
        window = characters[max(0, start - needed) : start + 2 * needed]
        if _longest_run(window[length:] == window[:-length]) >= needed:
            return True
    return False


def _longest_run(flags: NDArray[np.bool_]) -> int:
    """Length of the longest run of True in `flags`, shape (n,)."""
    breaks = np.flatnonzero(np.concatenate(([True], ~flags, [True])))
    return int(np.diff(breaks).max()) - 1
