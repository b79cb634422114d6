"""VeRPO-MT: dialogues with a dense reward for each turn from tests weighted by how seldom they pass (METHODS 3).

Source: arXiv 2601.03525, second-hand. Its constants are not published: every default below is ours. The version that
Cobalt compared itself with had no density term, so it is off unless asked for.
"""

from __future__ import annotations

from pydantic import Field

from smalt.credit.advantages import has_signal
from smalt.credit.verpo import (
    discounted_outcome,
    hardness_densities,
    hardness_weights,
    passing_shares,
    turn_advantages,
    turn_rewards,
)
from smalt.methods.grpo_mt import GRPOMTSettings, graded_chains
from smalt.methods.method import Method
from smalt.rollouts.growth import Shape, stop_at_public_pass
from smalt.rollouts.tree import Node, Tree
from smalt.training.groups import TrainingGroup, training_groups


class VeRPOMTSettings(GRPOMTSettings):
    """VeRPO-MT's own choices."""

    alpha: float = Field(1.0, ge=0, description="How much more seldom passed tests weigh; 0 for all alike (ours).")
    beta: float = Field(0.5, ge=0, description="Weight of the turn's advantage beside the outcome's (ours).")
    gamma: float = Field(0.95, gt=0, le=1, description="Discount of the outcome for each turn used (ours).")
    divides_by_density: bool = Field(False, description="Whether a test's weight is shared among tests as hard.")
    sigma: float = Field(0.1, gt=0, description="Width of 'as hard', in shares of turns that pass (ours).")
    delta: float = Field(1e-6, ge=0, description="Added to the density (ours).")


class VeRPOMT(Method[VeRPOMTSettings]):
    """The method."""

    settings_class = VeRPOMTSettings
    has_own_advantages = True

    @property
    def shape(self) -> Shape:
        """G chains that end at the first public pass."""
        return Shape.chains(self.settings.group_size, self.settings.turns, stop_at_public_pass)

    def credit(self, tree: Tree) -> list[TrainingGroup]:
        """Weighted tests for each turn, the discounted outcome for the dialogue."""
        chains = graded_chains(tree)
        if len(chains) < 2:
            return []
        self._reward_turns(tree, [node for chain in chains for node in chain])
        outcomes = [discounted_outcome(c[-1].passes_all, len(c), self.settings.gamma) for c in chains]
        advantages = turn_advantages(outcomes, [[n.reward or 0.0 for n in c] for c in chains], self.settings.beta)
        members = [pair for c, a in zip(chains, advantages, strict=True) for pair in zip(c, a, strict=True)]
        for node, advantage in members:
            node.credit = advantage
        return training_groups(members) if has_signal([advantage for _, advantage in members]) else []

    def _reward_turns(self, tree: Tree, nodes: list[Node]) -> None:
        tests = len(tree.problem.public_tests) + len(tree.problem.hidden_tests)
        passed = [[r.passed for r in n.grade.results] if n.grade is not None else [False] * tests for n in nodes]
        shares = passing_shares(passed)
        weights = hardness_weights(shares, self.settings.alpha)
        if self.settings.divides_by_density:
            densities = hardness_densities(shares, self.settings.sigma, self.settings.delta)
            weights = [weight / density for weight, density in zip(weights, densities, strict=True)]
        for node, reward in zip(nodes, turn_rewards(passed, weights), strict=True):
            node.reward = reward + self.length_penalty(node)
