"""Our end of the pipe to `trl_host.py`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.training_step.workload import Case


class TrlPeer:
    """A process of the peers' interpreter with TRL's trainer; stops when the block ends."""

    def __init__(self, python: str, model: str, dtype: str, device: str, threads: int) -> None:
        """Start it; raises RuntimeError when it does not come up."""
        host = str(Path(__file__).with_name("trl_host.py"))
        self._process = subprocess.Popen([python, host], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        asked = {"model": model, "dtype": dtype, "device": device, "threads": threads}
        self.versions: dict[str, str] = self._ask(asked, "ready")

    def step(self, case: Case) -> dict[str, float]:
        """Seconds, loss and gradient norm of one step."""
        rows = {
            "prompts": [list(row.prompt_ids) for row in case.rows],
            "completions": [list(row.completion_ids) for row in case.rows],
            "advantages": case.advantages,
        }
        return self._ask(rows, "result")

    def _ask(self, message: dict[str, Any], kind: str) -> Any:
        """Send a line and return the answer of that kind; the trainer's own chatter is passed over."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            word, _, rest = line.partition(" ")
            if word == kind:
                return json.loads(rest)
        raise RuntimeError("TRL's process ended; what it said stands above. It needs trl, datasets and a tokenizer")

    def __enter__(self) -> Self:
        """Nothing to do."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop it."""
        self._process.kill()
        self._process.wait()
