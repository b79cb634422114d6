"""The caller's end of one fork server: start it, ask it to run a child, stop it."""

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
from dataclasses import dataclass
from pathlib import Path

from smalt.sandbox.worker import start
from smalt.sandbox.worker.frames import ProtocolError, receive_frame, send_frame
from smalt.sandbox.worker.requests import MAX_REPORT_BYTES, ChildEnd, ChildRequest

_START_SECONDS = 60.0
_STOP_SECONDS = 5.0
# On top of a request's own wall limits, for a loaded machine.
_GRACE_SECONDS = 30.0
_MAX_ANSWER_BYTES = MAX_REPORT_BYTES + (1 << 20)

# Nothing of the caller's environment: secrets stay out, and threads of numeric libraries with them.
_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "PYTHONUTF8": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


class ServerDiedError(Exception):
    """The server ended, hung or broke the protocol; it has been killed."""


@dataclass(frozen=True)
class ChildAnswer:
    """What is left of one child."""

    end: ChildEnd
    report: bytes
    unfinished_output: bytes


def module_paths() -> list[str]:
    """Return the folders of installed packages, which programs may import."""
    names = ("site-packages", "dist-packages")
    return [path for path in sys.path if Path(path).name in names and Path(path).is_dir()]


class ServerConnection:
    """One fork server, started on first use. Not thread safe: one request at a time."""

    def __init__(self, preload: Sequence[str] = ()) -> None:
        """Remember the modules to import before the first fork; starts nothing."""
        self._preload = tuple(preload)
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._scratch_root = ""

    @property
    def pid(self) -> int | None:
        """Process id of the running server; None when there is none."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the server without waiting until it is ready; does nothing when it runs."""
        if self._process is not None:
            return
        ours, theirs = socket.socketpair()
        self._scratch_root = tempfile.mkdtemp(prefix="smalt-sandbox-")
        options = {
            "connection": theirs.fileno(),
            "scratch_root": self._scratch_root,
            "caller": os.getpid(),
            "module_paths": module_paths(),
            "preload": self._preload,
        }
        with theirs:
            # -P, -S, -s and an environment of our own isolate as -I does, which would ignore PYTHONHASHSEED.
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-S",
                    "-s",
                    "-P",
                    "-X",
                    "int_max_str_digits=0",
                    start.__file__,
                    json.dumps(options),
                ],
                pass_fds=[theirs.fileno()],
                env=_ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
        self._socket = ours
        self._is_ready = False

    def ask(self, request: ChildRequest, payload: bytes) -> ChildAnswer:
        """Run one child; raises ServerDiedError."""
        self.start()
        assert self._socket is not None
        seconds = (request.wall_seconds + 1) * (request.count - request.first) + _GRACE_SECONDS
        try:
            if not self._is_ready:
                self._socket.settimeout(_START_SECONDS)
                self._receive()
                self._is_ready = True
            self._socket.settimeout(seconds)
            send_frame(self._socket, request.to_bytes())
            send_frame(self._socket, payload)
            end, report, unfinished = self._receive(), self._receive(), self._receive()
            return ChildAnswer(ChildEnd.from_bytes(end), report, unfinished)
        except (OSError, ProtocolError) as error:
            self.kill()
            raise ServerDiedError(str(error)) from error
        except BaseException:
            # An interrupt leaves an answer on its way; the connection cannot be used again.
            self.kill()
            raise

    def _receive(self) -> bytes:
        assert self._socket is not None
        message = receive_frame(self._socket, _MAX_ANSWER_BYTES)
        if message is None:
            raise ProtocolError("the server closed the connection")
        return message

    def stop(self) -> None:
        """Let the server end by itself; kills it when it does not."""
        if self._socket is not None:
            self._socket.close()
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP_SECONDS)
        self.kill()

    def kill(self) -> None:
        """Kill the server and forget it; the next request starts another."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        if self._socket is not None:
            self._socket.close()
        shutil.rmtree(self._scratch_root, ignore_errors=True)
        self._process = self._socket = None
