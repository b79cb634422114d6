"""Multi-turn best-of-N: each turn draws N programs, and the dialogue goes on with the best (muCode, METHODS 3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from smalt.rollouts.tree import Node

Scores = Callable[[Sequence[Node]], Sequence[float]]
"""A score for each program, higher for better: a learned verifier."""


def no_scores(nodes: Sequence[Node]) -> list[float]:
    """Without a verifier every program is as good as its public tests say."""
    return [0.0] * len(nodes)


def choose_best(nodes: Sequence[Node], count: int, scores: Scores) -> None:
    """Of every `count` nodes in a row mark all but the best as not chosen.

    Best is who passes the most public tests; then by score; then who was drawn first. Hidden tests are not looked
    at. The authors' code asks only whether all public tests pass.
    """
    values = scores(nodes)
    for start in range(0, len(nodes), count):
        places = range(start, min(start + count, len(nodes)))
        best = max(places, key=lambda place: (_public_passes(nodes[place]), values[place], -place))
        for place in places:
            nodes[place].is_chosen = place == best


def _public_passes(node: Node) -> int:
    """Public tests passed; -1 without a program or without verdicts."""
    if node.grade is None or node.is_infra_error:
        return -1
    return sum(result.passed for result in node.grade.public)
