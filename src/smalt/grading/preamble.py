"""Putting a problem's preamble before a program."""

from __future__ import annotations

import re

_FUTURE = re.compile(r"^from[ \t]+__future__[ \t]+import[ \t]*(\([^)]*\)[^\n]*|[^\n]*)\n?", re.MULTILINE)


def with_preamble(preamble: str, program: str) -> str:
    """The program behind its problem's preamble; `from __future__` imports stay first, as Python wants them."""
    if not preamble.strip():
        return program
    future = "".join(match[0].rstrip("\n") + "\n" for match in _FUTURE.finditer(program))
    rest = _FUTURE.sub("", program) if future else program
    return future + preamble.rstrip("\n") + "\n" + rest
