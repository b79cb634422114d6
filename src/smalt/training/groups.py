"""What credit hands to the learner: for each tree its groups, ready to train on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from smalt.credit.estimators import whitened
from smalt.policy.sampling import Completion
from smalt.rollouts.tree import Node


@dataclass(frozen=True)
class TrainingGroup:
    """Siblings with their advantages; members without one (infra errors, pruned) were taken out before."""

    prompt_ids: tuple[int, ...]
    completions: tuple[Completion, ...]
    advantages: tuple[float, ...]
    turn: int = 1
    """Turn of the tree at which they were sampled, counted from 1."""
    returns: tuple[float, ...] = ()
    """What followed each completion, for methods that learn values; `advantages` is then made of it."""


def training_groups(members: Iterable[tuple[Node, float | None]]) -> list[TrainingGroup]:
    """Nodes of one tree with their advantages, siblings together; a node with None is left out."""
    siblings: dict[int, list[tuple[Node, float]]] = {}
    for node, advantage in members:
        if advantage is not None:
            siblings.setdefault(id(node.parent), []).append((node, advantage))
    return [_group(group) for group in siblings.values()]


def whiten_batch(trees: Sequence[Sequence[TrainingGroup]]) -> list[list[TrainingGroup]]:
    """The same groups with their advantages normalised over all completions of the batch."""
    values = iter(whitened([advantage for groups in trees for group in groups for advantage in group.advantages]))
    return [[replace(group, advantages=tuple(next(values) for _ in group.advantages)) for group in g] for g in trees]


def _group(members: Sequence[tuple[Node, float]]) -> TrainingGroup:
    first = members[0][0]
    return TrainingGroup(
        first.prompt.ids,
        tuple(node.completion for node, _ in members),
        tuple(advantage for _, advantage in members),
        first.turn,
    )
