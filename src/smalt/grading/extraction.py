"""Find the program in a model's reply.

The rules, in order:

1. Thinking is not part of the answer: `<think>...</think>` goes; an unclosed `<think>` leaves no program.
2. Fenced blocks are read leniently, because small models write them so: any indentation, ``` or ~~~, an
   opening fence at the end of a sentence, the language on the line after the fence, a closing fence glued to
   the last line, no closing fence (a truncated reply). A fence in a string of the program does not end it.
3. Blocks in another language are no programs. Blocks without a language count when they read as Python.
4. With an entry point the last block that defines it is the program.
5. Otherwise it is the last block that is no mere demo. Graders that take the very last block lose the answers
   that end with a sample call or a summary; those that take the first lose the answers that correct
   themselves. A demo is a block that uses names an earlier block defines without defining them, so it cannot
   stand alone. Blocks that parse come before those that do not, and blocks marked as Python before those
   without a language.
6. Without such a block the reply, up to a stray fence, is the program if it parses and does something.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from smalt.grading.fences import Block, find_blocks
from smalt.grading.syntax import parse_module
from smalt.grading.thinking import CLOSING, OPENING, split_thinking

_LOOKS_LIKE_PYTHON = re.compile(
    r"^\s*(def \w+\s*\(|class \w+|import \w|from \w[\w.]* import |print\s*\(|\w+(, *\w+)* = )", re.MULTILINE
)
_DOING = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign),
    *(ast.AugAssign, ast.AnnAssign, ast.For, ast.While, ast.If, ast.With, ast.Try, ast.Call),
)


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
    """Return the program in `reply`; `entry_point` is the function it should define, if known."""
    text = _without_thinking(reply.replace("\r\n", "\n").replace("\r", "\n"))
    if text is None:
        return Extraction(None)
    found = find_blocks(text)
    blocks = [block for block in found if _is_python(block)]
    block = _choose(blocks, entry_point)
    if block is None:
        return _bare_program(text)
    return Extraction(
        program=block.code,
        blocks=len(blocks),
        is_exactly_one_block=len(found) == 1 and block.is_closed,
        trailing_text=text[block.end :].strip(),
        has_backtick_inside="`" in block.code,
    )


def _bare_program(text: str) -> Extraction:
    """Return the program of a reply without a block of Python."""
    # A reply to a prompt that ends in an opening fence has the closing one only.
    program, _, trailing = text.partition("\n```")
    program = program.strip("\n") + "\n"
    if not _does_something(program):
        return Extraction(None)
    return Extraction(program, trailing_text=trailing.strip("` \n"), has_backtick_inside="`" in program)


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
        return block.language in ("python", "py", "python3")
    return _does_something(block.code) or (
        parse_module(block.code) is None and _LOOKS_LIKE_PYTHON.search(block.code) is not None
    )


def _choose(blocks: list[Block], entry_point: str | None) -> Block | None:
    if entry_point is not None:
        name = re.escape(entry_point)
        # By text, so that a block with a syntax error is still the one that meant to define it.
        pattern = re.compile(rf"^\s*(async\s+def|def|class)\s+{name}\b|^{name}\s*=[^=]", re.MULTILINE)
        defining = [block for block in blocks if pattern.search(block.code)]
        if defining:
            return defining[-1]
    if not blocks:
        return None
    own = [block for index, block in enumerate(blocks) if not _is_demo(block, blocks[:index])]
    return max(enumerate(own), key=lambda item: (*_rank(item[1]), item[0]))[1]


def _rank(block: Block) -> tuple[bool, bool]:
    return _does_something(block.code), block.language is not None


def _is_demo(block: Block, earlier: list[Block]) -> bool:
    """Whether the block needs a name that only an earlier block defines."""
    tree = parse_module(block.code)
    if tree is None:
        return False
    used, defined = _names(tree)
    for other in earlier:
        other_tree = parse_module(other.code)
        if other_tree is not None and (used - defined) & _names(other_tree)[1]:
            return True
    return False


def _names(tree: ast.Module) -> tuple[set[str], set[str]]:
    """Return the names a module reads and those it binds anywhere."""
    used: set[str] = set()
    bound: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).partition(".")[0])
    return used, bound


def _does_something(code: str) -> bool:
    """Whether the text is Python beyond bare names and constants, as which "42" or "YES" would pass."""
    tree = parse_module(code)
    return tree is not None and any(isinstance(node, _DOING) for node in ast.walk(tree))
