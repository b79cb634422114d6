"""The process between the caller and a server: it opens the server's namespaces and outlives it to clean up.

The server is process 1 of its namespace and sees nothing outside. The guardian sees both: it ends the server
when the caller dies, and removes what the server cannot reach (control group, folder).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import traceback
from collections.abc import Callable
from pathlib import Path

from smalt.sandbox.worker import processes
from smalt.sandbox.worker.confinement import Confinement
from smalt.sandbox.worker.layers.cgroups import ControlGroup
from smalt.sandbox.worker.layers.names import Layer

_LOOK_SECONDS = 0.5
GROUP_MEMORY_BYTES = 4 << 30
_GROUP_TASKS = 256


def group_name(guardian: int) -> str:
    """Name of the control group of the server with this guardian."""
    return f"smalt-{guardian}"


class Guardian:
    """Watches over one server."""

    def __init__(self, confinement: Confinement, scratch_root: Path, caller: int, has_group: bool) -> None:
        """`caller` is the process that must not be outlived."""
        self._confinement = confinement
        self._scratch_root = scratch_root
        self._caller = caller
        self._has_group = has_group
        self._group = ControlGroup()

    def run(self, serve: Callable[[], None]) -> None:
        """Fork the server, which calls `serve`, and wait for its end or the caller's."""
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        if self._has_group:
            self._create_group()
        self._confinement.open_outside()
        guardian = os.getpid()
        server = os.fork()
        if server == 0:
            self._be_server(serve, guardian)
        with contextlib.suppress(OSError):
            self._group.add(server)
        try:
            self._wait(server)
        finally:
            self._group.remove()
            shutil.rmtree(self._scratch_root, ignore_errors=True)

    def _create_group(self) -> None:
        limits = {"memory": GROUP_MEMORY_BYTES, "pids": _GROUP_TASKS}
        self._group.create(group_name(os.getpid()), limits)
        if self._group.controllers:
            self._confinement.present[Layer.CONTROL_GROUP] = ", ".join(self._group.controllers)
        else:
            self._confinement.missing[Layer.CONTROL_GROUP] = "no hierarchy can be written by this user"

    def _be_server(self, serve: Callable[[], None], guardian: int) -> None:
        status = 1
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
            self._confinement.enter()
            # After the last change of user, which clears it.
            processes.die_with_parent()
            if os.getppid() in (guardian, 0):
                serve()
                status = 0
        except BaseException:
            # Standard error is the caller's: it is the sandbox's own failure, no program's.
            traceback.print_exc()
        finally:
            os._exit(status)

    def _wait(self, server: int) -> None:
        while os.waitpid(server, os.WNOHANG) == (0, 0):
            # The parent's id, not PR_SET_PDEATHSIG: that fires when the thread that made this process ends.
            if os.getppid() != self._caller:
                os.kill(server, signal.SIGKILL)
                os.waitpid(server, 0)
                return
            signal.sigtimedwait([signal.SIGCHLD], _LOOK_SECONDS)
