"""Continuous batching: rows that end leave, waiting prompts take their place, within a budget of tokens.

Which rows decode together follows from the requests and the tokens drawn alone, so that equal seeds give equal
completions. Prompts are prefilled in groups, and only once there is room for some rows, so that decoding seldom waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from smalt.policy.drawing import draw
from smalt.policy.live_rows import LiveRows, Task
from smalt.policy.loading import Policy
from smalt.policy.prefill import PrefilledPrompt, prefill
from smalt.policy.prefix_memory import Ids, PrefixMemory, Segment
from smalt.policy.row_cache import RowCache
from smalt.policy.sampling import Completion, OnFinished, SampleRequest, SamplingSettings, tell_nobody
from smalt.policy.work import SamplingWork

# New tokens of a prefill: enough to fill a device, few enough for activations and masks to stay small.
_PREFILL_TOKENS = 8192
# A prefill's states may take this share of the token budget on top of it.
_PREFILL_SHARE = 0.25
# New rows come when there is room for this share of the present ones.
_REFILL_SHARE = 0.125
# Columns that a new row finds free behind it, else it would soon be put back.
_RESERVE = 256


@dataclass(frozen=True, eq=False)
class _Waiting:
    """Completions that begin from the same text, and what is remembered of that."""

    tasks: list[Task]
    prior: Segment | None

    @property
    def ids(self) -> Ids:
        return self.tasks[0].ids

    @property
    def new(self) -> int:
        """Tokens that must be computed."""
        return len(self.ids) - (self.prior.end if self.prior else 0)


@dataclass(frozen=True, eq=False)
class _Ready:
    """A prefilled text, and its completions that have no row yet."""

    text: PrefilledPrompt
    tasks: deque[Task]


class ContinuousDecoding:
    """The decoding of one call's requests; the cache has at most `budget` tokens (`SamplerSettings.batch_tokens`)."""

    def __init__(
        self,
        policy: Policy,
        settings: SamplingSettings,
        generator: torch.Generator,
        budget: int,
        memory: PrefixMemory,
        work: SamplingWork,
        *,
        shares_prompts: bool,
    ) -> None:
        """Nothing to decode yet."""
        self.policy = policy
        self.settings = settings
        self.generator = generator
        self.budget = budget
        self.memory = memory
        self.work = work
        stop_ids = torch.tensor(sorted(policy.stop_ids), dtype=torch.long, device=policy.device)
        self.cache = RowCache(policy.model.config, policy.device, shares_prompts=shares_prompts)
        self.rows = LiveRows(self.cache, settings.max_new_tokens, stop_ids)
        self.waiting: deque[_Waiting] = deque()
        self.ready: deque[_Ready] = deque()

    def run(self, requests: Sequence[SampleRequest], on_finished: OnFinished = tell_nobody) -> list[list[Completion]]:
        """For each request its completions; `on_finished` is told of each when its row ends."""
        waiting = [
            _Waiting(
                [Task(place, sample, request.prompt_ids) for sample in range(request.count)],
                self.memory.longest(request.prompt_ids, request.fed),
            )
            for place, request in enumerate(requests)
            if request.count
        ]
        # Similar work together: texts that are remembered have few tokens left to compute.
        self.waiting.extend(sorted(waiting, key=lambda entry: (entry.prior is not None, len(entry.ids))))
        done: dict[tuple[int, int], Completion] = {}
        while self._admit() or self._step():
            for task in self._leave():
                completion = done[task.place, task.sample] = self._completion(task)
                on_finished(task.place, task.sample, completion)
        return [[done[place, sample] for sample in range(r.count)] for place, r in enumerate(requests)]

    def _admit(self) -> bool:
        """Give rows to what waits, as far as there is room, and draw their first tokens."""
        least = max(1, int(len(self.rows) * _REFILL_SHARE))
        rows, width, held = len(self.rows), self.cache.width, self.cache.prompt_tokens
        placed: list[tuple[PrefilledPrompt, list[Task]]] = []
        while length := self._next_length():
            wider, more = self.cache.grown(width, held, length)
            if (room := self._room(rows, wider, more)) < least:
                break
            if not self.ready:
                self._prefill()
            head = self.ready[0]
            tasks = [head.tasks.popleft() for _ in range(min(room, len(head.tasks)))]
            placed.append((head.text, tasks))
            if not head.tasks:
                self.ready.popleft()
            rows, width, held, least = rows + len(tasks), wider, more, 1
        if placed:
            self.cache.place([(text, len(tasks)) for text, tasks in placed])
            logits = torch.stack([text.logits for text, tasks in placed for _ in tasks])
            self.rows.add([task for _, tasks in placed for task in tasks], *draw(logits, self.settings, self.generator))
        return bool(placed)

    def _next_length(self) -> int:
        """Tokens of the next text to get a row; 0 if there is none."""
        if self.ready:
            return self.ready[0].text.length
        return len(self.waiting[0].ids) if self.waiting else 0

    def _room(self, rows: int, width: int, held: int) -> int:
        """How many rows may join `rows` others, the longest of all being `width` tokens long; one always may.

        Shared prompts take `held` tokens beside the rows.
        """
        columns = width + min(_RESERVE, self.settings.max_new_tokens)
        return max((self.budget - held) // columns - rows, 0 if rows else 1)

    def _prefill(self) -> None:
        """Compute the next waiting texts, and keep the states of prompts if a turn follows."""
        group: list[_Waiting] = []
        most_new = longest = 0
        while self.waiting:
            most_new, longest = max(most_new, self.waiting[0].new), max(longest, len(self.waiting[0].ids))
            rows = len(group) + 1
            if group and (rows * most_new > _PREFILL_TOKENS or rows * longest > self.budget * _PREFILL_SHARE):
                break
            group.append(self.waiting.popleft())
        texts = prefill(self.policy.model, [entry.ids for entry in group], [entry.prior for entry in group])
        for entry, text in zip(group, texts, strict=True):
            self.ready.append(_Ready(text, deque(entry.tasks)))
            self.work.prefilled_tokens += text.new
            self.work.remembered_tokens += text.known
            if not entry.tasks[0].drawn and self.memory.wants(entry.ids, text.new):
                self.memory.add(entry.ids, text.new_segment(entry.prior))

    def _step(self) -> bool:
        """Draw one token for every row; False if there is none."""
        if not self.rows:
            return False
        self._put_back()
        logits = self.cache.feed(self.policy.model, self.rows.last)
        self.rows.record(*draw(logits, self.settings, self.generator))
        return True

    def _put_back(self) -> None:
        """Let the youngest rows wait again where the others have outgrown the budget."""
        most = max(1, (self.budget - self.cache.prompt_tokens) // (self.cache.width + 1))
        if len(self.rows) > most:
            youngest = self.rows.youngest(len(self.rows) - most)
            for task in self.rows.progress(youngest):
                self.waiting.append(_Waiting([task], self.memory.longest(task.ids, len(task.prompt))))
            self.rows.remove(youngest)
            self.work.rows_put_back += len(youngest)

    def _leave(self) -> list[Task]:
        """Take out the rows that ended, and keep their states if a turn follows."""
        ended = self.rows.ended()
        if not ended:
            return []
        tasks = self.rows.progress(ended)
        for row, task in zip(ended, tasks, strict=True):
            fed = task.ids[:-1]
            prompt = self.memory.find(task.prompt)
            if prompt and self.memory.wants(fed, len(fed) - prompt.end):
                self.memory.add(fed, self.cache.segment(row, prompt.end, len(fed), prompt))
        self.rows.remove(ended)
        return tasks

    def _completion(self, task: Task) -> Completion:
        self.work.sampled_tokens += len(task.drawn)
        return Completion(task.drawn, task.logprobs, task.drawn[-1] in self.policy.stop_ids)
