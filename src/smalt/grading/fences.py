"""Fenced code blocks of a Markdown text, read as leniently as models write them."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

from smalt.grading.syntax import parse_module

_LANGUAGES = ("python", "py", "python3")
_OPENING = re.compile(r"^(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})(?P<info>[^`\n]*)$")
# Small models go on in the same line: "Here is the program: ```python".
_OPENING_IN_LINE = re.compile(r"^.*?[^`\s].*?(?P<indent>)(?P<fence>`{3,})(?P<info>python3?|py)[ \t]*$", re.IGNORECASE)


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


def find_blocks(text: str) -> list[Block]:
    """Return the blocks in order; the last one may be unclosed. Line ends must be newlines."""
    # Not splitlines, which also splits at form feeds and the like.
    lines = re.findall(r"[^\n]*\n|[^\n]+\Z", text)
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line))
    blocks: list[Block] = []
    index = 0
    while index < len(lines):
        line = lines[index].rstrip("\n")
        opening = _OPENING.match(line) or _OPENING_IN_LINE.match(line)
        if opening is None:
            index += 1
            continue
        block, index = _read_block(lines, offsets, index, opening)
        blocks.append(block)
    return blocks


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
    pattern = re.compile(rf"^[ \t]*{re.escape(fence[0])}{{{len(fence)},}}[ \t]*$")
    candidates = [index for index in range(body, len(lines)) if pattern.match(lines[index].rstrip("\n"))]
    if candidates:
        first = "".join(lines[body : candidates[0]])
        if '"""' in first or "'''" in first:
            for index in candidates:
                if parse_module(textwrap.dedent("".join(lines[body:index]))) is not None:
                    return index, None
        return candidates[0], None
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
            if line.strip().lower() in _LANGUAGES:
                return line.strip().lower(), content[index + 1 :]
            break
    return None, content
