"""Rows of token ids as one tensor."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def left_padded(rows: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor]:
    """Ids and mask, `[rows, longest]`, each row ending at the right edge. Padding is id 0 under mask 0."""
    longest = max(map(len, rows))
    ids = torch.zeros(len(rows), longest, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for place, row in enumerate(rows):
        ids[place, longest - len(row) :] = torch.tensor(row)
        mask[place, longest - len(row) :] = 1
    return ids.to(device), mask.to(device)
