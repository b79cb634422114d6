"""The reference policy: the policy as training finds it, for penalties and regressions."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from smalt.policy.capabilities import evaluating
from smalt.policy.layouts import Row
from smalt.policy.loading import Policy
from smalt.policy.logprobs import TokenLogprobs, micro_batches, row_logprobs


class ReferencePolicy:
    """Scores rows as the policy would have before its first update.

    A policy that trains adapters is its own reference with the adapters disabled; else it is a frozen copy.
    """

    def __init__(self, policy: Policy) -> None:
        """Take the policy as it is now; its adapters, if it has any, are new."""
        self._adapters = policy.adapters
        self._model = policy.model if policy.adapters else copy.deepcopy(policy.model).requires_grad_(False)

    def row_logprobs(self, rows: Sequence[Row], temperature: float) -> TokenLogprobs:
        """`logprobs.row_logprobs` of the reference, without gradient."""
        with torch.no_grad(), self._as_it_was() as model:
            return row_logprobs(model, rows, temperature)

    def micro_batches(self, rows: Sequence[Row], budget: int) -> list[list[int]]:
        """`logprobs.micro_batches` of the reference."""
        return micro_batches(self._model, rows, budget)

    @contextmanager
    def _as_it_was(self) -> Iterator[Any]:
        """The model without adapters and out of training, which may be under way."""
        if self._adapters is None:
            yield self._model
            return
        with self._adapters.disabled(), evaluating(self._model):
            yield self._model
