"""How rows of prompt + completion are laid out for one call of a model: packed as a trie, or padded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from smalt.policy.attention_blocks import AttentionBlocks
from smalt.policy.trie import Places, PrefixTrie, cut


@dataclass(frozen=True)
class Row:
    """A prompt and one completion of it, as ids; neither is empty."""

    prompt_ids: Sequence[int]
    completion_ids: Sequence[int]

    @property
    def input_ids(self) -> tuple[int, ...]:
        """What the model reads; nothing follows the last token."""
        return (*self.prompt_ids, *self.completion_ids[:-1])


@dataclass(frozen=True)
class Layout:
    """Arguments of one call, and where in it each row's tokens are."""

    inputs: dict[str, Any]
    """Keyword arguments of a transformers model; `input_ids` is `[batch, tokens]`."""
    paths: Sequence[Places]
    """For each row the places of `Row.input_ids` in the flattened `input_ids`."""

    @classmethod
    def packed(cls, rows: Sequence[Row], device: torch.device) -> Layout:
        """Every distinct token once, in one row, with attention by blocks; for models that can (`capabilities.py`)."""
        trie = PrefixTrie.of([row.input_ids for row in rows])
        inputs = {
            "input_ids": torch.from_numpy(trie.ids).to(device)[None],
            "position_ids": torch.from_numpy(trie.depths).to(device)[None],
            # Of four dimensions, so that transformers takes it as it is and builds no mask over the whole sequence.
            "attention_mask": torch.zeros(1, 1, 1, 1, device=device),
            "attention_blocks": AttentionBlocks.of(trie, [len(row.prompt_ids) for row in rows], device),
        }
        return cls(inputs, trie.paths)

    @classmethod
    def padded(cls, rows: Sequence[Row], device: torch.device) -> Layout:
        """Each row by itself, padded at the right to the longest."""
        ids = [row.input_ids for row in rows]
        longest = max(map(len, ids))
        mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in ids], device=device)
        padded = torch.tensor([[*row, *[0] * (longest - len(row))] for row in ids], device=device)
        paths = [number * longest + np.arange(len(row)) for number, row in enumerate(ids)]
        return cls({"input_ids": padded, "attention_mask": mask}, paths)

    @property
    def tokens(self) -> int:
        """Tokens that go through the model."""
        return int(self.inputs["input_ids"].numel())


def packed_batches(rows: Sequence[Row], budget: int) -> list[list[int]]:
    """Numbers of rows to pack together: at most `budget` distinct tokens, one row at least."""
    return cut([row.input_ids for row in rows], budget)


def padded_batches(rows: Sequence[Row], budget: int) -> list[list[int]]:
    """Numbers of rows to pad together, similar lengths: rows x longest at most `budget`, one row at least."""
    lengths = [len(row.input_ids) for row in rows]
    batches: list[list[int]] = []
    for row in sorted(range(len(rows)), key=lengths.__getitem__):
        if not batches or (len(batches[-1]) + 1) * lengths[row] > budget:
            batches.append([])
        batches[-1].append(row)
    return batches
