"""Namespaces: own process ids, network, message queues and mounts.

Two steps, because a process never changes its own process id: the guardian opens the namespaces that its next
child will be born into, and the child then opens the rest for itself.
"""

from __future__ import annotations

import os
from pathlib import Path

from smalt.sandbox.worker.layers.kernel import check, libc

_MOUNT, _UTS, _IPC, _USER, _PID, _NETWORK = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
_MAPPED_ID = 65534


def open_for_child(needs_user_namespace: bool) -> None:
    """Have the next child start as process 1 of its own process id namespace. Raises OSError.

    Without root that takes a user namespace, in which this user is "nobody" and nobody else exists.
    """
    user, group = os.geteuid(), os.getegid()
    _unshare(_PID | _USER if needs_user_namespace else _PID)
    if needs_user_namespace:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{_MAPPED_ID} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{_MAPPED_ID} {group} 1")


def open_own() -> None:
    """Give this process its own mounts, host name, message queues and an empty network. Raises OSError."""
    _unshare(_MOUNT | _UTS | _IPC | _NETWORK)


def _unshare(flags: int) -> None:
    check(libc.unshare(flags), "unshare")
