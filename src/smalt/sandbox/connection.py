"""The caller's end of one worker: start it, have it work on a job, stop it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from smalt.sandbox.isolation import Isolation, IsolationSettings
from smalt.sandbox.worker import start
from smalt.sandbox.worker.guardian import group_name
from smalt.sandbox.worker.layers.cgroups import remove_named
from smalt.sandbox.worker.requests import DONE, Request

_START_SECONDS = 60.0
_STOP_SECONDS = 5.0
# On top of a request's own wall limits, for a loaded machine.
_GRACE_SECONDS = 60.0
_MAX_ANSWER_BYTES = 1 << 16

# Nothing of the caller's environment: secrets stay out, and threads of numeric libraries with them.
_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    # Symbols bound before the fork, not by each child in pages of its own.
    "LD_BIND_NOW": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONUTF8": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


class ServerDiedError(Exception):
    """The server ended, hung or broke the protocol; it has been killed."""


def module_paths() -> list[str]:
    """Return the folders of installed packages, which programs may import."""
    names = ("site-packages", "dist-packages")
    return [path for path in sys.path if Path(path).name in names and Path(path).is_dir()]


class ServerConnection:
    """One server with its guardian, started on first use. Not thread safe: one request at a time."""

    def __init__(self, settings: IsolationSettings | None = None, preload: Sequence[str] = ()) -> None:
        """Remember the layers and the modules to import before the first fork; starts nothing."""
        self._settings = settings or IsolationSettings()
        self._preload = tuple(preload)
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._isolation: Isolation | None = None
        self._scratch_root = ""
        self.runs = 0
        """Inputs asked for since the start."""

    @property
    def pid(self) -> int | None:
        """Process id of the running guardian; None when there is none."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the server without waiting until it is ready; does nothing when it runs."""
        if self._process is not None:
            return
        self._scratch_root = tempfile.mkdtemp(prefix="smalt-sandbox-")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        options = {
            "connection": theirs.fileno(),
            "scratch_root": self._scratch_root,
            "caller": os.getpid(),
            "module_paths": module_paths(),
            "preload": self._preload,
            "without": sorted(self._settings.without),
        }
        # -P, -S, -s and an environment of our own isolate as -I does, which would ignore PYTHONHASHSEED.
        flags = ["-S", "-s", "-P", "-X", "int_max_str_digits=0"]
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, *flags, start.__file__, json.dumps(options)],
                pass_fds=[theirs.fileno()],
                env=_ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
        self._socket = ours
        self._isolation = None
        self.runs = 0

    def isolation(self) -> Isolation:
        """Wait until the server is ready; returns its layers. Raises ServerDiedError."""
        self.start()
        if self._isolation is None:
            self._isolation = Isolation.from_report(json.loads(self._receive(_START_SECONDS)))
        return self._isolation

    def ask(self, request: Request, inputs: int, results: int) -> None:
        """Have the records of the request's inputs written to `results`. Raises ServerDiedError."""
        self.isolation()
        assert self._socket is not None
        remaining = request.input_count - request.first
        self.runs += remaining
        try:
            socket.send_fds(self._socket, [request.to_bytes()], [inputs, results])
        except OSError as error:
            self.kill()
            raise ServerDiedError(str(error)) from error
        if self._receive((request.wall_seconds + 1) * remaining + _GRACE_SECONDS) != DONE:
            self.kill()
            raise ServerDiedError("the server answered something else")

    def _receive(self, seconds: float) -> bytes:
        assert self._socket is not None
        try:
            self._socket.settimeout(seconds)
            message = self._socket.recv(_MAX_ANSWER_BYTES)
            if not message:
                raise ConnectionError("the server closed the connection")
            return message
        except OSError as error:
            self.kill()
            raise ServerDiedError(str(error)) from error
        except BaseException:
            # An interrupt leaves an answer on its way; the connection cannot be used again.
            self.kill()
            raise

    def stop(self) -> None:
        """Let the server end by itself; kills it when it does not."""
        if self._socket is not None:
            self._socket.close()
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP_SECONDS)
        self.kill()

    def kill(self) -> None:
        """Kill the guardian, and with it the server, and forget both; the next request starts others."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        if self._socket is not None:
            self._socket.close()
        shutil.rmtree(self._scratch_root, ignore_errors=True)
        remove_named(group_name(self._process.pid))
        self._process = self._socket = None
