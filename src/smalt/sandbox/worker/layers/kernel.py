"""Calling the kernel where the standard library has no function for it."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable

from smalt.sandbox.worker.layers.numbers import number_of

# PyDLL keeps the interpreter lock during the call: a forked child must hold it, and nothing here blocks.
libc = ctypes.PyDLL(None, use_errno=True)


def check(result: int, what: str) -> int:
    """Return `result`; raises OSError naming `what` when it is negative."""
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


Argument = int | ctypes.Array[ctypes.c_char] | None
"""Integers are passed as longs, buffers by address."""


def system_call(name: str, *arguments: Argument) -> int:
    """Call `name`. Raises OSError."""
    return prepared_call(name, *arguments)()


def prepared_call(name: str, *arguments: Argument) -> Callable[[], int]:
    """Return a function that makes this call; raises OSError, also now for one that the machine lacks.

    For after a fork, where whatever is built or looked up costs the copy of a page.
    """
    number = number_of(name)
    if number is None:
        raise OSError(38, f"{name} does not exist on this machine")
    function, values = libc.syscall, (ctypes.c_long(number), *map(_argument, arguments))
    return lambda: check(function(*values), name)


def process_control(operation: int, argument: int = 0) -> int:
    """Call prctl; raises OSError."""
    return check(libc.prctl(operation, ctypes.c_ulong(argument), 0, 0, 0), f"prctl {operation}")


def _argument(value: Argument) -> ctypes.c_long | ctypes.c_void_p:
    if isinstance(value, int):
        return ctypes.c_long(value)
    return ctypes.c_void_p(None if value is None else ctypes.addressof(value))
