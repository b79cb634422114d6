"""Cobalt: contextual-bandit learning on offline partial trajectories (arXiv 2602.03806).

Trajectories of a reference policy are cut into contexts; from each context the policy writes one more program, G
times, and GRPO compares them by Cobalt's shaped reward. One level, no credit between turns: multi-turn code
generation is one-step recoverable, so the next program's own reward is a good enough objective.
"""

from __future__ import annotations

from pydantic import Field

from smalt.credit.cobalt_reward import CobaltRewardSettings, RewardParts, ScoredReply, cobalt_reward
from smalt.grading.thinking import split_thinking
from smalt.methods.method import Method, MethodSettings
from smalt.rollouts.growth import Shape
from smalt.rollouts.tree import Node, Tree
from smalt.training.groups import TrainingGroup


class CobaltSettings(MethodSettings):
    """Cobalt's own choices; optimisation and contexts have their sections."""

    group_size: int = Field(16, gt=1, description="Completions a context, G (Cobalt: 16).")
    reward: CobaltRewardSettings = Field(default_factory=CobaltRewardSettings, description="METHODS 1.4.")


class Cobalt(Method[CobaltSettings]):
    """The method."""

    settings_class = CobaltSettings
    starts_at = "context"
    has_several_rewards = True
    has_own_length_rule = True

    @property
    def shape(self) -> Shape:
        """G siblings of each context."""
        return Shape.group(self.settings.group_size)

    def credit(self, tree: Tree) -> list[TrainingGroup]:
        """Own shaped reward; one group, or none when all members earned the same."""
        for node in tree.children:
            self._reward(node, tree.previous_best)
        return self.compare(tree.children, tree.forgotten)

    def _reward(self, node: Node, previous_best: float) -> None:
        """Set Cobalt's reward on one node; none when the grader failed on it."""
        if node.is_infra_error:
            node.reward = node.credit = None
            return
        earned = self._scored(node, previous_best)
        node.reward = node.credit = earned.total
        node.reward_parts = (earned.correctness, earned.improvement, earned.format)

    def _scored(self, node: Node, previous_best: float) -> RewardParts:
        parts = split_thinking(node.reply)
        reply = ScoredReply(
            pass_rate=node.pass_rate if node.grade is not None else None,
            previous_best=previous_best,
            text=node.reply,
            thinking=parts.thinking,
            thinking_tokens=self._count(parts.thinking),
            answer_tokens=self._count(parts.answer),
            trailing_tokens=self._count(node.extraction.trailing_text),
            is_thinking_model=self.tools.is_thinking_model,
            thinking_closed_once=parts.is_closed_once,
            has_exactly_one_block=node.extraction.is_exactly_one_block,
            has_backtick_inside=node.extraction.has_backtick_inside,
        )
        return cobalt_reward(reply, self.settings.reward)

    def _count(self, text: str) -> int:
        return len(self.tools.tokenizer.encode(text, add_special_tokens=False)) if text else 0
