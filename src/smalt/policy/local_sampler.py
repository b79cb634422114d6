"""The sampler that runs in this process, on a transformers model.

Prompts are prefilled once however many completions they get; rows that end make room for others; the states of one
turn serve the next. It leaves out paged attention and compiled graphs: where those matter, an engine of its own
should sample.
"""

from __future__ import annotations

import copy
import functools
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import torch

from smalt.policy.aligned_decoding import AlignedDecoding, aligned_batches
from smalt.policy.caching import keeps_every_token
from smalt.policy.capabilities import capabilities_of
from smalt.policy.continuous_decoding import ContinuousDecoding
from smalt.policy.loading import Policy
from smalt.policy.packed_linears import packed_linears
from smalt.policy.prefix_memory import PrefixMemory
from smalt.policy.sampling import (
    Completion,
    OnFinished,
    Sampler,
    SampleRequest,
    SamplerSettings,
    SamplingSettings,
    tell_nobody,
)
from smalt.policy.work import SamplingWork

# Completions a prompt, in the mean, from which on prompts are shared.
_SHARED_FROM = 2

_logger = logging.getLogger(__name__)


@dataclass
class LocalSampler:
    """Samples with `policy` within a budget of memory."""

    policy: Policy
    budget: SamplerSettings = field(default_factory=SamplerSettings)
    work: SamplingWork = field(default_factory=SamplingWork)

    def fits(self, prompt_ids: Sequence[int], settings: SamplingSettings) -> bool:
        """Whether the prompt leaves room in the model's context for a completion."""
        return len(prompt_ids) + settings.max_new_tokens <= self.policy.context_length

    def sample(
        self, requests: Sequence[SampleRequest], settings: SamplingSettings, seed: int
    ) -> list[list[Completion]]:
        """For each request its completions, in order."""
        return self.sample_and_tell(requests, settings, seed, tell_nobody)

    def sample_and_tell(
        self, requests: Sequence[SampleRequest], settings: SamplingSettings, seed: int, on_finished: OnFinished
    ) -> list[list[Completion]]:
        """As `sample`; tells of each completion when its row ends, of rows in fixed batches when their batch does."""
        return self._sample(requests, settings, seed, PrefixMemory(budget=0, turns_left=0), on_finished)

    @contextmanager
    def over_turns(self, turns: int) -> Iterator[Sampler]:
        """A sampler for so many turns of the same dialogues, which remembers the states of each until the next."""
        yield _OverTurns(self, PrefixMemory(self.budget.kept_tokens, turns))

    def frozen(self) -> Sampler:
        """A sampler on a copy of the weights as they are now: the first call makes the copy, later ones refresh it."""
        self._twin.policy.model.load_state_dict(self.policy.model.state_dict())
        return self._twin

    @functools.cached_property
    def _twin(self) -> LocalSampler:
        # Its weights still "require" gradients: torch rounds otherwise where they do not, even in inference.
        return LocalSampler(replace(self.policy, model=copy.deepcopy(self.policy.model)), self.budget, self.work)

    @torch.inference_mode()
    def _sample(
        self,
        requests: Sequence[SampleRequest],
        settings: SamplingSettings,
        seed: int,
        memory: PrefixMemory,
        on_finished: OnFinished,
    ) -> list[list[Completion]]:
        generator = torch.Generator(device=self.policy.device).manual_seed(seed % (1 << 63))
        with packed_linears(self.policy.model, settings.max_new_tokens):
            if not self._keeps_every_token:
                return self._sample_in_fixed_batches(requests, settings, generator, on_finished)
            decoding = ContinuousDecoding(
                self.policy,
                settings,
                generator,
                self.budget.batch_tokens,
                memory,
                self.work,
                shares_prompts=self._shares_prompts(requests),
            )
            return decoding.run(requests, on_finished)

    def _sample_in_fixed_batches(
        self,
        requests: Sequence[SampleRequest],
        settings: SamplingSettings,
        generator: torch.Generator,
        on_finished: OnFinished,
    ) -> list[list[Completion]]:
        results: list[list[Completion]] = [[] for _ in requests]
        for batch in aligned_batches(requests, settings, self.budget.batch_tokens):
            aligned = AlignedDecoding(self.policy, [requests[i] for i in batch], settings, generator, self.work)
            for place, completions in zip(batch, aligned.run(), strict=True):
                results[place] = completions
                for number, completion in enumerate(completions):
                    on_finished(place, number, completion)
        return results

    def _shares_prompts(self, requests: Sequence[SampleRequest]) -> bool:
        """Whether prompts are held once and not as part of each row: where the model can, and it pays."""
        counts = [request.count for request in requests if request.count]
        pays = sum(counts) >= _SHARED_FROM * len(counts)
        return pays and capabilities_of(self.policy.model).shares_prompts

    @functools.cached_property
    def _keeps_every_token(self) -> bool:
        keeps = keeps_every_token(self.policy.model.config)
        if not keeps:
            _logger.warning(
                "%s has sliding windows or recurrent states: it samples in fixed batches and remembers no turns",
                type(self.policy.model).__name__,
            )
        return keeps


@dataclass
class _OverTurns:
    """The local sampler with the memory of one growth."""

    sampler: LocalSampler
    memory: PrefixMemory
    turn: int = 0

    def fits(self, prompt_ids: Sequence[int], settings: SamplingSettings) -> bool:
        """As the sampler's own."""
        return self.sampler.fits(prompt_ids, settings)

    def sample(
        self, requests: Sequence[SampleRequest], settings: SamplingSettings, seed: int
    ) -> list[list[Completion]]:
        """As the sampler's own, from where the turn before ended."""
        return self.sample_and_tell(requests, settings, seed, tell_nobody)

    def sample_and_tell(
        self, requests: Sequence[SampleRequest], settings: SamplingSettings, seed: int, on_finished: OnFinished
    ) -> list[list[Completion]]:
        """As the sampler's own, from where the turn before ended."""
        self.turn += 1
        if self.turn > 1:
            self.sampler.work.cut_histories += sum(not request.extends for request in requests)
        self.memory.begin_turn((request.prompt_ids, request.fed) for request in requests)
        return self.sampler._sample(requests, settings, seed, self.memory, on_finished)
