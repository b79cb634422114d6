"""Our end of the pipe to `trl_host.py`."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peer_process import PeerProcess
from benchmarks.training_step.workload import Case


class TrlPeer(PeerProcess):
    """A process of the peers' interpreter with TRL's trainer; it needs trl, datasets and a tokenizer."""

    def __init__(self, python: str, model: str, dtype: str, device: str, threads: int) -> None:
        """Start it; raises RuntimeError when it does not come up."""
        opening = {"model": model, "dtype": dtype, "device": device, "threads": threads}
        super().__init__(python, Path(__file__).with_name("trl_host.py"), opening)

    def step(self, case: Case) -> dict[str, float]:
        """Seconds, loss and gradient norm of one step."""
        rows = {
            "prompts": [list(row.prompt_ids) for row in case.rows],
            "completions": [list(row.completion_ids) for row in case.rows],
            "advantages": case.advantages,
        }
        found: dict[str, float] = self.ask(rows)
        return found
