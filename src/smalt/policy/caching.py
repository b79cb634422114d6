"""The key-value cache argument of transformers models, whose name changed between releases."""

from __future__ import annotations

import inspect
from typing import Any


def cache_argument(model: Any, cache: Any) -> dict[str, Any]:
    """Keyword argument that passes `cache` to `model`: `cache` where the release has it, else `past_key_values`."""
    parameters = inspect.signature(model.forward).parameters
    name = "cache" if "cache" in parameters else "past_key_values"
    return {name: cache, "use_cache": True}
