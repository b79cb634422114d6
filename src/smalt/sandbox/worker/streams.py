"""A program's standard streams: regular files in memory behind the descriptors 0 and 1.

Real files, not pipes or replaced Python objects: every way of reading (`sys.stdin.buffer`, `open(0)`,
`os.read(0, os.fstat(0).st_size)`) works, nobody has to drain anything, and the output of a killed program is
still there.
"""

from __future__ import annotations

import builtins
import io
import os
import sys
from io import BufferedReader, BufferedWriter, FileIO, TextIOWrapper
from typing import Any

Streams = tuple[TextIOWrapper, TextIOWrapper, TextIOWrapper]

INPUT, STDOUT, REPORT, CHANNEL, CONNECTION = range(200, 205)
"""The sandbox's own descriptors in a child, above those that programs would touch and that count for RLIMIT_NOFILE.

Files in memory: the input of the run at hand, nothing of later ones, standard input for a script; its standard output;
how it ended, in the child's words. Sockets: to the server; of test code and its program, to each other.
"""
FIRST_DESCRIPTOR, LAST_DESCRIPTOR = 3, 1024
"""Those that a child may have inherited, but for the standard streams."""
_FILES = (INPUT, STDOUT, REPORT)
_interpreters_open, _systems_open = open, os.open
_STANDARD_PATHS = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}


def open_child_files() -> None:
    """Create the three files, empty."""
    for descriptor in _FILES:
        opened = os.memfd_create("file")
        os.dup2(opened, descriptor)
        os.close(opened)


def close_child_files() -> None:
    """Close all three."""
    for descriptor in _FILES:
        os.close(descriptor)


def close_others(first: int, last: int) -> None:
    """Close every descriptor but the standard streams and those from `first` to `last`."""
    os.closerange(FIRST_DESCRIPTOR, first)
    os.closerange(last + 1, LAST_DESCRIPTOR + 1)


def make_streams() -> Streams:
    """Return new stdin, stdout and stderr objects over the descriptors 0, 1 and 2, as the interpreter makes them."""
    inp = TextIOWrapper(BufferedReader(FileIO(0, "r", closefd=False)), "utf-8", "surrogateescape")
    out = TextIOWrapper(BufferedWriter(FileIO(1, "w", closefd=False)), "utf-8", "surrogateescape")
    err = TextIOWrapper(BufferedWriter(FileIO(2, "w", closefd=False)), "utf-8", "backslashreplace", line_buffering=True)
    # The fast readers and writers of programming contests ask for it.
    inp.mode, out.mode, err.mode = "r", "w", "w"  # type: ignore[misc]
    return inp, out, err


def replace_openers() -> None:
    """Have the paths of the standard streams work where there is no /dev or /proc, or none that may be read.

    Libraries open files with one of these three.
    """
    builtins.open = io.open = open_file
    os.open = open_descriptor
    os.supports_dir_fd.add(open_descriptor)


def open_file(file: Any, *options: Any, **named: Any) -> Any:
    """Stand for the builtin `open`."""
    standard = _standard_descriptor(file)
    return _interpreters_open(file if standard is None else os.dup(standard), *options, **named)


def open_descriptor(path: Any, *options: Any, **named: Any) -> int:
    """Stand for `os.open`."""
    standard = _standard_descriptor(path)
    return _systems_open(path, *options, **named) if standard is None else os.dup(standard)


def _standard_descriptor(file: Any) -> int | None:
    """Return which standard stream a path names, if any. As with a pipe, the position is the stream's own."""
    try:
        return _STANDARD_PATHS.get(os.fsdecode(file))
    except TypeError:  # a descriptor, or what `open` will refuse
        return None


def connect() -> None:
    """Put input and output behind the descriptors 0 and 1.

    Again for every run: the program before may have closed them, as `with open(0)` does.
    """
    os.dup2(INPUT, 0)
    os.dup2(STDOUT, 1)


def take_input() -> bytes:
    """Return the input and empty its file: of a call or of test code, standard input is empty."""
    data = os.pread(INPUT, os.fstat(INPUT).st_size, 0)
    os.ftruncate(INPUT, 0)
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
