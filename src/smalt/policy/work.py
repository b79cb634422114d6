"""What sampling has cost."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Protocol, runtime_checkable


@dataclass
class SamplingWork:
    """Counts since they were last set back; whoever reports them may do that."""

    prefilled_tokens: int = 0
    """Prompt tokens that went through the model."""
    remembered_tokens: int = 0
    """Prompt tokens whose states were still there from an earlier turn."""
    sampled_tokens: int = 0
    """Tokens of completions."""
    cut_histories: int = 0
    """Prompts of later turns that do not extend their earlier turn, so that nothing could be remembered."""
    rows_put_back: int = 0
    """Completions that lost their place to longer ones and were begun again from where they were."""

    def take(self) -> SamplingWork:
        """The counts, which are set back."""
        taken = SamplingWork(**vars(self))
        for count in fields(self):
            setattr(self, count.name, 0)
        return taken


@runtime_checkable
class CountingSampler(Protocol):
    """A sampler that counts its work. Nobody has to be one."""

    work: SamplingWork
