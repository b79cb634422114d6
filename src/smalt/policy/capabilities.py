"""What a model can do exactly, found by trying: attention by blocks, a head apart from its layers, shared prompts.

Architectures differ in ways that no flag tells: recurrent state, positions that are counted and not given, caps and
scales behind the head. So each shortcut is compared with the plain computation on a few tokens, once per model, and
what does not agree is not used.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from smalt.policy.caching import keeps_every_token
from smalt.policy.layouts import Layout, Row
from smalt.policy.prefill import prefill
from smalt.policy.row_cache import RowCache
from smalt.policy.tree_attention import (
    can_share_prompts,
    can_use_tree_attention,
    use_plain_attention,
    use_tree_attention,
)

_log = logging.getLogger(__name__)

_PROMPT = (3, 11, 7, 19, 5, 23)
_TRIED = (
    Row(_PROMPT, (13, 17, 2)),
    Row(_PROMPT, (13, 29)),
    Row(_PROMPT, (31, 9, 4, 21)),
    Row((*_PROMPT, 13, 29), (8, 6, 12)),
    Row((30,), (14, 9)),
)
_TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-4}
"""Relative norm of the difference, by the dtype of the logits."""
_COARSE_TOLERANCE = 3e-2
"""The same for 16-bit floats, whose rounding alone makes some 1e-2."""


@dataclass(frozen=True)
class Capabilities:
    """Which shortcuts give a model's own results."""

    packs_tries: bool
    """Whether it attends by blocks; its attention was set so if it does."""
    separates_head: bool
    """Whether `head_logits` of the decoder's last hidden states are its logits."""
    shares_prompts: bool
    """Whether rows can be decoded from prompts that are held once."""


_known: WeakKeyDictionary[Any, Capabilities] = WeakKeyDictionary()


def capabilities_of(model: Any) -> Capabilities:
    """Try the model once; later calls remember."""
    if model not in _known:
        with torch.no_grad(), evaluating(model):
            packs_tries = _packs_tries(model)
            _known[model] = Capabilities(
                packs_tries=packs_tries,
                separates_head=_separates_head(model),
                shares_prompts=packs_tries and _shares_prompts(model),
            )
        if not _known[model].packs_tries:
            _log.warning("%s cannot share prefixes: it trains on padded rows", type(model).__name__)
        if not _known[model].separates_head:
            _log.warning("%s has a head of its own kind: it computes all logits at once", type(model).__name__)
    return _known[model]


def head_logits(model: Any) -> Callable[[Tensor], Tensor]:
    """From last hidden states to logits, with the scale (Cohere, Granite) and soft cap (Gemma) of the config."""
    config, head = model.config.get_text_config(), model.get_output_embeddings()
    scale = getattr(config, "logit_scale", None) or 1 / (getattr(config, "logits_scaling", None) or 1)
    cap = getattr(config, "final_logit_softcapping", None)

    def logits_of(hidden: Tensor) -> Tensor:
        logits: Tensor = head(hidden)
        if scale != 1:
            logits = logits * scale
        return logits if cap is None else (logits / cap).tanh() * cap

    return logits_of


def last_hidden(model: Any, **inputs: Any) -> Tensor:
    """The states that the head reads, `[rows, tokens, hidden]`."""
    found: Tensor = model.get_decoder()(**inputs, use_cache=False).last_hidden_state
    return found


def _packs_tries(model: Any) -> bool:
    """Try it; the model's attention stays set for blocks if it works."""
    if getattr(model, "_is_stateful", False) or not can_use_tree_attention(model):
        return False
    use_tree_attention(model)
    try:
        agrees = _packed_agrees(model)
    except Exception as error:  # whatever an unknown architecture stumbles over, padded rows are there
        _log.warning("packing failed: %s: %s", type(error).__name__, error)
        agrees = False
    if not agrees:
        use_plain_attention(model)
    return agrees


def _packed_agrees(model: Any) -> bool:
    """Whether a packed trie has the logits of its rows, and layers with a window say so."""
    layout = Layout.packed(_TRIED, model.device)
    packed = model(**layout.inputs, use_cache=False).logits[0]
    return layout.inputs["attention_blocks"].windows_seen == _windows(model.config.get_text_config()) and all(
        _agree(packed[torch.from_numpy(path).to(packed.device)], _plain_logits(model, row))
        for row, path in zip(_TRIED, layout.paths, strict=True)
    )


def _windows(config: Any) -> set[Any]:
    """The windows that some layers of the model have by its config; a strange kind of layer agrees with nothing."""
    kinds = set(getattr(config, "layer_types", None) or ())
    window = getattr(config, "sliding_window", None)
    if kinds - {"full_attention", "sliding_attention"}:
        return {"of another kind"}
    return {window} if window is not None and (not kinds or "sliding_attention" in kinds) else set()


def _shares_prompts(model: Any) -> bool:
    """Try it; its attention is set for blocks, which is where shared prompts are handed to."""
    if not can_share_prompts(model) or not keeps_every_token(model.config):
        return False
    try:
        agrees = _decoding_agrees(model)
    except Exception as error:
        _log.warning("sharing prompts failed: %s: %s", type(error).__name__, error)
        agrees = False
    if not agrees:
        _log.warning("%s cannot share prompts: each row decodes from its own copy", type(model).__name__)
    return agrees


def _decoding_agrees(model: Any) -> bool:
    """Whether rows of two prompts, one of which joins later, have the logits that they have alone."""
    first, second, later = _TRIED[0], _TRIED[2], _TRIED[4]
    cache = RowCache(model.config, model.device, shares_prompts=True)
    prompts = prefill(model, [tuple(first.prompt_ids), tuple(later.prompt_ids)], [None, None])
    live: list[tuple[Row, int]] = []
    for text, joining in zip(prompts, ((first, second), (later,)), strict=True):
        cache.place([(text, len(joining))])
        live = [(row, fed) for row, fed in live] + [(row, 0) for row in joining]
        fed_now = [row.completion_ids[fed] for row, fed in live]
        logits = cache.feed(model, torch.tensor(fed_now, device=model.device))
        live = [(row, fed + 1) for row, fed in live]
    return all(
        _agree(found, _plain_logits(model, row)[len(row.prompt_ids) + fed - 1])
        for found, (row, fed) in zip(logits, live, strict=True)
    )


def _separates_head(model: Any) -> bool:
    row = _TRIED[0]
    try:
        hidden = last_hidden(model, input_ids=torch.tensor([row.input_ids], device=model.device))
        return _agree(head_logits(model)(hidden)[0], _plain_logits(model, row))
    except Exception as error:
        _log.warning("the head cannot be reached: %s: %s", type(error).__name__, error)
        return False


def _plain_logits(model: Any, row: Row) -> Tensor:
    ids = torch.tensor([row.input_ids], device=model.device)
    found: Tensor = model(input_ids=ids, use_cache=False).logits[0]
    return found


def _agree(left: Tensor, right: Tensor) -> bool:
    tolerance = _TOLERANCE.get(right.dtype, _COARSE_TOLERANCE)
    return bool((left - right).float().norm() <= tolerance * right.float().norm())


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """Without dropout, which would differ between the two computations."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)
