"""Limits on the child's own resources, the layer that every machine has."""

from __future__ import annotations

import contextlib
import math
import os
import resource
from pathlib import Path

from smalt.sandbox.worker.requests import MAX_VALUE_BYTES, Request

_OPEN_FILES = 128
_TASKS = 128
_SHARED_USER_TASKS = 1024
# Room above the memory limit for reporting that it was reached.
_REPORT_MEMORY = 64 << 20
# Room above the largest value for the rest of its report.
_REPORT_FILE = 1 << 20


def set_common_limits() -> None:
    """Limit this process to what every child may use."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (_OPEN_FILES, _OPEN_FILES))


def limit_tasks(most: int | None) -> None:
    """Limit the processes and threads of this process's user, as far as this process may add to them.

    For children only: where workers share a user, the threads of one's program would keep another from forking.
    """
    if most is not None:
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))


def set_limits(request: Request) -> None:
    """Limit this process to what one child of `request` may use."""
    inputs = 1 if request.is_separate else request.input_count - request.first
    seconds = math.ceil(request.cpu_seconds * inputs) + 2
    memory = request.memory_bytes
    output = request.output_bytes + 1
    file_size = max(output, MAX_VALUE_BYTES) + _REPORT_FILE
    # A backstop: the server's own clock is finer.
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory + _REPORT_MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (output, file_size))


def max_tasks(has_own_user: bool) -> int | None:
    """How many processes and threads this user may have; None where the kernel does not count (root)."""
    if has_own_user:
        return _TASKS
    if os.getuid() == 0:
        return None
    return _tasks_of(os.getuid()) + _SHARED_USER_TASKS


def _tasks_of(user: int) -> int:
    """Count the user's processes and threads; 0 where /proc cannot be read."""
    count = 0
    with contextlib.suppress(OSError):
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and entry.stat().st_uid == user:
                    count += len(list((entry / "task").iterdir()))
    return count


def raise_soft(limit: int) -> None:
    """Raise a soft limit to the hard one."""
    hard = resource.getrlimit(limit)[1]
    resource.setrlimit(limit, (hard, hard))


def lower_soft(limit: int, soft: int) -> None:
    """Set a soft limit, at most to the hard one."""
    hard = resource.getrlimit(limit)[1]
    resource.setrlimit(limit, (min(soft, hard), hard))
