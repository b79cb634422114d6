"""RLEF: PPO on dialogues with one value a turn (arXiv 2410.02089).

At most three attempts; public tests give feedback and end the dialogue, all tests decide about it. What follows a turn
is compared with a learned value of its prompt, read at the prompt's last token, so that no group is needed and every
dialogue trains. The KL penalty is part of the reward.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from pydantic import Field

from smalt.credit.turn_returns import penalised, turn_rewards, undiscounted_returns
from smalt.grading.verdicts import Status
from smalt.methods.grpo_mt import graded_chains
from smalt.methods.method import Method, MethodSettings
from smalt.rollouts.growth import Shape, stop_at_public_pass
from smalt.rollouts.tree import Node, Tree
from smalt.training.groups import TrainingGroup, training_groups


class RLEFSettings(MethodSettings):
    """RLEF's own choices."""

    group_size: int = Field(8, gt=1, description="Dialogues a problem (ours).")
    turns: int = Field(3, gt=1, description="Most turns of a dialogue; it ends when the public tests pass (paper: 3).")
    no_code_reward: float = Field(-0.2, description="Reward of an earlier turn without valid code (paper: -0.2).")
    kl_in_reward: float = Field(0.05, ge=0, description="Weight of a turn's mean log pi / pi_ref (paper: 0.05).")


class RLEF(Method[RLEFSettings]):
    """The method."""

    settings_class = RLEFSettings
    has_own_advantages = True
    learns_values = True
    # The penalty is in the reward already.
    defaults: ClassVar[Mapping[str, Any]] = {"training.loss.kl_coefficient": 0.0, "training.loss.clip_high": 0.2}

    @property
    def shape(self) -> Shape:
        """Chains that end at the first public pass."""
        return Shape.chains(self.settings.group_size, self.settings.turns, stop_at_public_pass)

    @property
    def needs_reference(self) -> bool:
        """Whether the reward has a KL penalty."""
        return self.settings.kl_in_reward > 0

    def credit(self, tree: Tree) -> list[TrainingGroup]:
        """What follows each turn, as its credit; the learner subtracts the value of the turn's prompt."""
        chains = graded_chains(tree)
        ratios = self._log_ratios(list(dict.fromkeys(node for chain in chains for node in chain)))
        members: list[tuple[Node, float | None]] = []
        for chain in chains:
            for node, reward, credit in zip(chain, *self._returns(chain, ratios), strict=True):
                node.reward, node.credit = reward, credit
                members.append((node, credit))
        return [replace(group, returns=group.advantages) for group in training_groups(members)]

    def _log_ratios(self, nodes: Sequence[Node]) -> dict[Node, float]:
        """Each node's mean log pi / pi_ref, of all in one call: what they share is computed once."""
        return dict(zip(nodes, self.tools.log_ratios(nodes), strict=True)) if self.needs_reference else {}

    def _returns(self, chain: Sequence[Node], ratios: Mapping[Node, float]) -> tuple[list[float], list[float]]:
        """Rewards and returns of a dialogue's turns."""
        rewards = turn_rewards([_has_code(n) for n in chain], chain[-1].passes_all, self.settings.no_code_reward)
        rewards = [reward + self.length_penalty(node) for reward, node in zip(rewards, chain, strict=True)]
        if ratios:
            rewards = penalised(rewards, [ratios[node] for node in chain], self.settings.kl_in_reward)
        return rewards, undiscounted_returns(rewards)


def _has_code(node: Node) -> bool:
    return node.grade is not None and all(r.status is not Status.COMPILE_ERROR for r in node.grade.results)
