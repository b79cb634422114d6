"""What the samples of a training step were like, as numbers for the log."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from smalt.credit.advantages import has_signal
from smalt.rollouts.tree import Node, Tree


def tree_metrics(trees: Sequence[Tree]) -> dict[str, float]:
    """Means over the programs of a step, and their counts; programs of earlier steps (NGU) are left out."""
    nodes = [node for tree in trees for node in [*tree.nodes()][tree.kept :]]
    scored = [node for node in nodes if node.reward is not None]
    first_turn = [n for tree in trees if not tree.attempts for n in tree.children if n.reward is not None]
    after_failure = [node for tree in trees for node in _after_failure(tree) if node.reward is not None]
    compared = [group for tree in trees for group in tree.groups() if len(group) > 1]
    return {
        "reward_mean": _mean([node.reward or 0.0 for node in scored]),
        "pass_rate_mean": _mean([node.pass_rate for node in scored]),
        "solved_share": _mean([float(node.passes_all) for node in scored]),
        "solved_share_first_turn": _mean([float(node.passes_all) for node in first_turn]),
        "solved_share_after_failure": _mean([float(node.passes_all) for node in after_failure]),
        "without_program": _mean([float(node.program is None) for node in nodes]),
        "cut_off": _mean([float(not node.completion.is_finished) for node in nodes]),
        "infra_errors": float(sum(node.is_infra_error for node in nodes)),
        "low_trust_passes": float(sum(map(_passes_by_low_trust, nodes))),
        "completion_tokens_mean": _mean([float(len(node.completion.ids)) for node in nodes]),
        "trees": float(len(trees)),
        "programs": float(len(nodes)),
        "sampled_tokens": float(sum(len(node.completion.ids) for node in nodes)),
        "groups_without_signal": _mean([float(not has_signal([n.credit for n in group])) for group in compared]),
    }


def _after_failure(tree: Tree) -> list[Node]:
    """The nodes of a tree that were written after an unsolved program."""
    starts_failed = tree.attempts > 0 and tree.previous_best < 1
    return [
        node
        for node in tree.nodes()
        if (starts_failed if node.parent is None else not node.parent.passes_all and not node.parent.is_infra_error)
    ]


def _passes_by_low_trust(node: Node) -> bool:
    """Whether the node's pass was told by test code in the program's own process, which could be forged."""
    return node.passes_all and node.grade is not None and node.grade.is_low_trust


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0
