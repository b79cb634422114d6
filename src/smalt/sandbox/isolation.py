"""How well programs are kept in: the layers that hold on this machine, and levels that can be required.

The server finds out by trying, when it starts; nothing is assumed from the kernel's version.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from smalt.sandbox.worker.layers.names import Layer

__all__ = ["Isolation", "IsolationSettings", "IsolationTooWeakError", "Layer", "Level"]


class Level(StrEnum):
    """What can be required of the layers. Each level includes the one before."""

    NONE = "none"
    """Nothing beyond limits: for programs that are trusted."""
    MINIMUM = "minimum"
    """No new processes, no sockets, no host files: seccomp, and Landlock or an empty root."""
    STRONG = "strong"
    """Also blind to the machine: own processes, network and user, and a root with nothing in it."""
    FULL = "full"
    """Also Landlock, a second lock on files and signals."""


_ALWAYS = (Layer.LIMITS, Layer.NO_NEW_PRIVILEGES, Layer.SECCOMP)
_BLIND = (Layer.NAMESPACES, Layer.EMPTY_ROOT, Layer.OWN_USER)

MEANINGS: dict[Layer, str] = {
    Layer.LIMITS: "memory, CPU time, file sizes and open files of a program are bounded",
    Layer.NO_NEW_PRIVILEGES: "set-user-id programs give no rights",
    Layer.SECCOMP: "programs start no processes, open no sockets, signal and trace nobody",
    Layer.LANDLOCK: "files out of reach for programs, from inside the process; newer versions: TCP and signals too",
    Layer.NAMESPACES: "programs see no processes, network or message queues but their own",
    Layer.EMPTY_ROOT: "programs see no files but the interpreter and libraries; they have a small working folder",
    Layer.OWN_USER: "programs run as a user who owns nothing and whose threads are counted",
    Layer.CONTROL_GROUP: "memory of a worker as a whole is bounded, and its number of threads",
}
"""What a layer gives."""

LOSSES: dict[Layer, str] = {
    Layer.LIMITS: "a program can use up the machine",
    Layer.NO_NEW_PRIVILEGES: "seccomp and Landlock need it",
    Layer.SECCOMP: "a program can start processes, use the network and signal others: run no hostile code",
    Layer.LANDLOCK: "the empty root alone keeps files out of reach; without it too, host files can be read",
    Layer.NAMESPACES: "seccomp alone keeps programs off processes and network",
    Layer.EMPTY_ROOT: "Landlock alone keeps files out of reach; programs cannot write files",
    Layer.OWN_USER: "programs run as you; the number of their threads is bounded loosely, for root not at all",
    Layer.CONTROL_GROUP: "memory held in pipes and files of many programs at once is bounded per program only",
}
"""What it means when a layer is missing."""

REMEDIES: dict[Layer, str] = {
    Layer.SECCOMP: "a kernel with CONFIG_SECCOMP_FILTER on x86_64 or aarch64",
    Layer.LANDLOCK: "Linux 5.13 or later with landlock among the modules of the boot option lsm=",
    Layer.NAMESPACES: "root, or unprivileged user namespaces: sysctl user.max_user_namespaces > 0, on Ubuntu "
    "kernel.apparmor_restrict_unprivileged_userns=0; in Docker --cap-add SYS_ADMIN or a seccomp profile "
    "that allows unshare and mount",
    Layer.EMPTY_ROOT: "the same as for namespaces",
    Layer.OWN_USER: "root, or the same as for namespaces; for root in a container also an interpreter that "
    "others may read",
    Layer.CONTROL_GROUP: "root, or a delegated cgroup with the memory and pids controllers enabled for children",
}
"""How to get a layer."""


class IsolationTooWeakError(OSError):
    """The machine does not allow the level that was required."""


@dataclass(frozen=True)
class IsolationSettings:
    """Which layers to leave out, for tests and for measuring what a layer costs."""

    without: frozenset[Layer] = frozenset()


@dataclass(frozen=True)
class Isolation:
    """The layers that hold, with details, and those that do not, with reasons."""

    present: dict[Layer, str] = field(default_factory=dict)
    missing: dict[Layer, str] = field(default_factory=dict)

    @classmethod
    def from_report(cls, report: dict[str, Any]) -> Isolation:
        """Read what a server says of itself."""
        present, missing = ({Layer(name): str(text) for name, text in report[key].items()} for key in _KEYS)
        return cls(present, missing)

    @property
    def level(self) -> Level:
        """The highest level that is reached."""
        return [level for level in Level if not self.lacking(level)][-1]

    def lacking(self, level: Level) -> list[Layer]:
        """Return the layers that `level` needs and that are missing here."""
        if level is Level.NONE:
            return []
        needed = [*_ALWAYS]
        if level is Level.MINIMUM and Layer.EMPTY_ROOT not in self.present:
            needed.append(Layer.LANDLOCK)
        if level in (Level.STRONG, Level.FULL):
            needed += _BLIND
        if level is Level.FULL:
            needed.append(Layer.LANDLOCK)
        return [layer for layer in needed if layer not in self.present]

    def check(self, required: Level) -> None:
        """Raise IsolationTooWeakError, which says what is missing and how to get it, below `required`."""
        lacking = self.lacking(required)
        if lacking:
            raise IsolationTooWeakError("\n".join(_refusal(self, required, lacking)))


_KEYS = ("present", "missing")


def _refusal(isolation: Isolation, required: Level, lacking: list[Layer]) -> list[str]:
    lines = [f"the sandbox reaches level '{isolation.level}' on this machine, but '{required}' is required; missing:"]
    for layer in lacking:
        lines.append(f"  {layer}: {isolation.missing.get(layer, 'not available')}")
        if layer in REMEDIES:
            lines.append(f"    to get it: {REMEDIES[layer]}")
    return lines
