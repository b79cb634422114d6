"""Linux calls on processes that the standard library lacks: raw fork, death signals, another process's CPU clock."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from smalt.sandbox.worker.layers.kernel import prepared_call, process_control

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_CLONE_FILES, _CLONE_PARENT = 0x400, 0x8000
_SWEEP_SECONDS = 10.0


def forking(shares_descriptors: bool, is_sibling: bool) -> Callable[[], int]:
    """Return a fork: the bare system call, as the interpreter's at-fork hooks take longer than the fork itself.

    The hooks repair locks held by other threads and reseed `random`; who forks here has one thread and wants
    every child to start from the same state. A sibling's parent is this process's own. The function returns 0 in
    the new process; it raises OSError when none can be started.
    """
    flags = signal.SIGCHLD | (_CLONE_FILES if shares_descriptors else 0) | (_CLONE_PARENT if is_sibling else 0)
    return prepared_call("clone", flags, 0, 0, 0, 0)


def adopt_orphans() -> None:
    """Make this process the parent of all its descendants whose own parents die."""
    process_control(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Be killed when the parent ends. The parent must have one thread only: that is what the kernel means."""
    process_control(_PR_SET_PDEATHSIG, signal.SIGKILL)


def cpu_seconds(pid: int) -> float:
    """CPU time that all threads of a live or unreaped process have used."""
    # The kernel's clock number of a process: the complement of its id, then "process-wide, scheduler clock".
    return time.clock_gettime((~pid << 3) | 2)


def has_ended(pid: int) -> bool:
    """Whether a child has ended; it stays unreaped."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def kill_and_reap(pid: int) -> tuple[int, int]:
    """End a child; returns its wait status and the most memory it had in use, in bytes."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    return status, usage.ru_maxrss << 10


def kill_namespace() -> None:
    """Kill and reap every other process of the namespace, of which this must be process 1.

    Raises TimeoutError when they multiply faster than they die.
    """
    _kill_all(lambda: [-1])


def kill_descendants(spared: int) -> None:
    """Kill and reap every child of this process but `spared`.

    As descendants die, their children come to this process (`adopt_orphans`), so level after level is met,
    daemons in sessions of their own included. Raises TimeoutError as `kill_namespace`.
    """
    _kill_all(lambda: [pid for pid in _own_children() if pid != spared])


def _kill_all(victims: Callable[[], list[int]]) -> None:
    deadline = time.monotonic() + _SWEEP_SECONDS
    while _reap_ended() and (found := victims()):
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise TimeoutError("descendants of the program could not be killed")
        time.sleep(0.0005)


def _reap_ended() -> bool:
    """Reap all children that have ended; returns whether there are others."""
    try:
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
    except ChildProcessError:
        return False
    return True


def _own_children() -> list[int]:
    """Return the children of this process, which must have one thread; much quicker than a look at all processes."""
    own = os.getpid()
    with contextlib.suppress(OSError):  # kernels without CONFIG_PROC_CHILDREN
        return list(map(int, Path(f"/proc/self/task/{own}/children").read_text().split()))
    return children(own)


def children(pid: int) -> list[int]:
    """Return the ids of the process's children, zombies included."""
    return [child for child, parent in _parents() if parent == pid]


def _parents() -> list[tuple[int, int]]:
    """Return every process with its parent; empty where /proc cannot be read."""
    found = []
    with contextlib.suppress(OSError):
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError, ValueError, IndexError):
                # The command name, in parentheses, may itself hold spaces and parentheses.
                fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
                found.append((int(entry.name), int(fields[1])))
    return found
