"""A value for each turn: one number, read at the last token of its prompt (RLEF, arXiv 2410.02089).

The head is a linear layer on the policy's last hidden state and hangs in the policy's model, so that optimiser and
checkpoints take it along; `detach_value_head` removes it before the trained model is saved for others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from smalt.policy.padding import left_padded

_NAME = "turn_value"


def attach_value_head(model: Any) -> None:
    """Give the model a value head that says 0 for every prompt."""
    weight = next(model.parameters())
    head = torch.nn.Linear(model.config.hidden_size, 1, device=weight.device, dtype=weight.dtype)
    torch.nn.init.zeros_(head.weight)
    torch.nn.init.zeros_(head.bias)
    setattr(model, _NAME, head)


def detach_value_head(model: Any) -> None:
    """Take the head away again, if there is one."""
    if has_value_head(model):
        delattr(model, _NAME)


@contextmanager
def without_value_head(model: Any) -> Iterator[torch.nn.Module]:
    """Within the block the model is as others know it; yields the head, which comes back afterwards."""
    head: torch.nn.Module = getattr(model, _NAME)
    delattr(model, _NAME)
    try:
        yield head
    finally:
        setattr(model, _NAME, head)


def load_value_head(model: Any, state: Mapping[str, Tensor]) -> None:
    """Give the model's head these weights."""
    getattr(model, _NAME).load_state_dict(state)


def has_value_head(model: Any) -> bool:
    """Whether the model has a value head."""
    return hasattr(model, _NAME)


def value_parameters(model: Any) -> list[Tensor]:
    """The parameters of the head; none without one."""
    return list(getattr(model, _NAME).parameters()) if has_value_head(model) else []


def policy_parameters(model: Any) -> list[Tensor]:
    """All parameters but those of the head, in the model's order."""
    return [parameter for name, parameter in model.named_parameters() if not name.startswith(f"{_NAME}.")]


def prompt_values(model: Any, prompts: Sequence[Sequence[int]]) -> Tensor:
    """Values `[prompts]` in float32, with gradient."""
    ids, mask = left_padded(prompts, model.device)
    output = model(
        input_ids=ids,
        attention_mask=mask,
        position_ids=(mask.cumsum(1) - 1).clamp(min=0),
        output_hidden_states=True,
        use_cache=False,
        logits_to_keep=1,
    )
    values: Tensor = getattr(model, _NAME)(output.hidden_states[-1][:, -1])
    return values.squeeze(-1).float()
