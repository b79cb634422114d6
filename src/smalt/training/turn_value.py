"""A value for each turn: one number, read at the last token of its prompt (RLEF, arXiv 2410.02089).

The head is a linear layer on the policy's last hidden state and hangs in the policy's model, so that optimiser and
checkpoints take it along; `detach_value_head` removes it before the trained model is saved for others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from smalt.policy.capabilities import capabilities_of, last_hidden
from smalt.policy.layouts import Layout, Row
from smalt.policy.logprobs import micro_batches
from smalt.policy.padding import left_padded

_NAME = "turn_value"
HEAD_FILE = "value_head.safetensors"


def attach_value_head(model: Any) -> None:
    """Give the model a value head that says 0 for every prompt, in the type of the weights that train beside it."""
    weight = next((weight for weight in model.parameters() if weight.requires_grad), next(model.parameters()))
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


def save_value_head(folder: Path, head: torch.nn.Module) -> None:
    """Write a head into a folder, beside what else belongs to the model."""
    save_file(head.state_dict(), folder / HEAD_FILE)


def load_value_head(model: Any, folder: Path) -> None:
    """Give the model's head the weights that `save_value_head` wrote."""
    head: torch.nn.Module = getattr(model, _NAME)
    head.load_state_dict(load_file(folder / HEAD_FILE))


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
    """Values `[prompts]` in float32, with gradient; what prompts share is computed once where the model can."""
    can = capabilities_of(model)
    states = _packed_ends(model, prompts) if can.packs_tries and can.separates_head else _padded_ends(model, prompts)
    head = getattr(model, _NAME)
    values: Tensor = head(states.to(head.weight.dtype))
    return values.squeeze(-1).float()


def detached_values(model: Any, prompts: Sequence[Sequence[int]], budget: int) -> list[float]:
    """Values without gradient, at most `budget` tokens computed at a time."""
    found = [0.0] * len(prompts)
    with torch.no_grad():
        for part in micro_batches(model, _rows(prompts), budget):
            for place, value in zip(part, prompt_values(model, [prompts[i] for i in part]).tolist(), strict=True):
                found[place] = value
    return found


def _rows(prompts: Sequence[Sequence[int]]) -> list[Row]:
    """Prompts as rows; the completion is only there because a row has one, and is not read."""
    return [Row(prompt, prompt[:1]) for prompt in prompts]


def _packed_ends(model: Any, prompts: Sequence[Sequence[int]]) -> Tensor:
    """The last hidden states `[prompts, hidden]` at the prompts' ends, every distinct token computed once."""
    layout = Layout.packed(_rows(prompts), model.device)
    ends = torch.tensor([int(path[-1]) for path in layout.paths], device=model.device)
    return last_hidden(model, **layout.inputs).flatten(0, 1).index_select(0, ends)


def _padded_ends(model: Any, prompts: Sequence[Sequence[int]]) -> Tensor:
    """The same from rows by themselves."""
    ids, mask = left_padded(prompts, model.device)
    output = model(
        input_ids=ids,
        attention_mask=mask,
        position_ids=(mask.cumsum(1) - 1).clamp(min=0),
        output_hidden_states=True,
        use_cache=False,
        logits_to_keep=1,
    )
    states: Tensor = output.hidden_states[-1][:, -1]
    return states
