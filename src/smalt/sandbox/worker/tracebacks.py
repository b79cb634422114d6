"""Error text as the author of a program would want it: its own frames, its own source lines, not too long."""

from __future__ import annotations

import linecache
import traceback
from collections import deque
from types import CodeType, FrameType

PROGRAM_FILE = "solution.py"
TEST_FILE = "test.py"
_MAX_LINES = 12
_MAX_CHARACTERS = 4000
_MAX_FRAMES = 8


def remember_source(file_name: str, source: str) -> None:
    """Let tracebacks quote `source`, which exists in no file."""
    linecache.cache[file_name] = (len(source), None, source.splitlines(keepends=True), file_name)


def forget_sources() -> None:
    """Undo `remember_source`: the next program's lines are other ones."""
    for file_name in (PROGRAM_FILE, TEST_FILE):
        linecache.cache.pop(file_name, None)


def error_text(error: BaseException) -> str:
    """Return the traceback of `error`, cut to the frames of the program and of its test."""
    frames: deque[tuple[FrameType, int]] = deque(maxlen=_MAX_FRAMES)
    step = error.__traceback__
    while step is not None:
        code: CodeType = step.tb_frame.f_code
        if code.co_filename in (PROGRAM_FILE, TEST_FILE):
            frames.append((step.tb_frame, step.tb_lineno))
        step = step.tb_next
    lines = "".join(traceback.StackSummary.extract(iter(frames)).format()).splitlines()
    message = "".join(traceback.format_exception_only(error)).rstrip("\n").splitlines()
    return _cut(lines, message)


def _cut(frames: list[str], message: list[str]) -> str:
    """Join frames and message; of too many lines the last frames and the ends of the message stay."""
    message = [_cut_line(line) for line in message]
    if len(message) > _MAX_LINES - 4:
        message = [*message[: _MAX_LINES - 6], "...", *message[-1:]]
    room = _MAX_LINES - 1 - len(message)
    kept = frames[-room:]
    while kept and not kept[0].startswith("  File "):
        kept = kept[1:]
    head = ["Traceback (most recent call last):"] if kept else []
    return "\n".join([*head, *map(_cut_line, kept), *message])[:_MAX_CHARACTERS]


def _cut_line(line: str) -> str:
    limit = _MAX_CHARACTERS // _MAX_LINES
    return line if len(line) <= limit else line[: limit - 3] + "..."
