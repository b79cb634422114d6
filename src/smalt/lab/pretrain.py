"""Bring up the lab's base model: a tiny Llama trained from nothing on lab dialogues.

The weights that ship with the package were made by `smalt lab pretrain`; the same seed on the same machine makes
the same weights again in some 40 minutes. The loss covers the replies: most of a user's message is numbers drawn at
random, whose noise would drown what little there is to learn about feedback.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from smalt.dialogue.chat import ChatFormat
from smalt.lab.corpus import HABIT, SCHOOL, Period, dialogues
from smalt.lab.generator import LabProblem, generate
from smalt.lab.tokenizer import train_tokenizer

CONTEXT_LENGTH = 2048
_IGNORED = -100


class PretrainSettings(BaseModel):
    """Size and schooling of the lab's base model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: int = Field(0, description="Seed of corpus, initial weights and order.")
    problems: int = Field(8000, gt=0, description="Training problems the corpus is written about.")
    steps: int = Field(1600, gt=0, description="Optimiser steps.")
    school_share: float = Field(0.7, ge=0, le=1, description="Share of the steps with able authors.")
    batch: int = Field(32, gt=0, description="Dialogues a step.")
    learning_rate: float = Field(3e-3, gt=0, description="Peak learning rate (linear warm-up, cosine decay).")
    hidden: int = Field(160, gt=0, description="Width of the transformer.")
    layers: int = Field(4, gt=0, description="Depth of the transformer.")
    heads: int = Field(5, gt=0, description="Attention heads.")


def pretrain(settings: PretrainSettings, on_step: Callable[[int, float], None] | None = None) -> tuple[Any, Any]:
    """Train tokenizer and model; `on_step(step, loss)` is told of each step. Returns (model, tokenizer)."""
    problems = generate("train", settings.problems, settings.seed)
    texts = itertools.chain.from_iterable(itertools.islice(dialogues(problems, HABIT, settings.seed), 2000))
    tokenizer = train_tokenizer(texts)
    torch.manual_seed(settings.seed)
    model = new_model(settings, tokenizer)
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.learning_rate, weight_decay=0.01, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _rate(step, settings.steps))
    model.train()
    for step, (ids, labels) in enumerate(_schooling(problems, tokenizer, settings)):
        loss = model(input_ids=ids, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if on_step is not None:
            on_step(step, loss.item())
    return model.eval(), tokenizer


def new_model(settings: PretrainSettings, tokenizer: Any) -> Any:
    """A randomly initialised Llama of the lab's size."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=settings.hidden,
        intermediate_size=3 * settings.hidden,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.heads,
        max_position_embeddings=CONTEXT_LENGTH,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=None,
    )
    return LlamaForCausalLM(config)


@dataclass(frozen=True)
class Schoolbook:
    """A dialogue as token ids, exactly as the policy will meet them turn by turn."""

    ids: tuple[int, ...]
    labels: tuple[int, ...]
    """The ids of the replies; `_IGNORED` elsewhere."""


def schoolbook(chat: ChatFormat, messages: list[str]) -> Schoolbook:
    """Token ids of a whole dialogue, ending with a reply, and what of it is to be learnt."""
    tokenizer = chat.tokenizer
    prompt = chat.opening(messages[0])
    labels: list[int] = []
    for reply, feedback in zip(messages[1::2], [*messages[2::2], None], strict=True):
        reply_ids = [*tokenizer.encode(reply, add_special_tokens=False), tokenizer.eos_token_id]
        labels += [_IGNORED] * (len(prompt.ids) - len(labels)) + reply_ids
        if feedback is None:
            return Schoolbook((*prompt.ids, *reply_ids), tuple(labels))
        prompt = chat.next_turn(prompt, reply_ids, feedback)
        if not prompt.extends_previous:
            raise ValueError("the chat template does not append: labels would stand beside the wrong tokens")
    raise ValueError("a dialogue ends with a reply")


def _schooling(
    problems: list[LabProblem], tokenizer: Any, settings: PretrainSettings
) -> Iterator[tuple[Tensor, Tensor]]:
    """All batches of the training: able authors first, then ordinary ones."""
    school = round(settings.steps * settings.school_share)
    yield from itertools.islice(_batches(problems, SCHOOL, tokenizer, settings), school)
    yield from itertools.islice(_batches(problems, HABIT, tokenizer, settings), settings.steps - school)


def _batches(
    problems: list[LabProblem], period: Period, tokenizer: Any, settings: PretrainSettings
) -> Iterator[tuple[Tensor, Tensor]]:
    """Endless `(ids, labels)`, each `[batch, longest]`; dialogues of similar length share a batch."""
    chat = ChatFormat(tokenizer)
    stream = (schoolbook(chat, messages) for messages in dialogues(problems, period, settings.seed))
    order = torch.Generator().manual_seed(settings.seed)
    pool_batches = 16
    while True:
        pool = sorted(itertools.islice(stream, settings.batch * pool_batches), key=lambda book: len(book.ids))
        for place in torch.randperm(pool_batches, generator=order).tolist():
            yield _padded(pool[place * settings.batch : (place + 1) * settings.batch])


def _padded(books: list[Schoolbook]) -> tuple[Tensor, Tensor]:
    ids = torch.zeros(len(books), max(len(book.ids) for book in books), dtype=torch.long)
    labels = torch.full_like(ids, _IGNORED)
    for place, book in enumerate(books):
        ids[place, : len(book.ids)] = torch.tensor(book.ids)
        labels[place, : len(book.labels)] = torch.tensor(book.labels)
    return ids, labels


def _rate(step: int, steps: int) -> float:
    warm_up = min(100, steps // 10)
    if step < warm_up:
        return (step + 1) / warm_up
    return 0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * (step - warm_up) / max(1, steps - warm_up)))
