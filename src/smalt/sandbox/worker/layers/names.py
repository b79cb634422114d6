"""Names of the layers, as the server reports them and as people read them."""

from __future__ import annotations

from enum import StrEnum


class Layer(StrEnum):
    """One layer between a program and the machine."""

    LIMITS = "rlimits"
    NO_NEW_PRIVILEGES = "no_new_privs"
    SECCOMP = "seccomp"
    LANDLOCK = "landlock"
    NAMESPACES = "namespaces"
    """Own process ids, network, message queues and host name."""
    EMPTY_ROOT = "empty root"
    OWN_USER = "own user"
    CONTROL_GROUP = "control group"
