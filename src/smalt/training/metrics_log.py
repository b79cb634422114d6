"""The run's numbers: one JSON object a step in `metrics.jsonl`, and the same to TensorBoard."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path


class MetricsLog:
    """Appends steps; on resume, steps at or after `first_step` of a killed run are dropped and written again."""

    def __init__(self, folder: Path, first_step: int) -> None:
        """Open the log of the run in `folder`, to go on at `first_step`."""
        from torch.utils.tensorboard import SummaryWriter

        self.path = folder / "metrics.jsonl"
        self.last: dict[str, float] | None = self._truncate(first_step)
        """The newest step that was logged before, as the log has it."""
        self._file = self.path.open("a", encoding="utf-8")
        self._board = SummaryWriter(str(folder / "tensorboard"), purge_step=first_step)

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Log one step."""
        self._file.write(json.dumps({"step": step, **values}) + "\n")
        self._file.flush()
        for name, value in values.items():
            self._board.add_scalar(name, value, step)

    def close(self) -> None:
        """Flush and close."""
        self._file.close()
        self._board.close()

    def _truncate(self, first_step: int) -> dict[str, float] | None:
        """Keep complete lines of earlier steps only, as a kill may have cut the last line; returns the last kept."""
        if not self.path.exists():
            return None
        lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [line for line in lines if line.endswith("\n") and json.loads(line)["step"] < first_step]
        temporary = self.path.with_suffix(".tmp")
        temporary.write_text("".join(kept), encoding="utf-8")
        temporary.replace(self.path)
        return dict(json.loads(kept[-1])) if kept else None
