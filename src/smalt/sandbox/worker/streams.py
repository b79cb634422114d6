"""A program's standard streams: regular files in memory behind the descriptors 0 and 1.

Real files, not pipes or replaced Python objects: every way of reading (`sys.stdin.buffer`, `open(0)`,
`os.read(0, os.fstat(0).st_size)`) works, nobody has to drain anything, and the output of a killed program is
still there.
"""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import dataclass
from io import BufferedReader, BufferedWriter, FileIO, TextIOWrapper

Streams = tuple[TextIOWrapper, TextIOWrapper, TextIOWrapper]


@dataclass(frozen=True)
class ChildFiles:
    """Descriptors of the in-memory files one child works with, all above those a program would touch."""

    stdin: int
    stdout: int
    report: int
    """One message per finished input, read by the server when the child has ended."""


_FIRST_DESCRIPTOR = 200


def open_child_files() -> ChildFiles:
    """Create the three empty files."""
    descriptors = []
    for name in ("stdin", "stdout", "report"):
        low = os.memfd_create(name)
        descriptors.append(_move_up(low))
    return ChildFiles(*descriptors)


def _move_up(descriptor: int) -> int:
    # Low numbers would be clobbered by dup2 onto 0 and 1, and fall under the program's RLIMIT_NOFILE.
    import fcntl

    high: int = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST_DESCRIPTOR)
    os.close(descriptor)
    return high


def close_child_files(files: ChildFiles) -> None:
    """Close all three."""
    for descriptor in (files.stdin, files.stdout, files.report):
        os.close(descriptor)


def make_streams() -> Streams:
    """Return new stdin, stdout and stderr objects over the descriptors 0, 1 and 2."""
    return (
        TextIOWrapper(BufferedReader(FileIO(0, "r", closefd=False)), "utf-8", "surrogateescape"),
        TextIOWrapper(BufferedWriter(FileIO(1, "w", closefd=False)), "utf-8", "surrogateescape"),
        TextIOWrapper(BufferedWriter(FileIO(2, "w", closefd=False)), "utf-8", "backslashreplace", line_buffering=True),
    )


def connect(files: ChildFiles, stdin: str) -> None:
    """Put `stdin` and an empty output behind the descriptors 0 and 1.

    A text that does not end in a newline gets one, since programs that read line by line may count on it.
    """
    data = stdin.encode("utf-8", "surrogatepass")
    if data and not data.endswith(b"\n"):
        data += b"\n"
    os.ftruncate(files.stdin, 0)
    write_all(files.stdin, data)
    os.lseek(files.stdin, 0, os.SEEK_SET)
    # Again for every run: the program before may have closed them, as `with open(0)` does.
    os.dup2(files.stdin, 0)
    os.dup2(files.stdout, 1)


def install(streams: Streams) -> None:
    """Make `streams` the standard ones."""
    sys.stdin, sys.stdout, sys.stderr = streams
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = streams  # type: ignore[misc]


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of `data` at the end of the file."""
    position = os.lseek(descriptor, 0, os.SEEK_END)
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, position)
        view = view[written:]
        position += written


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


def take_output(files: ChildFiles, max_bytes: int) -> tuple[str, bool]:
    """Return the output so far and whether it passed `max_bytes`; empties the file."""
    size = os.fstat(files.stdout).st_size
    if not size:
        return "", False
    data = os.pread(files.stdout, max_bytes, 0)
    with contextlib.suppress(OSError):
        os.ftruncate(files.stdout, 0)
        os.lseek(files.stdout, 0, os.SEEK_SET)
    return data.decode("utf-8", "replace"), size > max_bytes
