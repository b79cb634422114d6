"""What a child tells its server: a letter, and perhaps a number."""

from __future__ import annotations

import socket

READY, PASSED, FAILED, WORN, UNSPLIT = b"r", b"p", b"f", b"w", b"u"
"""A child's messages: it waits for its first input; a run ended well, badly, or so that no other may follow.

A number may come behind the letter: the most memory used so far, in KiB. Ended well without a report means that
there is nothing to tell.

The last comes from test code only: it cannot do its work from another process than the program's.
"""

_MAX_PEAK_KIB = 1 << 40


def receive(channel: socket.socket) -> tuple[bytes, int]:
    """Return a child's message and peak memory in bytes; b"" at its end or for anything that is no message."""
    try:
        message = channel.recv(16)
    except OSError:
        return b"", 0
    letter, number = message[:1], message[1:]
    if letter not in (READY, PASSED, FAILED, WORN, UNSPLIT) or (number and not number.isdigit()):
        return b"", 0
    return letter, min(int(number or b"0"), _MAX_PEAK_KIB) << 10
