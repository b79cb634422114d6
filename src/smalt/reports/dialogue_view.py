"""Example dialogues as the report shows them: named turns, verdict badges, code apart from prose.

All text here was written by a model or by a program it wrote. It is passed on as plain text; the template
escapes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from smalt.grading.verdicts import Status
from smalt.reports.run_folder import Dialogue, DialogueTurn

_FENCE = re.compile(r"^```[^\n`]*\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)
_PROGRAM_ROLES = ("assistant", "program")
_FEEDBACK_ROLES = ("user", "feedback")
_CODE_ROLES = ("program", "feedback")
_BADGES = {
    **{status.value: "bad" for status in Status},
    Status.PASSED.value: "good",
    Status.INFRA_ERROR.value: "neutral",
    "passed_public": "partial",
}
# Terminal escapes and the like would be invisible in a page; their pictures are not.
_CONTROL_PICTURES = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"} | {127: 0x2421}


@dataclass(frozen=True)
class Part:
    """A stretch of a message."""

    text: str
    is_code: bool


@dataclass(frozen=True)
class Badge:
    """A verdict: its words, and `kind`, one of good, partial, bad, neutral."""

    text: str
    kind: str


@dataclass(frozen=True)
class TurnView:
    """A message: its name ("Program 2"), `side` (program or feedback), badge and parts."""

    name: str
    side: str
    badge: Badge | None
    parts: list[Part]


@dataclass(frozen=True)
class DialogueView:
    """A dialogue; `badges` are those of its programs, in order."""

    problem_id: str
    turns: list[TurnView]
    badges: list[Badge]


def dialogue_views(dialogues: Sequence[Dialogue]) -> list[DialogueView]:
    """What the template shows of each dialogue."""
    return [_view(dialogue) for dialogue in dialogues]


def _view(dialogue: Dialogue) -> DialogueView:
    names = _turn_names(dialogue.turns)
    turns = [
        TurnView(
            name=name,
            side="program" if turn.role in _PROGRAM_ROLES else "feedback",
            badge=badge(turn.verdict) if turn.verdict else None,
            parts=message_parts(turn.text, is_code=turn.role in _CODE_ROLES),
        )
        for name, turn in zip(names, dialogue.turns, strict=True)
    ]
    return DialogueView(dialogue.problem_id, turns, [turn.badge for turn in turns if turn.badge])


def _turn_names(turns: Sequence[DialogueTurn]) -> Iterator[str]:
    """Names by what a message is: what comes before the first program is the problem, after it feedback."""
    programs = 0
    for turn in turns:
        if turn.role in _PROGRAM_ROLES:
            programs += 1
            yield f"Program {programs}"
        elif turn.role in _FEEDBACK_ROLES:
            yield f"Feedback {programs}" if programs else "Problem"
        else:
            yield turn.role.capitalize()


def badge(verdict: str) -> Badge:
    """The badge of a verdict; one that is not known is neutral."""
    return Badge(verdict.replace("_", " "), _BADGES.get(verdict, "neutral"))


def message_parts(text: str, is_code: bool) -> list[Part]:
    """Cut a message at its code fences; without any it is code or prose as a whole, as `is_code` says."""
    visible = text.replace("\r\n", "\n").translate(_CONTROL_PICTURES)
    parts, end = [], 0
    for fence in _FENCE.finditer(visible):
        parts += [Part(visible[end : fence.start()], is_code=False), Part(fence[1], is_code=True)]
        end = fence.end()
    parts.append(Part(visible[end:], is_code=is_code and end == 0))
    return [Part(part.text.strip("\n"), part.is_code) for part in parts if part.text.strip()]
