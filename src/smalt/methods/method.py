"""What a method is: a way to grow a tree and a way to give credit in it."""

from __future__ import annotations

from typing import Protocol

from smalt.rollouts.growth import Shape
from smalt.rollouts.tree import Node, Tree
from smalt.training.groups import TrainingGroup


class Method(Protocol):
    """A method of training. To add one, write a file beside this one, its page and its recipe."""

    @property
    def shape(self) -> Shape:
        """How trees grow."""
        ...

    def credit(self, tree: Tree) -> list[TrainingGroup]:
        """Set `reward` on the nodes of a grown tree and return the groups that carry a signal."""
        ...

    def validation_score(self, node: Node) -> float:
        """Score of one program in validation, 0 to 1."""
        ...
