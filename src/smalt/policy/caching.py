"""What to know of transformers' key-value caches."""

from __future__ import annotations

import inspect
from typing import Any

from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer


def cache_argument(model: Any, cache: Any) -> dict[str, Any]:
    """Keyword argument that passes `cache` to `model`: `cache` where the release has it, else `past_key_values`."""
    parameters = inspect.signature(model.forward).parameters
    name = "cache" if "cache" in parameters else "past_key_values"
    return {name: cache, "use_cache": True}


def keeps_every_token(config: Any) -> bool:
    """Whether each layer of such a model keeps the states of all tokens: no sliding window, no recurrent state.

    Only then is a prefix of a text a prefix of its cache, and only then may rows stand at different columns.
    """
    layers = DynamicCache(config=config).layers
    return bool(layers) and all(type(layer) is DynamicLayer for layer in layers)
