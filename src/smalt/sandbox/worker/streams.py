"""A program's standard streams: regular files in memory behind the descriptors 0 and 1.

Real files, not pipes or replaced Python objects: every way of reading (`sys.stdin.buffer`, `open(0)`,
`os.read(0, os.fstat(0).st_size)`) works, nobody has to drain anything, and the output of a killed program is
still there.
"""

from __future__ import annotations

import fcntl
import os
import sys
from dataclasses import dataclass
from io import BufferedReader, BufferedWriter, FileIO, TextIOWrapper
from typing import Any

Streams = tuple[TextIOWrapper, TextIOWrapper, TextIOWrapper]

FIRST_DESCRIPTOR = 200
"""The sandbox's own descriptors in a child start here, above those that programs would touch."""
_LAST_DESCRIPTOR = 1024
_interpreters_open = open
_STANDARD_PATHS = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}


@dataclass(frozen=True)
class ChildFiles:
    """Descriptors of the in-memory files one child works with."""

    input: int
    """The input of the run at hand, nothing of later ones; standard input for a script."""
    stdout: int
    report: int
    """How the run at hand ended, in the child's words."""


def open_child_files() -> ChildFiles:
    """Create the three empty files."""
    return ChildFiles(*(move_up(os.memfd_create(name)) for name in ("stdin", "stdout", "report")))


def move_up(descriptor: int) -> int:
    """Move a descriptor above those that dup2 clobbers and that count for the program's RLIMIT_NOFILE."""
    high: int = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR)
    os.close(descriptor)
    return high


def close_child_files(files: ChildFiles) -> None:
    """Close all three."""
    for descriptor in (files.input, files.stdout, files.report):
        os.close(descriptor)


def close_others(kept: set[int]) -> None:
    """Close every descriptor from 3 on that is not in `kept`."""
    start = 3
    for descriptor in sorted(kept):
        os.closerange(start, descriptor)
        start = descriptor + 1
    os.closerange(start, _LAST_DESCRIPTOR)


def make_streams() -> Streams:
    """Return new stdin, stdout and stderr objects over the descriptors 0, 1 and 2, as the interpreter makes them."""
    inp = TextIOWrapper(BufferedReader(FileIO(0, "r", closefd=False)), "utf-8", "surrogateescape")
    out = TextIOWrapper(BufferedWriter(FileIO(1, "w", closefd=False)), "utf-8", "surrogateescape")
    err = TextIOWrapper(BufferedWriter(FileIO(2, "w", closefd=False)), "utf-8", "backslashreplace", line_buffering=True)
    # The fast readers and writers of programming contests ask for it.
    inp.mode, out.mode, err.mode = "r", "w", "w"  # type: ignore[misc]
    return inp, out, err


def open_file(file: Any, *options: Any, **named: Any) -> Any:
    """The builtin `open` of programs: the paths of the standard streams work where there is no /dev or /proc."""
    if isinstance(file, str) and file in _STANDARD_PATHS:
        file = os.dup(_STANDARD_PATHS[file])
    return _interpreters_open(file, *options, **named)


def connect(files: ChildFiles) -> None:
    """Put input and output behind the descriptors 0 and 1.

    Again for every run: the program before may have closed them, as `with open(0)` does.
    """
    os.dup2(files.input, 0)
    os.dup2(files.stdout, 1)


def take_input(files: ChildFiles) -> bytes:
    """Return the input and empty its file: of a call or of test code, standard input is empty."""
    data = os.pread(files.input, os.fstat(files.input).st_size, 0)
    os.ftruncate(files.input, 0)
    return data


def install(streams: Streams) -> None:
    """Make `streams` the standard ones."""
    sys.stdin, sys.stdout, sys.stderr = streams
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = streams  # type: ignore[misc]


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of `data` at the start of the file."""
    position = 0
    view = memoryview(data)
    while position < len(view):
        position += os.pwrite(descriptor, view[position:], position)


def flush(streams: Streams) -> BaseException | None:
    """Flush the program's standard output, also one it put in place of ours; returns what went wrong."""
    failure: BaseException | None = None
    for stream in (sys.stdout, streams[1]):
        try:
            if not getattr(stream, "closed", False):
                stream.flush()
        except BaseException as error:
            failure = error
    return failure


def flush_standard() -> None:
    """Flush whatever is standard output now, so that nothing is lost when the process is killed."""
    if not getattr(sys.stdout, "closed", False):
        sys.stdout.flush()
