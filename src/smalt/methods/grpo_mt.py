"""GRPO-MT: G whole dialogues of a problem, one outcome each, its advantage on every token the policy wrote (METHODS 3).

The comparison is between dialogues, not between the programs of one turn: baselines per turn are biased as soon as
the policy decides, by solving or not, which dialogues reach a turn.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from smalt.methods.method import Method, MethodSettings
from smalt.rollouts.growth import Shape, stop_at_public_pass
from smalt.rollouts.tree import Node, Tree
from smalt.training.groups import TrainingGroup, training_groups


class GRPOMTSettings(MethodSettings):
    """GRPO-MT's own choices."""

    group_size: int = Field(16, gt=1, description="Dialogues a problem, G (16, as Cobalt's runs of it).")
    turns: int = Field(3, gt=1, description="Most turns of a dialogue, T; it ends when the public tests pass.")


class GRPOMT(Method[GRPOMTSettings]):
    """The method."""

    settings_class = GRPOMTSettings

    @property
    def shape(self) -> Shape:
        """G chains that end at the first public pass."""
        return Shape.chains(self.settings.group_size, self.settings.turns, stop_at_public_pass)

    def credit(self, tree: Tree) -> list[TrainingGroup]:
        """1 for a dialogue whose last program passes all tests, else 0, on each of its turns."""
        chains = graded_chains(tree)
        for chain in chains:
            for node in chain:
                node.reward = float(node.passes_all)
                node.credit = self._outcome(chain)
        advantages = self.tools.estimator([self._outcome(chain) for chain in chains])
        return training_groups((node, a) for chain, a in zip(chains, advantages, strict=True) for node in chain)

    def _outcome(self, chain: Sequence[Node]) -> float:
        return float(chain[-1].passes_all) + min(map(self.length_penalty, chain))


def graded_chains(tree: Tree) -> list[list[Node]]:
    """The dialogues of a tree of chains in which the grader never failed."""
    return [chain for chain in tree.chains() if not any(node.is_infra_error for node in chain)]
