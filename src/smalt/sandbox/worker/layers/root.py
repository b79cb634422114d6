"""An empty root folder that holds the interpreter, its libraries and little else, all read-only."""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

from smalt.sandbox.worker.layers.kernel import check, libc, system_call

SCRATCH = "/smalt-scratch"
"""The one folder that can be written, of limited size, in memory."""
SCRATCH_BYTES = 32 << 20
_SCRATCH_FILES = 1024
DEVICES = ("/dev/null", "/dev/urandom")
_STANDARD_STREAMS = ("dev/stdin", "dev/stdout", "dev/stderr")

_READ_ONLY, _NO_SUID, _NO_DEVICES, _NO_EXECUTE = 1, 2, 4, 8
_REMOUNT, _NO_ACCESS_TIMES, _NO_FOLDER_TIMES = 32, 1024, 2048
_BIND, _RECURSIVE, _PRIVATE, _RELATIVE_TIMES = 4096, 16384, 1 << 18, 1 << 21
_STATVFS_RELATIVE_TIMES = 4096
_DETACH = 2

_SYSTEM_PATHS = (
    *("/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/local/lib", "/usr/share/zoneinfo"),
    *("/etc/ld.so.cache", "/etc/localtime"),
)


def needed_paths(module_paths: Iterable[str]) -> list[str]:
    """Return what a program must be able to read: the interpreter's and the system's libraries and modules."""
    names = ("stdlib", "platstdlib")
    interpreter = [sysconfig.get_path(name, vars={"base": sys.base_prefix}) for name in names]
    wanted = [*_SYSTEM_PATHS, f"{sys.base_prefix}/lib", *interpreter, *module_paths]
    # Symbolic links are made again as links, so what they point to is needed too.
    existing = [path for path in wanted if Path(path).exists()]
    return _outermost({*existing, *map(os.path.realpath, existing)})


def _outermost(paths: Iterable[str]) -> list[str]:
    """Return the paths that lie in none of the others."""
    kept: list[str] = []
    for path in sorted(paths, key=lambda path: (len(path), path)):
        if not any(path.startswith(outer + "/") for outer in kept):
            kept.append(path)
    return kept


def around(readable: Iterable[str], hidden: Path) -> tuple[list[str], list[str]]:
    """Return what makes up the paths in `readable` without the folder `hidden`, and the folders taken apart for it.

    Symbolic links are left out: what they point to is in `readable` itself or not to be read.
    """
    whole, apart = [], []
    waiting = list(map(os.path.realpath, readable))
    while waiting:
        path = waiting.pop()
        if not hidden.is_relative_to(path):
            whole.append(path)
        elif hidden != Path(path):
            apart.append(path)
            waiting += [entry.path for entry in os.scandir(path) if not entry.is_symlink()]
    return sorted(set(whole)), sorted(set(apart))


def enter(mount_point: Path, readable: Iterable[str], hidden: Path, owner: int) -> None:
    """Make a new root at the empty folder `mount_point` and move into it; the host's files are gone after.

    Needs a mount namespace of its own. Of the paths in `readable` the folder `hidden` is empty. The scratch folder
    belongs to user `owner`. Raises OSError.
    """
    _mount(None, Path("/"), None, _RECURSIVE | _PRIVATE)
    # Opened now, because the new root may cover them.
    sources = [(path, os.open(path, os.O_PATH | os.O_NOFOLLOW)) for path in (*readable, *DEVICES)]
    _mount("tmpfs", mount_point, "tmpfs", _NO_SUID | _NO_DEVICES, "size=4m,mode=755")
    for path, descriptor in sources:
        _put(path, descriptor, mount_point / path.lstrip("/"))
        os.close(descriptor)
    covered = mount_point / str(hidden).lstrip("/")
    if covered.is_dir():
        _mount("tmpfs", covered, "tmpfs", _READ_ONLY | _NO_SUID | _NO_DEVICES | _NO_EXECUTE, "size=4k,mode=755")
    # For those who look whether they exist before they open them (see `streams`); empty.
    for path in _STANDARD_STREAMS:
        (mount_point / path).touch()
    _make_scratch(mount_point, owner)
    _change_root(mount_point)


def _put(path: str, descriptor: int, target: Path) -> None:
    mode = os.fstat(descriptor).st_mode
    target.parent.mkdir(parents=True, exist_ok=True)
    if stat.S_ISLNK(mode):
        target.symlink_to(os.readlink("", dir_fd=descriptor))
        return
    if stat.S_ISDIR(mode):
        target.mkdir(exist_ok=True)
    else:
        target.touch()
    _mount(f"/proc/self/fd/{descriptor}", target, None, _BIND | _RECURSIVE)
    _mount(None, target, None, _BIND | _REMOUNT | _remount_flags(target, path in DEVICES))


def _remount_flags(target: Path, is_device: bool) -> int:
    """Read-only on top of what is set: in a user namespace flags of the original mount cannot be taken away."""
    present = os.statvfs(target).f_flag
    flags = _READ_ONLY | _NO_SUID | (present & (_NO_EXECUTE | _NO_ACCESS_TIMES | _NO_FOLDER_TIMES))
    if present & _STATVFS_RELATIVE_TIMES:
        flags |= _RELATIVE_TIMES
    return flags | (present & _NO_DEVICES if is_device else _NO_DEVICES)


def _make_scratch(root: Path, owner: int) -> None:
    scratch = root / SCRATCH.lstrip("/")
    scratch.mkdir()
    options = f"size={SCRATCH_BYTES},nr_inodes={_SCRATCH_FILES},mode=700"
    _mount("tmpfs", scratch, "tmpfs", _NO_SUID | _NO_DEVICES | _NO_EXECUTE, options)
    os.chown(scratch, owner, owner)
    # Programs look there for a place for temporary files. It exists when modules lie in it.
    with contextlib.suppress(FileExistsError):
        (root / "tmp").symlink_to(SCRATCH)


def _change_root(root: Path) -> None:
    old = root / "old-root"
    old.mkdir()
    system_call("pivot_root", _text(str(root)), _text(str(old)))
    os.chdir("/")
    check(libc.umount2(b"/old-root", _DETACH), "umount2 of the old root")
    Path("/old-root").rmdir()
    _mount(None, Path("/"), None, _REMOUNT | _READ_ONLY | _NO_SUID | _NO_DEVICES)


def _mount(source: str | None, target: Path, kind: str | None, flags: int, options: str | None = None) -> None:
    texts = [text.encode() if text is not None else None for text in (source, str(target), kind, options)]
    result = libc.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3])
    check(result, f"mount {target}")


def _text(value: str) -> ctypes.Array[ctypes.c_char]:
    return ctypes.create_string_buffer(value.encode())
