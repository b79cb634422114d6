"""Linear layers in bfloat16 on a CPU, their weights laid out once for many small products.

Decoding multiplies all weights by a few rows, again and again, and each time the plain layer brings a weight into the
order that the processor's matrix units read. Here that is done once, ahead of the first token.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor

# Laying out costs about as much as ten products save.
_LEAST_PRODUCTS = 32
# The copies of a larger model could crowd out what else is in memory.
_MOST_BYTES = 4 << 30
# Rows that a layout is made for; it serves any number.
_ROWS = 64


@contextmanager
def packed_linears(model: Any, products: int) -> Iterator[None]:
    """While open, layers of the model multiply by a copy of their weights, at most `products` times.

    Results are the same. The weights must not change meanwhile. Nothing happens where it would not pay, for models of
    more than 4 GiB, on another device or dtype, and where this torch has no such operator.
    """
    layers = _linear_layers(model) if products >= _LEAST_PRODUCTS and _can_pack() else []
    if sum(layer.weight.nbytes for layer in layers) > _MOST_BYTES:
        layers = []
    try:
        for layer in layers:
            layer.forward = partial(_product, torch.ops.mkldnn._reorder_linear_weight(layer.weight, _ROWS), layer.bias)
        yield
    finally:
        for layer in layers:
            layer.__dict__.pop("forward", None)


def _linear_layers(model: Any) -> list[Any]:
    """Plain ones: what quantises or adapts a layer has a class of its own."""
    return [
        module
        for module in model.modules()
        if type(module) is torch.nn.Linear
        and module.weight.dtype == torch.bfloat16
        and module.weight.device.type == "cpu"
        and "forward" not in module.__dict__
    ]


def _can_pack() -> bool:
    names = ("_reorder_linear_weight", "_linear_pointwise", "_is_mkldnn_bf16_supported")
    return all(hasattr(torch.ops.mkldnn, name) for name in names) and torch.ops.mkldnn._is_mkldnn_bf16_supported()


def _product(weight: Tensor, bias: Tensor | None, states: Tensor) -> Tensor:
    found: Tensor = torch.ops.mkldnn._linear_pointwise(states, weight, bias, "none", [], "")
    return found
