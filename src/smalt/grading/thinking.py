"""Where a reply's thinking ends and its answer begins."""

from __future__ import annotations

from dataclasses import dataclass

OPENING = "<think>"
CLOSING = "</think>"


@dataclass(frozen=True)
class ReplyParts:
    """A reply, taken apart."""

    thinking: str
    answer: str
    is_closed_once: bool
    """Whether the thinking is closed exactly once (templates may open it in the prompt)."""


def split_thinking(reply: str) -> ReplyParts:
    """Split at the last closing tag. A thought that was opened and never closed leaves no answer."""
    closings = reply.count(CLOSING)
    if closings:
        thinking, _, answer = reply.rpartition(CLOSING)
        if OPENING in answer:
            return ReplyParts(f"{thinking}{answer}".strip(), "", is_closed_once=False)
        return ReplyParts(thinking.replace(OPENING, "", 1).strip(), answer.strip(), closings == 1)
    _, opening, thinking = reply.partition(OPENING)
    if opening:
        return ReplyParts(thinking.strip(), "", is_closed_once=False)
    return ReplyParts("", reply.strip(), is_closed_once=False)
