"""Samplers: prompts go in as token ids, completions come out as the ids sampled and their log-probabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field


class SamplingSettings(BaseModel):
    """How completions are drawn."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    temperature: float = Field(1.0, ge=0, description="Softmax temperature; 0 takes the likeliest token.")
    top_p: float = Field(1.0, gt=0, le=1, description="Nucleus: smallest set of tokens with this mass.")
    max_new_tokens: int = Field(6144, gt=0, description="Longest completion, in tokens (Cobalt: 6,144).")


class SamplerSettings(BaseModel):
    """How much of the model's key-value states the local sampler holds.

    Memory and speed depend on it; completions differ by rounding only. A token takes 2 x layers x key-value heads x
    head size numbers: 24 KiB for SmolLM2-135M and 128 KiB for Llama-3-8B in bfloat16.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    batch_tokens: int = Field(
        1 << 17,
        gt=0,
        description="Tokens decoded at once: rows x longest, without the prompt where rows share it, and each shared "
        "prompt; a prefill takes up to a quarter more.",
    )
    kept_tokens: int = Field(
        1 << 17, ge=0, description="Tokens whose states are kept for the next turn; 0 computes each prompt anew."
    )


@dataclass(frozen=True)
class SampleRequest:
    """One prompt and how many completions of it are wanted."""

    prompt_ids: tuple[int, ...]
    count: int = 1
    extends: int = 0
    """How many of the first ids are the prompt and completion of an earlier turn, which a sampler may remember."""

    @property
    def fed(self) -> int:
        """Ids of the earlier turn that went through the model: all but its last one, which was only drawn."""
        return max(self.extends - 1, 0)


@dataclass(frozen=True)
class Completion:
    """One sampled completion, exactly as it was drawn.

    `logprobs[i]` is the log-probability of `ids[i]` under the distribution it was drawn from (temperature and
    nucleus included; at temperature 0 under the plain softmax). The stop token is part of `ids`.
    """

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    is_finished: bool
    """Whether a stop token ended it (else it was cut at `max_new_tokens`)."""


OnFinished = Callable[[int, int, Completion], None]
"""Told of a completion that has ended: its request's place, its number among the request's, and itself."""


def tell_nobody(place: int, number: int, completion: Completion) -> None:
    """For calls whose completions are looked at when all are there."""


class Sampler(Protocol):
    """Draws completions from the current policy."""

    def sample(
        self, requests: Sequence[SampleRequest], settings: SamplingSettings, seed: int
    ) -> list[list[Completion]]:
        """For each request its `count` completions; equal arguments and weights give equal completions."""
        ...

    def fits(self, prompt_ids: Sequence[int], settings: SamplingSettings) -> bool:
        """Whether the prompt leaves room in the model's context for a completion."""
        ...


@runtime_checkable
class MultiTurnSampler(Protocol):
    """A sampler that can remember what it computed for one turn until the next. Nobody has to be one."""

    def over_turns(self, turns: int) -> AbstractContextManager[Sampler]:
        """A sampler whose next `turns` calls are the turns of the same dialogues, last one included.

        What it returns must not depend on what was sampled before it was made.
        """
        ...


@runtime_checkable
class TellingSampler(Protocol):
    """A sampler that tells of each completion while others are still being drawn. Nobody has to be one."""

    def sample_and_tell(
        self, requests: Sequence[SampleRequest], settings: SamplingSettings, seed: int, on_finished: OnFinished
    ) -> list[list[Completion]]:
        """What `sample` returns; `on_finished` is told of every completion once, in any order, by this thread."""
        ...


def sample_and_tell(
    sampler: Sampler,
    requests: Sequence[SampleRequest],
    settings: SamplingSettings,
    seed: int,
    on_finished: OnFinished,
) -> list[list[Completion]]:
    """The sampler's completions, told of as they end if it can tell, and else not at all."""
    if isinstance(sampler, TellingSampler):
        return sampler.sample_and_tell(requests, settings, seed, on_finished)
    return sampler.sample(requests, settings, seed)


@runtime_checkable
class FreezableSampler(Protocol):
    """A sampler that can go on with weights of its own while the policy's are trained. Nobody has to be one."""

    def frozen(self) -> Sampler:
        """A sampler of the policy as it is now, whatever becomes of it; good until the next call of this.

        It may be used by another thread, also while this one trains the policy.
        """
        ...


def sampler_over_turns(sampler: Sampler, turns: int) -> AbstractContextManager[Sampler]:
    """The sampler for growing dialogues of so many turns: with a memory if it can have one."""
    return sampler.over_turns(turns) if isinstance(sampler, MultiTurnSampler) else nullcontext(sampler)
