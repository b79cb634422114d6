"""Cobalt whose groups always carry a signal, so that every step trains on every row, here and at the peer."""

from __future__ import annotations

from collections.abc import Sequence

from smalt.methods.cobalt import Cobalt
from smalt.rollouts.tree import Node
from smalt.training.groups import TrainingGroup

_NUDGE = 1e-3


class CobaltWithSignal(Cobalt):
    """Cobalt, but rewards differ by a member's place.

    A group without signal costs Smalt no training at all; how many there are would decide the comparison.
    """

    def compare(self, siblings: Sequence[Node], forgotten: Sequence[float] = ()) -> list[TrainingGroup]:
        """The group, its credits set apart from each other by a thousandth."""
        for place, node in enumerate(siblings):
            if node.credit is not None:
                node.reward = node.credit = node.credit + _NUDGE * place
        return super().compare(siblings, forgotten)
