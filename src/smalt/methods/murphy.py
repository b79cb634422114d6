"""MURPHY: trees grown from failing programs, with credit from later turns to earlier ones (arXiv 2511.07833).

G programs of the problem; each that falls short is shown its feedback and revised G times; S turns in all. A program
is then credited for what its revisions achieved, and GRPO compares siblings by these credits. No official code was
found: what the paper leaves open is marked "ours" or "second-hand" where it is decided.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field

from smalt.credit.propagation import Earned, mars, mers, mers_nested
from smalt.credit.pruning import best_groups
from smalt.credit.selection import max_variance_subset
from smalt.methods.grpo import RewardName, program_reward
from smalt.methods.method import Method, MethodSettings
from smalt.rollouts.growth import Shape, stop_at_public_pass, stop_when_solved
from smalt.rollouts.tree import Node, Tree
from smalt.training.groups import TrainingGroup


class MurphySettings(MethodSettings):
    """MURPHY's own choices."""

    group_size: int = Field(8, gt=1, description="Completions of each prompt, G (second-hand: 4 to 8).")
    turns: int = Field(2, gt=1, description="Levels of the tree, S (second-hand: 2).")
    revises: Literal["unsolved", "public_failures"] = Field(
        "unsolved",
        description="Which programs are revised: all below the maximum reward (paper), or only those that fail a "
        "public test, as in an evaluation that stops at the first public pass.",
    )
    reward: RewardName = Field("pass_rate", description="Share of all tests passed (second-hand), or all of them.")
    credit: Literal["mars", "mers", "none"] = Field(
        "mars", description="MARS (best of what followed), MERS (mean), or none: own rewards, the ablation."
    )
    gamma: float = Field(0.9, ge=0, le=1, description="MERS: discount of later turns (second-hand: 0.9).")
    normalisation: Literal["once", "nested"] = Field(
        "once", description="MERS: sum over turns, then divide once (ours), or divide at every turn."
    )
    group_budget: int | None = Field(
        None, gt=0, description="InterP: sibling groups kept at each turn of a tree; None for all (per turn: ours)."
    )
    group_mean_weight: float = Field(0.0, description="InterP: a1, weight of a group's mean (second-hand: 0).")
    group_std_weight: float = Field(1.0, description="InterP: a2, weight of its deviation (second-hand: 1).")
    member_budget: int | None = Field(
        None, gt=1, description="IntraP: members kept of each group, those whose credits vary most; None for all."
    )


class Murphy(Method[MurphySettings]):
    """The method."""

    settings_class = MurphySettings
    # G^2 revisions would drown G first programs (ours).
    defaults: ClassVar[Mapping[str, Any]] = {"training.loss.aggregation": "turns"}

    @property
    def shape(self) -> Shape:
        """G siblings of every prompt, S levels; programs that need no revision are leaves."""
        is_leaf = stop_when_solved if self.settings.revises == "unsolved" else stop_at_public_pass
        return Shape((self.settings.group_size,) * self.settings.turns, is_leaf)

    def credit(self, tree: Tree) -> list[TrainingGroup]:
        """Credit from the leaves back, then comparison inside each sibling group that was not pruned.

        Groups are dropped for want of signal by their credits, not by their rewards: else first turns in which
        everything fails would teach nothing, and they are what credit is for.
        """
        for node in tree.nodes():
            if not node.is_infra_error:
                node.reward = program_reward(node, self.settings.reward) + self.length_penalty(node)
        for node in tree.nodes():
            node.credit = self._credit(node)
        return [group for siblings in self._kept_groups(tree) for group in self.compare(self._kept_members(siblings))]

    def _credit(self, node: Node) -> float | None:
        settings, turns_left = self.settings, self.settings.turns - node.turn + 1
        if settings.credit == "none":
            return node.reward
        if settings.credit == "mars":
            return mars(_earned(node))
        formula = mers if settings.normalisation == "once" else mers_nested
        return formula(_earned(node), turns_left, settings.gamma)

    def _kept_groups(self, tree: Tree) -> Iterator[list[Node]]:
        """InterP: at each turn the sibling groups within the budget."""
        by_turn: dict[int, list[list[Node]]] = {}
        for siblings in tree.groups():
            by_turn.setdefault(siblings[0].turn, []).append(siblings)
        settings = self.settings
        for groups in by_turn.values():
            credits = [[n.credit for n in siblings if n.credit is not None] for siblings in groups]
            budget = settings.group_budget or len(groups)
            for place in best_groups(credits, budget, settings.group_mean_weight, settings.group_std_weight):
                yield groups[place]

    def _kept_members(self, siblings: list[Node]) -> list[Node]:
        """IntraP: the members within the budget, from both ends of the credits."""
        known = [(node, node.credit) for node in siblings if node.credit is not None]
        kept = max_variance_subset([credit for _, credit in known], self.settings.member_budget or len(known))
        return [known[place][0] for place in kept]


def _earned(node: Node) -> Earned:
    return Earned(node.reward, tuple(_earned(child) for child in node.children))
