"""Giving up rights: capabilities, the way back to them, the user's identity."""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
from collections.abc import Iterable

from smalt.sandbox.worker.layers.kernel import process_control, system_call

_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_CAPABILITY_VERSION = 0x20080522
_FIRST_PRIVATE_ID = 200_000


def forbid_new_privileges() -> None:
    """Set-user-id programs and the like give nothing any more, to this process and its descendants."""
    process_control(_PR_SET_NO_NEW_PRIVS, 1)


def drop_capabilities() -> None:
    """Give up every capability for good. Raises OSError."""
    for capability in range(64):
        with contextlib.suppress(OSError):  # no such capability, or no right to drop it from the bound
            process_control(_PR_CAPBSET_DROP, capability)
    with contextlib.suppress(OSError):  # kernels before 4.3
        process_control(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    head = struct.pack("Ii", _CAPABILITY_VERSION, 0)
    system_call("capset", ctypes.create_string_buffer(head, len(head)), ctypes.create_string_buffer(24))


def private_id(server: int) -> int:
    """Return the user and group id of the server with this process id, which no other live server has."""
    return _FIRST_PRIVATE_ID + server


def become(user: int) -> None:
    """Become this user and group for good; capabilities go with root. Raises OSError."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def can_read_as(user: int, paths: Iterable[str]) -> bool:
    """Whether this user could read all `paths`; asks a child that becomes the user."""
    child = os.fork()
    if child == 0:
        status = 1
        with contextlib.suppress(OSError):
            become(user)
            status = 0 if all(os.access(path, os.R_OK) for path in paths) else 1
        os._exit(status)
    return os.waitpid(child, 0)[1] == 0
