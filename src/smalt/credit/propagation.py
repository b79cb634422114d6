"""Credit that flows through a tree, from the leaves back: MURPHY's MARS and MERS (METHODS 2).

A reward of None marks a node on which the grader failed; it has no credit and none of its relatives counts it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Earned:
    """A node's own reward and what was earned after its feedback."""

    reward: float | None
    children: tuple[Earned, ...] = ()


def mars(node: Earned) -> float | None:
    """MARS: max(own reward, best child's MARS); never below the own reward."""
    if node.reward is None:
        return None
    return max([node.reward, *(credit for child in node.children if (credit := mars(child)) is not None)])


def mers(node: Earned, turns_left: int, gamma: float) -> float | None:
    """MERS, summed first and divided once: Q / turns_left with Q = own + gamma * mean of the children's Q.

    `turns_left` is S - s + 1: the turns from this one, s, to the last, S. A leaf keeps its own reward, solved or not:
    nothing is known of what would have followed. In [0, 1] for rewards in [0, 1] and gamma <= 1.
    """
    if node.reward is None or not _known(node.children):
        return node.reward
    return _discounted_sum(node, gamma) / turns_left


def mers_nested(node: Earned, turns_left: int, gamma: float) -> float | None:
    """MERS with the division at every turn: (own + gamma * mean of the children's MERS) / turns_left.

    The other reading of the paper; equal to `mers` for two turns.
    """
    if node.reward is None or not (children := _known(node.children)):
        return node.reward
    credits = [mers_nested(child, turns_left - 1, gamma) or 0.0 for child in children]
    return (node.reward + gamma * math.fsum(credits) / len(credits)) / turns_left


def _discounted_sum(node: Earned, gamma: float) -> float:
    """Q: a known node's own reward and the discounted mean of its children's Q."""
    children = _known(node.children)
    later = math.fsum(_discounted_sum(child, gamma) for child in children) / len(children) if children else 0.0
    return (node.reward or 0.0) + gamma * later


def _known(children: Sequence[Earned]) -> list[Earned]:
    return [child for child in children if child.reward is not None]
