"""What sampling has cost."""

from __future__ import annotations

from dataclasses import dataclass


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
