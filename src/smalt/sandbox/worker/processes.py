"""Linux calls on processes that the standard library lacks: raw fork, prctl, another process's CPU clock."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
# PyDLL keeps the interpreter lock during the call, which a forked child must hold.
_libc = ctypes.PyDLL(None, use_errno=True)
_SWEEP_SECONDS = 10.0


def fork() -> int:
    """Fork without the interpreter's at-fork hooks, which take longer than the fork itself.

    The hooks repair locks held by other threads and reseed `random`; the server has one thread and wants
    every child to start from the same state. Raises OSError when no process can be started.
    """
    pid: int = _libc.fork()
    if pid < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return pid


def adopt_orphans() -> None:
    """Make this process the parent of all its descendants whose own parents die."""
    if _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def die_with_parent() -> None:
    """Be killed when the parent ends. The parent must have one thread only: that is what the kernel means."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def cpu_seconds(pid: int) -> float:
    """CPU time that all threads of a live or unreaped process have used."""
    # The kernel's clock number of a process: the complement of its id, then "process-wide, scheduler clock".
    return time.clock_gettime((~pid << 3) | 2)


def kill_group(pid: int) -> None:
    """Kill the process and its group; it must not have been reaped, so that the id is still its own."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def kill_descendants() -> None:
    """Kill and reap every child of this process until none is left.

    As descendants die, their children come to this process (`adopt_orphans`), so level after level is met,
    daemons in sessions of their own included. Raises TimeoutError when they multiply faster than they die.
    """
    deadline = time.monotonic() + _SWEEP_SECONDS
    while True:
        try:
            reaped, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if reaped:
            continue
        for pid in children(os.getpid()):
            kill_group(pid)
        if time.monotonic() > deadline:
            raise TimeoutError("descendants of the program could not be killed")
        time.sleep(0.0005)


def children(pid: int) -> list[int]:
    """Return the ids of the process's children, zombies included."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The command name, in parentheses, may itself hold spaces and parentheses.
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            if int(fields[1]) == pid:
                found.append(int(entry.name))
    return found
