"""Landlock: which files a process may reach, no TCP, no signals to processes outside, from inside itself.

Each kernel knows a version of it (`abi_version`); what a version lacks is left out. Version 1 (Linux 5.13)
has files, 4 (6.7) TCP, 6 (6.12) signals and abstract sockets.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Callable, Iterable

from smalt.sandbox.worker.layers.kernel import prepared_call, system_call

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_FOLDER = 1, 2, 4, 8
_TRUNCATE = 1 << 14
_READ = _EXECUTE | _READ_FILE | _READ_FOLDER
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1
_BIND_AND_CONNECT_TCP = 3
_ABSTRACT_SOCKETS_AND_SIGNALS = 3


def abi_version() -> int:
    """Version of the kernel's interface; 0 when there is none."""
    try:
        return system_call("landlock_create_ruleset", None, 0, _CREATE_RULESET_VERSION)
    except OSError:
        return 0


def _all_file_rights(version: int) -> int:
    rights = (1 << 13) - 1
    for since, bit in ((2, 13), (3, 14), (5, 15)):
        if version >= since:
            rights |= 1 << bit
    return rights


def make_ruleset(
    readable: Iterable[str], writable: Iterable[str], devices: Iterable[str], listed: Iterable[str] = ()
) -> int:
    """Return the descriptor of a ruleset: everything else is refused. Raises OSError.

    `readable` and `writable` include what lies beneath; `devices` can be read and written; the folders `listed`
    and those beneath can be listed. Paths that do not exist are skipped.
    """
    version = abi_version()
    rights = _all_file_rights(version)
    network = _BIND_AND_CONNECT_TCP if version >= 4 else 0
    scopes = _ABSTRACT_SOCKETS_AND_SIGNALS if version >= 6 else 0
    size = 8 if version < 4 else 16 if version < 6 else 24
    attributes = ctypes.create_string_buffer(struct.pack("QQQ", rights, network, scopes)[:size], size)
    ruleset = system_call("landlock_create_ruleset", attributes, size, 0)
    kinds = ((readable, _READ), (writable, rights), (devices, _READ_FILE | _WRITE_FILE), (listed, _READ_FOLDER))
    for paths, granted in kinds:
        for path in paths:
            _add_path(ruleset, path, granted & rights)
    return ruleset


def _add_path(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            rights &= _FILE_RIGHTS
        rule = struct.pack("=Qi", rights, descriptor)
        system_call("landlock_add_rule", ruleset, _RULE_PATH_BENEATH, ctypes.create_string_buffer(rule, len(rule)), 0)
    finally:
        os.close(descriptor)


def restriction(ruleset: int) -> Callable[[], int]:
    """Return what puts a process and all it will start under `ruleset`, on top of any earlier one.

    It needs no_new_privs and raises OSError.
    """
    return prepared_call("landlock_restrict_self", ruleset, 0)
