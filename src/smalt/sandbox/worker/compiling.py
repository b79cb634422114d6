"""Compiles a program: for the process that runs it, or once for all the separate processes of a job.

For those a child is locked as any other, compiles, leaves the code in a file and ends; the others read it when
they are locked themselves. So the parser and the compiler, which are a hundred thousand lines of C, meet hostile
text behind every layer, in a process with its limits that holds nothing of the server's.
"""

from __future__ import annotations

import marshal
import os
import resource
from types import CodeType

from smalt.sandbox.worker import limits, streams, tracebacks
from smalt.sandbox.worker.messages import PASSED

Compiled = CodeType | BaseException
"""A program's code, or what compiling it raised."""


def compile_program(program: bytes) -> Compiled:
    """Return the code, or the exception that compiling it raised."""
    try:
        # A file may begin with a byte order mark, a string to compile may not.
        source = text_of(program).removeprefix("\ufeff")
        return compile(source, tracebacks.PROGRAM_FILE, "exec", dont_inherit=True)
    except BaseException as error:
        return error


def text_of(program: bytes) -> str:
    """Return the source as it was written; half of a surrogate pair in it is for the compiler to refuse."""
    return program.decode("utf-8", "surrogatepass")


def leave_code(program: bytes) -> None:
    """Compile, write the code to the report and tell the server. Says nothing when there is no code."""
    compiled = compile_program(program)
    if isinstance(compiled, CodeType):
        # The code may be longer than an output.
        limits.raise_soft(resource.RLIMIT_FSIZE)
        streams.write_all(streams.REPORT, marshal.dumps(compiled))
        os.write(streams.CHANNEL, PASSED)


def load_code(left: bytes) -> CodeType | None:
    """Return the code that `leave_code` wrote; None where there is none or no room for it.

    For locked processes only: where the compiler has a hole, a program can have it write anything, and marshal
    does not survive everything.
    """
    if not left:
        return None
    try:
        code = marshal.loads(left)
    except Exception:
        return None
    return code if isinstance(code, CodeType) else None
