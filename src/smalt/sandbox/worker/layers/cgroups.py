"""A control group per server: memory that per-process limits do not see, and the number of tasks.

Version 1 hierarchies, or version 2 where the controllers are enabled for children. The group is a child of
the one that the caller is in, so limits that somebody set for the caller go on to hold.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

_MOUNTS = "/proc/self/mountinfo"
_END_SECONDS = 5.0
_LIMIT_FILES = {
    1: {"memory": "memory.limit_in_bytes", "pids": "pids.max"},
    2: {"memory": "memory.max", "pids": "pids.max"},
}


class ControlGroup:
    """Folders of one group, one for each hierarchy that has a controller for it."""

    def __init__(self) -> None:
        """Hold no folder yet."""
        self._folders: list[Path] = []
        self.controllers: list[str] = []
        """What is limited: "memory", "pids"."""

    def create(self, name: str, limits: dict[str, int]) -> None:
        """Make the group with as many of `limits` (bytes, tasks) as this machine lets us set."""
        for controller, (version, parent) in _parents(limits).items():
            folder = parent / name
            with contextlib.suppress(OSError):
                folder.mkdir(exist_ok=True)
                if folder not in self._folders:
                    self._folders.append(folder)
                (folder / _LIMIT_FILES[version][controller]).write_text(str(limits[controller]))
                self.controllers.append(controller)

    def add(self, pid: int) -> None:
        """Move a process into the group; what it starts later is in the group too. Raises OSError."""
        for folder in self._folders:
            (folder / "cgroup.procs").write_text(str(pid))

    def remove(self) -> None:
        """Remove the group; its processes must have ended."""
        for folder in self._folders:
            with contextlib.suppress(OSError):
                folder.rmdir()


def remove_named(name: str) -> None:
    """Remove a group whose guardian was killed before it could; waits for its processes to end."""
    deadline = time.monotonic() + _END_SECONDS
    folders = [parent / name for _, parent in _parents(dict.fromkeys(_LIMIT_FILES[1], 0)).values()]
    while folders := [folder for folder in folders if folder.exists()]:
        for folder in folders:
            with contextlib.suppress(OSError):
                folder.rmdir()
        if time.monotonic() > deadline:
            return
        time.sleep(0.001)


def _parents(limits: dict[str, int]) -> dict[str, tuple[int, Path]]:
    """Return for each controller its version and the folder in which a group can be made."""
    own = _own_groups()
    found: dict[str, tuple[int, Path]] = {}
    for mount_root, mount_point, kind, options in _hierarchies():
        for controller in limits:
            version = 2 if kind == "cgroup2" else 1
            path = own.get("" if version == 2 else controller)
            if path is None or (version == 1 and controller not in options):
                continue
            inside = os.path.relpath(path, mount_root)
            if inside.startswith(".."):
                continue
            folder = Path(mount_point) / inside
            if version == 1 or controller in _enabled_for_children(folder):
                found.setdefault(controller, (version, folder))
    return {name: place for name, place in found.items() if os.access(place[1], os.W_OK)}


def _own_groups() -> dict[str, str]:
    """Return this process's group by controller; version 2 under the empty name."""
    groups: dict[str, str] = {}
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            groups |= dict.fromkeys(controllers.split(","), path)
    return groups


def _hierarchies() -> list[tuple[str, str, str, list[str]]]:
    """Return root, mount point, kind and options of every mounted hierarchy."""
    found = []
    with contextlib.suppress(OSError):
        for line in Path(_MOUNTS).read_text().splitlines():
            head, _, tail = line.partition(" - ")
            kind, _, options = tail.split(" ", 2)
            if kind in ("cgroup", "cgroup2"):
                fields = head.split(" ")
                found.append((fields[3], fields[4], kind, options.split(",")))
    return found


def _enabled_for_children(folder: Path) -> list[str]:
    try:
        return (folder / "cgroup.subtree_control").read_text().split()
    except OSError:
        return []
