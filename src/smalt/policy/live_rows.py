"""The rows being decoded: what each has drawn so far, kept in tensors until it ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from smalt.policy.prefix_memory import Ids
from smalt.policy.row_cache import RowCache


@dataclass(frozen=True)
class Task:
    """A completion to be drawn."""

    place: int
    """Of its request among all requests."""
    sample: int
    """Of the completion among its request's."""
    prompt: Ids
    drawn: Ids = ()
    """What there is of the completion so far."""
    logprobs: tuple[float, ...] = ()

    @property
    def ids(self) -> Ids:
        """All that is known of the text."""
        return self.prompt + self.drawn

    def continued(self, drawn: Sequence[int], logprobs: Sequence[float]) -> Task:
        """The task with so much more of its completion."""
        return replace(self, drawn=(*self.drawn, *drawn), logprobs=(*self.logprobs, *logprobs))


class _States(NamedTuple):
    """What is known of each row; the first dimension is the rows'."""

    last: Tensor
    counts: Tensor
    """Tokens drawn since the row began."""
    limits: Tensor
    has_ended: Tensor
    ids: Tensor
    """Tokens drawn, `[rows, most]`."""
    logprobs: Tensor


class LiveRows:
    """Rows in the order of the cache's rows. Token by token nothing goes to the host but which rows ended."""

    def __init__(self, cache: RowCache, max_new_tokens: int, stop_ids: Tensor) -> None:
        """No rows yet."""
        self.cache = cache
        self.max_new_tokens = max_new_tokens
        self.stop_ids = stop_ids
        self.tasks: list[Task] = []
        whole = stop_ids.new_zeros(0)
        ids = stop_ids.new_zeros(0, max_new_tokens)
        self._states = _States(whole, whole, whole, whole.bool(), ids, ids.float())

    def __len__(self) -> int:
        """Rows being decoded."""
        return len(self.tasks)

    @property
    def last(self) -> Tensor:
        """The token of each row that is to be fed next, `[rows]`."""
        return self._states.last

    def add(self, tasks: Sequence[Task], tokens: Tensor, logprobs: Tensor) -> None:
        """Append rows that have drawn their first token; both tensors are `[new rows]`."""
        first = len(self)
        self.tasks += tasks
        longer = [torch.cat([states, states.new_zeros(len(tasks), *states.shape[1:])]) for states in self._states]
        self._states = _States(*longer)
        limits = [self.max_new_tokens - len(task.drawn) for task in tasks]
        self._states.limits[first:] = torch.tensor(limits, device=tokens.device)
        self.record(tokens, logprobs, first)

    def record(self, tokens: Tensor, logprobs: Tensor, first: int = 0) -> None:
        """Append drawn tokens to the rows from `first` on."""
        last, counts, limits, has_ended, ids, all_logprobs = (states[first:] for states in self._states)
        rows = torch.arange(len(tokens), device=tokens.device)
        ids[rows, counts], all_logprobs[rows, counts] = tokens, logprobs
        counts += 1
        last.copy_(tokens)
        has_ended.copy_(torch.isin(tokens, self.stop_ids) | (counts >= limits))

    def ended(self) -> list[int]:
        """The rows that a stop token or the limit has ended."""
        rows: list[int] = self._states.has_ended.nonzero().squeeze(1).tolist()
        return rows

    def youngest(self, count: int) -> list[int]:
        """The rows that have drawn least."""
        rows: list[int] = self._states.counts.argsort(stable=True)[:count].tolist()
        return rows

    def progress(self, rows: Sequence[int]) -> list[Task]:
        """The tasks of rows with all that was drawn."""
        index = torch.tensor(rows, device=self.last.device)
        counts = self._states.counts[index].tolist()
        ids = self._states.ids[index, : max(counts)].tolist()
        logprobs = self._states.logprobs[index, : max(counts)].tolist()
        return [
            self.tasks[row].continued(drawn[:count], found[:count])
            for row, count, drawn, found in zip(rows, counts, ids, logprobs, strict=True)
        ]

    def remove(self, rows: Sequence[int]) -> None:
        """Take rows out; the last ones move to their places."""
        gone = set(rows)
        left = len(self) - len(gone)
        holes = sorted(row for row in gone if row < left)
        tails = [row for row in range(left, len(self)) if row not in gone]
        for hole, tail in zip(holes, tails, strict=True):
            self.tasks[hole] = self.tasks[tail]
        del self.tasks[left:]
        self.cache.move(holes, tails, left)
        into, out_of = self.stop_ids.new_tensor(holes), self.stop_ids.new_tensor(tails)
        for states in self._states:
            states[into] = states[out_of]
        self._states = _States(*(states[:left] for states in self._states))
