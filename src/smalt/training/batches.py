"""Which contexts a training step gets: shuffled epochs, computed from the seed alone so that a resumed run agrees."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


def batch_of_step(items: Sequence[Item], size: int, step: int, seed: int) -> list[Item]:
    """The `size` items of step `step` (from 0), running through a new shuffle of all items each epoch.

    A batch may span two epochs, so no item is left out however the numbers divide.
    """
    if not items:
        raise ValueError("there is nothing to train on: no contexts were cut")
    chosen: list[Item] = []
    position = step * size
    while len(chosen) < size:
        epoch, offset = divmod(position + len(chosen), len(items))
        order = _epoch_order(len(items), epoch, seed)
        chosen += [items[place] for place in order[offset : offset + size - len(chosen)]]
    return chosen


def steps_of_epochs(items: int, size: int, epochs: float) -> int:
    """Training steps in `epochs` passes over `items`, at least one."""
    return max(1, round(items * epochs / size))


def _epoch_order(count: int, epoch: int, seed: int) -> list[int]:
    order = list(range(count))
    random.Random(f"epoch/{seed}/{epoch}").shuffle(order)
    return order
