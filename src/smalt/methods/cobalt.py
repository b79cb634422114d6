"""Cobalt: contextual-bandit learning on offline partial trajectories (arXiv 2602.03806).

Trajectories of a reference policy are cut into contexts; from each context the policy writes one more program, G
times, and GRPO compares them by Cobalt's shaped reward. One level, no credit between turns: multi-turn code
generation is one-step recoverable, so the next program's own reward is a good enough objective.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from smalt.credit.advantages import group_advantages, has_signal
from smalt.credit.cobalt_reward import CobaltRewardSettings, ScoredReply, cobalt_reward, validation_score
from smalt.grading.thinking import split_thinking
from smalt.rollouts.growth import Shape
from smalt.rollouts.tree import Node, Tree
from smalt.training.groups import TrainingGroup


class CobaltSettings(BaseModel):
    """Cobalt's own choices; optimisation and contexts have their sections."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    group_size: int = Field(16, gt=1, description="Completions a context, G (Cobalt: 16).")
    reward: CobaltRewardSettings = Field(default_factory=CobaltRewardSettings, description="METHODS 1.4.")


@dataclass(frozen=True)
class Cobalt:
    """The method. `tokenizer` counts the reply's parts for the format rules."""

    settings: CobaltSettings
    tokenizer: Any
    is_thinking_model: bool = False

    @property
    def shape(self) -> Shape:
        """G siblings of each context."""
        return Shape.group(self.settings.group_size)

    def credit(self, tree: Tree) -> list[TrainingGroup]:
        """Own shaped reward; one group, or none when all members earned the same."""
        for node in tree.children:
            node.reward = self.reward(node, tree.previous_best)
        rewards = [node.reward for node in tree.children]
        if not has_signal(rewards):
            return []
        advantages = group_advantages(rewards)
        kept = [(n, a) for n, a in zip(tree.children, advantages, strict=True) if n.reward is not None]
        completions = tuple(node.completion for node, _ in kept)
        return [TrainingGroup(tree.root.ids, completions, tuple(advantage for _, advantage in kept))]

    def reward(self, node: Node, previous_best: float) -> float | None:
        """Cobalt's reward of one node; None when the grader failed on it."""
        if node.is_infra_error:
            return None
        parts = split_thinking(node.reply)
        reply = ScoredReply(
            pass_rate=node.pass_rate if node.grade is not None else None,
            previous_best=previous_best,
            text=node.reply,
            thinking=parts.thinking,
            thinking_tokens=self._count(parts.thinking),
            answer_tokens=self._count(parts.answer),
            trailing_tokens=self._count(node.extraction.trailing_text),
            is_thinking_model=self.is_thinking_model,
            thinking_closed_once=parts.is_closed_once,
            has_exactly_one_block=node.extraction.is_exactly_one_block,
            has_backtick_inside=node.extraction.has_backtick_inside,
        )
        return cobalt_reward(reply, self.settings.reward).total

    def validation_score(self, node: Node) -> float:
        """1 when all tests pass, else 0."""
        return validation_score(node.pass_rate)

    def _count(self, text: str) -> int:
        return len(self.tokenizer.encode(text, add_special_tokens=False)) if text else 0
