"""The key-value cache of sampling: room for new tokens is made in blocks, not by copying everything at each token."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

_BLOCK = 64


def cache_argument(model: Any, cache: Any) -> dict[str, Any]:
    """Keyword argument that passes `cache` to `model`: `cache` where the release has it, else `past_key_values`."""
    parameters = inspect.signature(model.forward).parameters
    name = "cache" if "cache" in parameters else "past_key_values"
    return {name: cache, "use_cache": True}


def sampling_cache(config: Any) -> DynamicCache:
    """An empty cache for inference. Sliding-window and other special layers stay as transformers makes them."""
    cache = DynamicCache(config=config)
    cache.layers = [BlockLayer() if type(layer) is DynamicLayer else layer for layer in cache.layers]
    return cache


class BlockLayer(DynamicLayer):  # type: ignore[misc]
    """A cache layer that writes new tokens in place and grows by blocks of tokens.

    `keys` and `values` are views of the first tokens of larger buffers, `[rows, heads, tokens, head size]`. Writing
    in place is for inference only: autograd would refuse it.
    """

    _key_buffer: Tensor
    _value_buffer: Tensor

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Append the states of new tokens; returns the states of all tokens."""
        held = self.get_seq_length()
        needed = held + key_states.shape[-2]
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self._key_buffer, self._value_buffer = key_states[..., :0, :], value_states[..., :0, :]
        if needed > self._key_buffer.shape[-2]:
            self._key_buffer = _with_room(self._key_buffer[..., :held, :], needed + _BLOCK)
            self._value_buffer = _with_room(self._value_buffer[..., :held, :], needed + _BLOCK)
        self._key_buffer[..., held:needed, :] = key_states
        self._value_buffer[..., held:needed, :] = value_states
        self._show(needed)
        return self.keys, self.values

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep (or repeat) rows."""
        held = self.get_seq_length()
        self._key_buffer = self._key_buffer.index_select(0, indices)
        self._value_buffer = self._value_buffer.index_select(0, indices)
        self._show(held)

    def _show(self, tokens: int) -> None:
        self.keys, self.values = self._key_buffer[..., :tokens, :], self._value_buffer[..., :tokens, :]


def _with_room(states: Tensor, tokens: int) -> Tensor:
    """A copy of `states` with room for `tokens` tokens."""
    rows, heads, held, size = states.shape
    larger = torch.empty(rows, heads, tokens, size, dtype=states.dtype, device=states.device)
    larger[..., :held, :] = states
    return larger
