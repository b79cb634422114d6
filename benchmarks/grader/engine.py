"""What a design must offer to be measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from benchmarks.grader.workload import Task

Options = dict[str, Any]
Check = Callable[[], bool]
"""Grades one program on all its tests; returns whether it passed. This is what is measured."""


class Engine(Protocol):
    """A way to grade, made once in a process of its own from its options."""

    def check_of(self, task: Task, form: str) -> Check:
        """Prepare everything that a user prepares once for a problem; not measured.

        `form` is what tests look like: "stdin", "call" (arguments and result) or "assert" (HumanEval's check function).
        """
        ...

    def close(self) -> None:
        """Stop what was started."""
        ...
