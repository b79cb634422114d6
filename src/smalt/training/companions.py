"""What is saved beside each checkpoint because a resumed run could not go on without it."""

from __future__ import annotations

from typing import Protocol


class Companion(Protocol):
    """State of a run beside the policy and its optimiser; one file or folder for each checkpoint."""

    def save(self, step: int) -> None:
        """Write the state after `step` steps, atomically."""
        ...

    def load(self, step: int) -> None:
        """Go back to the state after `step` steps."""
        ...

    def forget_before(self, keep: int) -> None:
        """Delete all but the newest `keep` states."""
        ...
