"""The measuring side of a host process: start it, put it under a clock, ask it, read the clock."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.grader.cpu_clock import clock_of
from benchmarks.grader.engine import Options

ROOT = Path(__file__).parents[2]
"""The folder that holds `benchmarks`."""
_SECONDS = 300.0
_CLOSE_SECONDS = 10.0


class HostError(RuntimeError):
    """A design failed to start or to grade; the message names it and says what it said."""


@dataclass(frozen=True)
class Design:
    """One way to grade."""

    name: str
    engine: str
    """`module:class` of the engine."""
    forms: tuple[str, ...]
    """Forms of tests it can be measured on."""
    options: Options = field(default_factory=dict)
    python: str = sys.executable


@dataclass(frozen=True)
class Load:
    """What hosts are asked to grade."""

    form: str
    tests: int
    programs: int


class Host:
    """One running host process."""

    def __init__(self, design: Design, ballast_bytes: int = 0) -> None:
        """Start the process under a clock; `wait` says when it is ready."""
        self.design = design
        self._channel, theirs = socket.socketpair()
        settings = {
            "channel": theirs.fileno(),
            "engine": design.engine,
            "options": design.options,
            "ballast_bytes": ballast_bytes,
        }
        with theirs:
            self._process = subprocess.Popen(
                [design.python, "-m", "benchmarks.grader.host", json.dumps(settings)],
                cwd=ROOT,
                pass_fds=[theirs.fileno()],
            )
        self._clock = clock_of(self._process.pid)
        self._channel.settimeout(_SECONDS)
        self._lines = self._channel.makefile("rwb", buffering=0)
        self._channel.sendall(b"\n")

    @property
    def clock_source(self) -> str:
        """Where its CPU time is read from."""
        return self._clock.source

    def wait(self) -> None:
        """Wait until the engine is made; raises HostError."""
        self._answer()

    def prepare(self, load: Load) -> None:
        """Have it make the load's programs; raises HostError."""
        self._lines.write(json.dumps(asdict(load)).encode() + b"\n")
        self._answer()

    def check(self, program: int) -> bool:
        """Grade one program; returns whether it passed. Raises HostError."""
        self._lines.write(b"%d\n" % program)
        return self._answer() == "passed"

    def cpu_seconds(self) -> float:
        """CPU time of the whole tree so far."""
        return self._clock.seconds()

    def close(self) -> None:
        """Let the process end and kill whatever it leaves."""
        self._lines.close()
        self._channel.close()
        try:
            self._process.wait(_CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
        for pid in self._clock.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        self._clock.close()

    def _answer(self) -> str:
        try:
            line = self._lines.readline().decode().strip()
        except OSError as error:
            raise HostError(f"{self.design.name}: no answer: {error}") from error
        if line.startswith("error ") or not line:
            reason = json.loads(line[6:]) if line else "the host process ended"
            raise HostError(f"{self.design.name}: {reason}")
        return line
