"""A peer in a process of its own: a script run by an interpreter that has what this one lacks."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_ROOT = Path(__file__).parents[1]


class PeerProcess:
    """Asked and answering by one JSON object a line; killed, with all that it started, when the block ends.

    An answer's line begins with a word that says what it is. All other lines are the peer's chatter and passed over.
    While it is not asked it is stopped: an engine that waits busily would take time from what is measured then.
    """

    def __init__(self, python: str, script: Path, opening: Mapping[str, Any], imports_smalt: bool = False) -> None:
        """Start it, send `opening` and wait for the answer "ready", which is kept in `versions`.

        Raises RuntimeError when it does not come up.
        """
        environment = dict(os.environ)
        if imports_smalt:
            environment["PYTHONPATH"] = os.pathsep.join([str(_ROOT / "src"), str(_ROOT)])
        # -P: a file beside the script may have a standard module's name.
        command = [python, "-P", str(script)]
        # A group of its own in this session: should this process be killed, the kernel hangs up a stopped group.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, process_group=0
        )
        self._script = script
        self.versions: dict[str, str] = self.ask(opening, "ready")

    def ask(self, message: Mapping[str, Any], kind: str = "result") -> Any:
        """Send a line and return the answer of that kind; raises RuntimeError when the process has ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._signal(signal.SIGCONT)
        with contextlib.suppress(BrokenPipeError):  # its end is told below
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
        for line in self._process.stdout:
            word, _, rest = line.partition(" ")
            if word == kind:
                self._signal(signal.SIGSTOP)
                return json.loads(rest)
        self._signal(signal.SIGKILL)  # what it started may live on
        raise RuntimeError(f"the process of {self._script.name} ended; what it said stands above")

    def __enter__(self) -> Self:
        """Nothing to do."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End it."""
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        """To all of its group that is left."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)
