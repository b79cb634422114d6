"""GRPO, single turn: G programs of the bare problem, compared with each other (METHODS 0 and 3).

The baseline of both papers. It never sees a feedback in training; whatever it gains in later turns it brings along.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from smalt.methods.method import Method, MethodSettings
from smalt.rollouts.growth import Shape
from smalt.rollouts.tree import Node, Tree
from smalt.training.groups import TrainingGroup

RewardName = Literal["pass_rate", "all_tests"]


class GRPOSettings(MethodSettings):
    """GRPO's own choices."""

    group_size: int = Field(16, gt=1, description="Completions a problem, G (16, as Cobalt's runs of it).")
    reward: RewardName = Field(
        "pass_rate", description="Share of all tests passed, or 1 for all of them and else 0 (our default)."
    )


class GRPO(Method[GRPOSettings]):
    """The method."""

    settings_class = GRPOSettings
    has_several_rewards = True

    @property
    def shape(self) -> Shape:
        """G siblings of the problem."""
        return Shape.group(self.settings.group_size)

    def credit(self, tree: Tree) -> list[TrainingGroup]:
        """Own reward; one group, or none when all members earned the same."""
        for node in tree.children:
            if not node.is_infra_error:
                node.reward_parts = (program_reward(node, self.settings.reward), self.length_penalty(node))
                node.reward = node.credit = sum(node.reward_parts)
        return self.compare(tree.children, tree.forgotten)


def program_reward(node: Node, name: RewardName) -> float:
    """What a program earns by its tests, in [0, 1]."""
    return float(node.passes_all) if name == "all_tests" else node.pass_rate
