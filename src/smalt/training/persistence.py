"""NGU's memory: prompts on which every program failed come back, with the completions they had (METHODS 4).

All of it is plain data, saved beside each checkpoint, so that a resumed run returns the same prompts. Verdicts are
not kept: old programs are graded anew, which the grader's memory makes cheap.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from smalt.files import read_json, write_json
from smalt.policy.sampling import Completion
from smalt.rollouts.records import Context
from smalt.rollouts.tree import Tree
from smalt.training.settings import NeverGiveUpSettings


@dataclass(frozen=True)
class FailedPrompt:
    """A prompt that was not solved yet."""

    context: Context
    rounds: tuple[tuple[Completion, ...], ...] = ()
    """Completions of the rounds that are kept, oldest first."""
    forgotten: tuple[float, ...] = ()
    """Rewards of the completions of older rounds."""

    @property
    def completions(self) -> list[Completion]:
        """All completions that are kept, oldest first."""
        return [completion for completions in self.rounds for completion in completions]


@dataclass
class Persistence:
    """The failed prompts that wait for the next step."""

    settings: NeverGiveUpSettings
    folder: Path
    """Where memories are saved, one file a checkpoint."""
    waiting: list[FailedPrompt] = field(default_factory=list)

    def remember(self, tried: Sequence[FailedPrompt], trees: Sequence[Tree], step: int) -> None:
        """Keep each prompt of a step in which everything failed alike, with the probability of the settings.

        `tried` and `trees` are in the same order; a prompt tried for the first time has no rounds. The draw follows
        from the step and the prompt's place in it.
        """
        kept: dict[Context, FailedPrompt] = {}
        for place, (prompt, tree) in enumerate(zip(tried, trees, strict=True)):
            comes_back = random.Random(f"never-give-up/{step}/{place}").random() < self.settings.probability
            if comes_back and _failed(tree):
                kept[prompt.context] = self._with_round(prompt, tree)
        self.waiting = list(kept.values())

    def save(self, step: int) -> None:
        """Write the memory of a checkpoint, atomically."""
        write_json(self._path(step), [asdict(prompt) for prompt in self.waiting])

    def load(self, step: int) -> None:
        """Read the memory of a checkpoint."""
        self.waiting = [_prompt_from(raw) for raw in read_json(self._path(step)) or []]

    def forget_before(self, keep: int) -> None:
        """Delete the files of all but the newest `keep` checkpoints."""
        for path in sorted(self.folder.glob("step-*.json"))[:-keep]:
            path.unlink()

    def _path(self, step: int) -> Path:
        return self.folder / f"step-{step:06d}.json"

    def _with_round(self, prompt: FailedPrompt, tree: Tree) -> FailedPrompt:
        """The prompt with the newest round of its tree; the oldest round goes when there are too many."""
        newest = tuple(node.completion for node in tree.children[tree.kept :])
        rounds, forgotten = (*prompt.rounds, newest), prompt.forgotten
        if len(rounds) > self.settings.max_rounds:
            gone = tree.children[: len(rounds[0])]
            rounds = rounds[1:]
            forgotten += tuple(node.reward for node in gone if node.reward is not None)
        return FailedPrompt(prompt.context, rounds, forgotten)


def _failed(tree: Tree) -> bool:
    """Whether every program failed, and all earned the same: a prompt with a difference has trained already."""
    rewards = {node.reward for node in tree.children if node.reward is not None}
    return len(rewards) == 1 and not any(node.passes_all for node in tree.children)


def _prompt_from(raw: Mapping[str, Any]) -> FailedPrompt:
    context = Context(**raw["context"] | {"prompt_ids": tuple(raw["context"]["prompt_ids"])})
    rounds = tuple(
        tuple(Completion(tuple(c["ids"]), tuple(c["logprobs"]), c["is_finished"]) for c in completions)
        for completions in raw["rounds"]
    )
    return FailedPrompt(context, rounds, tuple(raw["forgotten"]))
