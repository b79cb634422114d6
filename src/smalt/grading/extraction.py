"""Find the program in a model's reply.

The rules, in order:

1. Thinking is not part of the answer: `<think>...</think>` goes; an unclosed `<think>` leaves no program.
2. Fenced blocks are read leniently, because small models write them so: any indentation, ``` or ~~~, an
   opening fence at the end of a sentence, the language on the line after the fence, a closing fence glued to
   the last line, no closing fence (a truncated reply). A fence in a string of the program does not end it.
   Without any fence, `[PYTHON]` tags count as such.
3. Blocks in another language are no programs. Blocks without a language count when they read as Python.
4. With an entry point the last block that defines it is the program.
5. Otherwise it is the last block that is no mere demo. Graders that take the very last block lose the answers
   that end with a sample call or a summary; those that take the first lose the answers that correct
   themselves. A demo is a block that calls what an earlier block defines; only one that reads the input,
   when none before it does, is the main part of a program in parts.
6. In both cases blocks that parse come before those that do not, and blocks marked as Python before those
   without a language; and earlier blocks that the chosen one needs (imports, helpers) are put before it.
7. Without such a block the reply, up to a stray fence and prose around the code, is the program if it parses
   and does something.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from smalt.grading.blocks import Part, parts_of
from smalt.grading.fences import Block, find_blocks, find_tagged_blocks
from smalt.grading.syntax import does_something, first_bad_line, parse_module
from smalt.grading.thinking import CLOSING, OPENING, split_thinking

_LOOKS_LIKE_PYTHON = re.compile(
    r"^\s*(def \w+\s*\(|class \w+|import \w|from \w[\w.]* import |print\s*\(|\w+(, *\w+)* = )", re.MULTILINE
)
# Code between lines of prose is looked for in short replies, from the first few lines that may open it.
_MAX_PROSE_CHARACTERS = 20_000
_MAX_STARTS = 3
_MAX_TRIES = 10


@dataclass(frozen=True)
class Extraction:
    """The program of a reply and how the reply was laid out, for rules on its format."""

    program: str | None
    """None when the reply holds no program."""
    blocks: int = 0
    """Number of fenced blocks of Python, marked as such or reading as such."""
    is_exactly_one_block: bool = False
    """Whether the reply has one fenced block in all, of Python and closed."""
    trailing_text: str = ""
    """Text after the program's block, stripped."""
    has_backtick_inside: bool = False
    """Whether the program contains a backtick."""


def extract_program(reply: str, entry_point: str | None = None) -> Extraction:
    """Return the program in `reply`; `entry_point` is the function it should define, if known.

    An entry point may be a call path such as `Solution().solve`; its first name is what a block must define.
    """
    text = _without_thinking(reply.replace("\r\n", "\n").replace("\r", "\n"))
    if text is None:
        return Extraction(None)
    found = find_blocks(text)
    blocks = [block for block in found or find_tagged_blocks(text) if _is_python(block)]
    if not blocks:
        return _bare_program(text)
    parts = parts_of(blocks)
    chosen = _choose(parts, entry_point)
    program = "".join(part.block.code for part in chosen.with_needed(parts))
    return Extraction(
        program=program,
        blocks=len(blocks),
        is_exactly_one_block=len(found) == 1 and chosen.block.is_closed,
        trailing_text=text[chosen.block.end :].strip(),
        has_backtick_inside="`" in program,
    )


def _without_thinking(text: str) -> str | None:
    """The answer as the history keeps it, None when a thought never ended."""
    parts = split_thinking(text)
    if OPENING not in text and CLOSING not in text:
        return text
    return parts.answer or None


def _is_python(block: Block) -> bool:
    if not block.code.strip():
        return False
    if block.language is not None:
        return block.is_marked_python
    return does_something(block.code) or (
        parse_module(block.code) is None and _LOOKS_LIKE_PYTHON.search(block.code) is not None
    )


def _choose(parts: Sequence[Part], entry_point: str | None) -> Part:
    name = re.match(r"\w+", entry_point) if entry_point is not None else None
    if name is not None:
        # By text, so that a block with a syntax error is still one that meant to define it.
        pattern = re.compile(rf"^\s*(async\s+def|def|class)\s+{name[0]}\b|^{name[0]}\s*=[^=]", re.MULTILINE)
        defining = [part for part in parts if pattern.search(part.block.code)]
        if defining:
            return max(defining, key=_rank)
    return max((part for part in parts if not part.is_demo), key=_rank)


def _rank(part: Part) -> tuple[bool, bool, int]:
    return part.does_something, part.block.language is not None, part.index


def _bare_program(text: str) -> Extraction:
    """Return the program of a reply without a block of Python."""
    # A reply to a prompt that ends in an opening fence has the closing one only.
    program, _, trailing = text.partition("\n```")
    program = program.strip("\n") + "\n"
    if does_something(program):
        return Extraction(program, trailing_text=trailing.strip("` \n"), has_backtick_inside="`" in program)
    return _program_in_prose(text)


def _program_in_prose(text: str) -> Extraction:
    """Return the longest run of lines that parses, from one that looks like Python to before an unindented one."""
    if len(text) > _MAX_PROSE_CHARACTERS:
        return Extraction(None)
    lines = text.split("\n")
    starts = [index for index, line in enumerate(lines) if line[:1].strip() and _LOOKS_LIKE_PYTHON.match(line)]
    ends = [index for index in range(1, len(lines)) if lines[index][:1].strip()] + [len(lines)]
    for start in starts[:_MAX_STARTS]:
        end = _end_of_program(lines, start, [end for end in ends if end > start])
        if end is not None:
            program = "\n".join(lines[start:end]).rstrip() + "\n"
            trailing = "\n".join(lines[end:]).strip()
            return Extraction(program, trailing_text=trailing, has_backtick_inside="`" in program)
    return Extraction(None)


def _end_of_program(lines: list[str], start: int, ends: list[int]) -> int | None:
    """Return the last of `ends` up to which the lines from `start` on are a program."""
    for _ in range(_MAX_TRIES):
        if not ends:
            return None
        end = ends.pop()
        program = "\n".join(lines[start:end]) + "\n"
        if does_something(program):
            return end
        bad_line = first_bad_line(program)
        if bad_line is not None:
            # What goes on behind a line that does not parse does not parse either.
            ends = [end for end in ends if end < start + bad_line]
    return None
