"""Length-prefixed messages over the descriptor of a stream socket."""

from __future__ import annotations

import os
import struct

_LENGTH = struct.Struct("!I")


class ProtocolError(Exception):
    """The other side broke off in the middle of a message or announced one beyond the bound."""


def send_frame(connection: int, data: bytes) -> None:
    """Send one message; raises OSError when the other side is gone."""
    rest = memoryview(_LENGTH.pack(len(data)) + data)
    while rest:
        rest = rest[os.write(connection, rest) :]


def receive_frame(connection: int, max_bytes: int) -> bytes | None:
    """Receive one message of at most `max_bytes`; None when the other side closed between messages."""
    head = _receive_exactly(connection, _LENGTH.size)
    if not head:
        return None
    (size,) = _LENGTH.unpack(head)
    if size > max_bytes:
        raise ProtocolError(f"a message of {size} bytes was announced, the bound is {max_bytes}")
    data = _receive_exactly(connection, size)
    if len(data) != size:
        raise ProtocolError("the connection closed in the middle of a message")
    return data


def _receive_exactly(connection: int, size: int) -> bytes:
    """Receive `size` bytes; b"" when the other side closed before the first of them."""
    parts = bytearray()
    while len(parts) < size:
        part = os.read(connection, min(size - len(parts), 1 << 20))
        if not part:
            if parts:
                raise ProtocolError("the connection closed in the middle of a message")
            return b""
        parts += part
    return bytes(parts)
