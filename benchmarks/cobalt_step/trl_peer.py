"""Our end of the pipe to `trl_host.py`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from benchmarks.cobalt_step.step_cost import StepCost
from benchmarks.peer_process import PeerProcess
from smalt.rollouts.records import Context
from smalt.settings import RunSettings
from smalt.yaml_settings import dump_settings


class TrlPeer(PeerProcess):
    """A process of the peers' interpreter with TRL's trainer; it needs trl, datasets and what Smalt needs."""

    def __init__(
        self, python: str, settings: RunSettings, contexts: Sequence[Context], rows: int, threads: int, folder: Path
    ) -> None:
        """Start it on all contexts of the run; the recipe is left in `folder`. `rows` are trained on at once.

        Raises RuntimeError when it does not come up.
        """
        recipe = folder / "recipe.yaml"
        recipe.write_text(dump_settings(settings), encoding="utf-8")
        opening = {
            "recipe": str(recipe),
            "contexts": [dataclasses.asdict(context) for context in contexts],
            "rows": rows,
            "threads": threads,
        }
        super().__init__(python, Path(__file__).with_name("trl_host.py"), opening, imports_smalt=True)

    def step(self, contexts: Sequence[Context], number: int, has_fixed_length: bool) -> StepCost:
        """Sample, grade, train once; the contexts are known there, and steps come in their order."""
        return StepCost(**self.ask({"has_fixed_length": has_fixed_length}))
