"""What of a reply stays in the history that later turns read."""

from __future__ import annotations

_OPEN, _CLOSE = "<think>", "</think>"


def history_text(reply: str, limit: int = 6000, opened_in_prompt: bool = False) -> str:
    """The part of a reply that later turns see: the answer without its thinking, cut to `limit` characters.

    Kept is the text after the last `</think>`, and of it the head (Cobalt, arXiv 2602.03806: 6,000
    characters). Thinking that is not closed leaves nothing.

    Args:
        reply: the reply as sampled, as text.
        limit: how many characters stay.
        opened_in_prompt: whether the chat template already wrote `<think>`, so that a reply without
            `</think>` is thinking that was cut off.
    """
    _, close, answer = reply.rpartition(_CLOSE)
    if not close and opened_in_prompt:
        return ""
    if _OPEN in answer:
        return ""
    return (answer.strip() if close else answer)[:limit]
