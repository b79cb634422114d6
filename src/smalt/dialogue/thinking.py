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
    """Split at the last closing tag. Without one, an opened thought never ended: there is no answer."""
    closings = reply.count(CLOSING)
    if closings:
        thinking, _, answer = reply.rpartition(CLOSING)
        return ReplyParts(thinking.replace(OPENING, "", 1).strip(), answer.strip(), closings == 1)
    before, opening, thinking = reply.partition(OPENING)
    if opening:
        return ReplyParts(thinking.strip(), before.strip(), is_closed_once=False)
    return ReplyParts("", reply.strip(), is_closed_once=False)
