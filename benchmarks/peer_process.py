"""A peer in a process of its own: a script run by an interpreter that has what this one lacks."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_ROOT = Path(__file__).parents[1]


class PeerProcess:
    """Asked and answering by one JSON object a line; killed when the block ends.

    An answer's line begins with a word that says what it is. All other lines are the peer's chatter and passed over.
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
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self._script = script
        self.versions: dict[str, str] = self.ask(opening, "ready")

    def ask(self, message: Mapping[str, Any], kind: str = "result") -> Any:
        """Send a line and return the answer of that kind; raises RuntimeError when the process has ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # its end is told below
        for line in self._process.stdout:
            word, _, rest = line.partition(" ")
            if word == kind:
                return json.loads(rest)
        raise RuntimeError(f"the process of {self._script.name} ended; what it said stands above")

    def __enter__(self) -> Self:
        """Nothing to do."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
