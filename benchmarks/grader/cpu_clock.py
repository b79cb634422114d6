"""CPU time of a whole process tree, its dead and its orphans included.

A control group of its own around every design is right to the nanosecond and forgets nobody: cgroup v1 `cpuacct`, or
cgroup v2, whose `cpu.stat` needs no controller. Where neither is writable, the tree is walked in /proc: right for
long sums only, as that counts ticks of 10 ms, and processes that were reaped outside the tree are missing.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

_TICKS = os.sysconf("SC_CLK_TCK")
_NUMBERS = itertools.count()


class CpuClock(Protocol):
    """A clock that starts with a process and follows all it starts."""

    source: str
    """Where the time comes from, in words."""

    def seconds(self) -> float:
        """CPU seconds that the tree has used, user and system."""
        ...

    def processes(self) -> list[int]:
        """Ids of the living processes of the tree."""
        ...

    def close(self) -> None:
        """Take the clock down; the tree must have ended."""
        ...


def clock_of(pid: int) -> CpuClock:
    """Return the best clock for the tree below `pid`, which must not have started anything yet."""
    for parent, file_name in _group_folders():
        with contextlib.suppress(OSError):
            return GroupClock(parent, file_name, pid)
    return TreeClock(pid)


class GroupClock:
    """Time of a control group."""

    def __init__(self, parent: Path, file_name: str, pid: int) -> None:
        """Move `pid` into a new group below `parent`; raises OSError where that is not allowed."""
        self._folder = parent / f"smalt-benchmark-{os.getpid()}-{next(_NUMBERS)}"
        self._folder.mkdir()
        try:
            self._file = (self._folder / file_name).open("rb", buffering=0)
            (self._folder / "cgroup.procs").write_text(str(pid))
        except OSError:
            self._folder.rmdir()
            raise
        self.source = "cgroup v1 cpuacct.usage" if file_name == "cpuacct.usage" else "cgroup v2 cpu.stat"

    def seconds(self) -> float:
        """CPU seconds of everything that was ever in the group."""
        self._file.seek(0)
        words = self._file.read(200).split()
        return int(words[0]) / 1e9 if len(words) == 1 else int(words[1]) / 1e6

    def processes(self) -> list[int]:
        """Ids of the processes in the group, orphans included."""
        return [int(pid) for pid in (self._folder / "cgroup.procs").read_text().split()]

    def close(self) -> None:
        """Remove the group; dying processes get a moment."""
        self._file.close()
        for _ in range(50):
            try:
                self._folder.rmdir()
                return
            except OSError:
                time.sleep(0.02)


class TreeClock:
    """Time of a process and its descendants, by /proc."""

    source = "/proc, in ticks of 10 ms (no writable control group)"

    def __init__(self, pid: int) -> None:
        """Remember the root of the tree."""
        self._pid = pid

    def seconds(self) -> float:
        """CPU seconds of the living and of those they have reaped."""
        return sum(_ticks(pid) for pid in self.processes()) / _TICKS

    def processes(self) -> list[int]:
        """Ids of the root and its descendants; orphans are out of sight."""
        return [self._pid, *descendants(self._pid)]

    def close(self) -> None:
        """Nothing to take down."""


def descendants(root: int) -> list[int]:
    """Return the ids of all living processes below `root`."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                parents[int(entry.name)] = int(_fields(int(entry.name))[1])
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found[1:]


def _fields(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the state on; the command's name before it may hold anything."""
    return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()


def _ticks(pid: int) -> int:
    with contextlib.suppress(OSError):
        return sum(map(int, _fields(pid)[11:15]))
    return 0


def _group_folders() -> Iterator[tuple[Path, str]]:
    """The folder of this process in each hierarchy that counts CPU time, with the file that holds the count."""
    groups = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        root, mount_point = before.split()[3:5]
        kind, _, options = after.split(maxsplit=2)
        for _, controllers, path in groups:
            names = controllers.split(",")
            if os.path.relpath(path, root).startswith(".."):
                continue
            if kind == "cgroup" and "cpuacct" in names and "cpuacct" in options.split(","):
                yield _below(mount_point, root, path), "cpuacct.usage"
            if kind == "cgroup2" and names == [""]:
                yield _below(mount_point, root, path), "cpu.stat"


def _below(mount_point: str, root: str, path: str) -> Path:
    # A container mounts its own part of the hierarchy, whose root is not the hierarchy's.
    return Path(mount_point) / os.path.relpath(path, root)
