"""Fenced code blocks of a Markdown text, read as leniently as models write them."""

from __future__ import annotations

import itertools
import re
import textwrap
from dataclasses import dataclass

from smalt.grading.syntax import parse_module

MAX_BLOCKS = 200
"""Blocks after these are not read: the reply is repeating itself."""

_PYTHON = re.compile(r"(python|py|pypy|ipython)[0-9.]*\Z")
_OPENING = re.compile(r"^(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})(?P<info>[^`\n]*)$")
# Small models go on in the same line: "Here is the program: ```python". Searched for from its fence on: a pattern
# for what stands before would take quadratic time on a long line.
_OPENING_IN_LINE = re.compile(r"(?P<indent>)(?<!`)(?P<fence>`{3,})(?P<info>python3?|py)[ \t]*$", re.IGNORECASE)
# Code Llama's way of marking code.
_TAGGED = re.compile(r"\[PYTHON\]\n?(?P<code>.*?)(?P<closing>\[/PYTHON\]|\Z)", re.DOTALL)
# Later candidates for the end of a block are not tried, as each is parsed.
_MAX_CLOSINGS = 20


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    language: str | None
    """First word after the fence, in lower case; None without one."""
    code: str
    """The content, ending in a newline unless empty."""
    end: int
    """Offset in the text of what follows the closing fence."""
    is_closed: bool

    @property
    def is_marked_python(self) -> bool:
        """Whether its language is Python, under any of the names in use."""
        return self.language is not None and _PYTHON.match(self.language) is not None


def find_blocks(text: str) -> list[Block]:
    """Return the blocks in order; the last one may be unclosed. Line ends must be newlines."""
    # Not splitlines, which also splits at form feeds and the like.
    lines = re.findall(r"[^\n]*\n|[^\n]+\Z", text)
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line))
    blocks: list[Block] = []
    index = 0
    while index < len(lines) and len(blocks) < MAX_BLOCKS:
        line = lines[index].rstrip("\n")
        opening = _OPENING.match(line) or _OPENING_IN_LINE.search(line)
        if opening is None or _is_wrapper(opening, lines[index + 1 : index + 2]):
            index += 1
            continue
        block, index = _read_block(lines, offsets, index, opening)
        blocks.append(block)
    return blocks


def _is_wrapper(opening: re.Match[str], next_line: list[str]) -> bool:
    """Whether a fence only holds another fence: a reply quoted as Markdown, or a fence opened twice."""
    if opening["info"].strip().lower() in ("markdown", "md"):
        return True
    inner = _OPENING.match(next_line[0].rstrip("\n")) if next_line else None
    return inner is not None and _PYTHON.match(inner["info"].strip().lower()) is not None


def find_tagged_blocks(text: str) -> list[Block]:
    """Return the blocks between `[PYTHON]` and `[/PYTHON]`, as Python."""
    return [
        Block("python", match["code"].strip("\n") + "\n", match.end(), match["closing"] != "")
        for match in _TAGGED.finditer(text)
    ]


def _read_block(lines: list[str], offsets: list[int], start: int, opening: re.Match[str]) -> tuple[Block, int]:
    """Return the block opened in line `start` and the index of the line after it."""
    body = start + 1
    closing, glued = _find_closing(lines, body, opening["fence"])
    content = lines[body:closing] + ([glued] if glued is not None else [])
    language, content = _language(opening["info"], content)
    code = "".join(content)
    if opening["indent"]:
        code = textwrap.dedent(code)
    if code and not code.endswith("\n"):
        code += "\n"
    is_closed = closing < len(lines)
    after = closing + 1 if is_closed else len(lines)
    return Block(language, code, offsets[after], is_closed), after


def _find_closing(lines: list[str], body: int, fence: str) -> tuple[int, str | None]:
    """Return the line that closes the block, and the code before a fence glued to that line.

    len(lines) when there is none. Of several candidates the first is taken, unless the block parses as Python
    only with a later one: then the earlier ones are inside a string.
    """
    pattern = re.compile(rf"[ \t]*{re.escape(fence[0])}{{{len(fence)},}}[ \t]*\n?\Z")
    candidates = (index for index in range(body, len(lines)) if pattern.match(lines[index]))
    closing = next(candidates, None)
    if closing is not None:
        first = "".join(lines[body:closing])
        if '"""' in first or "'''" in first:
            for index in (closing, *itertools.islice(candidates, _MAX_CLOSINGS - 1)):
                if parse_module(textwrap.dedent("".join(lines[body:index]))) is not None:
                    return index, None
        return closing, None
    for index in range(body, len(lines)):
        line = lines[index].rstrip()
        if line.endswith(fence) and line.strip(fence[0]):
            return index, line[: -len(fence)].rstrip(fence[0])
    return len(lines), None


def _language(info: str, content: list[str]) -> tuple[str | None, list[str]]:
    words = re.split(r"[\s:,{}]+", info.strip().strip("{}."))
    if words[0]:
        return words[0].lower(), content
    # "```\npython\n": the language on a line of its own.
    for index, line in enumerate(content):
        if line.strip():
            if _PYTHON.match(line.strip().lower()):
                return line.strip().lower(), content[index + 1 :]
            break
    return None, content
