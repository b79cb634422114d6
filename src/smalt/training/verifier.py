"""A verifier: a learned score of a program that needs no tests (muCode, arXiv 2502.20380).

A language model with a linear head reads the problem and one program, without the dialogue that led to it, and scores
the program at its last token. The head is the one that RLEF's values have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from smalt.dialogue.chat import ChatFormat
from smalt.files import whole_folder
from smalt.policy.loading import ModelLoadError, ModelSettings, Policy, load_policy
from smalt.rollouts.tree import Node
from smalt.training.checkpoints import save_model
from smalt.training.turn_value import (
    HEAD_FILE,
    attach_value_head,
    load_value_head,
    prompt_values,
    save_value_head,
    without_value_head,
)

_MICRO_BATCH_TOKENS = 16384


@dataclass
class Verifier:
    """Scores programs with a model that has a value head."""

    policy: Policy
    chat: ChatFormat
    """Puts problem and program together as the policy would have written them."""

    @torch.no_grad()
    def scores(self, nodes: Sequence[Node]) -> list[float]:
        """A score for each node's program, higher for better; minus infinity without a program."""
        self.policy.model.eval()
        judged = [place for place, node in enumerate(nodes) if node.program is not None]
        rows = [self.ids_of(nodes[place]) for place in judged]
        found = [-torch.inf] * len(nodes)
        for batch in _batches(rows):
            for place, score in zip(batch, self.score_rows([rows[i] for i in batch]).tolist(), strict=True):
                found[judged[place]] = score
        return found

    def ids_of(self, node: Node) -> tuple[int, ...]:
        """The problem's opening prompt and the node's program as a reply to it."""
        opening = node.path()[0].prompt.ids
        reply = f"```python\n{(node.program or '').strip()}\n```".removeprefix(self.chat.reply_prefix)
        ids = self.chat.tokenizer.encode(reply, add_special_tokens=False)
        return (*opening, *ids, self.chat.tokenizer.eos_token_id)

    def score_rows(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """Scores `[rows]`, with gradient."""
        return prompt_values(self.policy.model, rows)


def save_verifier(folder: Path, policy: Policy) -> None:
    """Write a model with a value head as a folder that `load_verifier` reads, complete or not at all."""
    with whole_folder(folder) as temporary, without_value_head(policy.model) as head:
        save_model(temporary, policy)
        save_value_head(temporary, head)


def load_verifier(folder: Path, device: str, chat: ChatFormat) -> Verifier:
    """A verifier that a run left in `verifier/`. Raises `ModelLoadError` when the folder holds none."""
    if folder.exists() and not (folder / HEAD_FILE).exists():
        raise ModelLoadError(
            f"{str(folder)!r} is no verifier: it lacks {HEAD_FILE}; muCode runs leave one in verifier/"
        )
    policy = load_policy(ModelSettings(path=str(folder), device=device))
    attach_value_head(policy.model)
    load_value_head(policy.model, folder)
    return Verifier(policy, chat)


def _batches(rows: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Places of rows, similar lengths together, within the token budget (one row at least)."""
    batch: list[int] = []
    for place in sorted(range(len(rows)), key=lambda i: len(rows[i])):
        if batch and (len(batch) + 1) * len(rows[place]) > _MICRO_BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch
