"""What of a reply stays in the history that later turns read."""

from __future__ import annotations

from smalt.grading.thinking import CLOSING, OPENING, split_thinking


def history_text(reply: str, limit: int = 6000) -> str:
    """The part of a reply that later turns see: the answer without its thinking, cut to `limit` characters.

    Kept is the text after the last `</think>`, and of it the head (Cobalt, arXiv 2602.03806: 6,000
    characters). Thinking that is not closed leaves nothing. A reply without thinking stays as it is.
    """
    is_thought = OPENING in reply or CLOSING in reply
    return (split_thinking(reply).answer if is_thought else reply)[:limit]
