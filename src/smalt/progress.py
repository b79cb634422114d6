"""Progress on a terminal as a bar, elsewhere as a line every few seconds."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

_SECONDS_BETWEEN_LINES = 10.0


class Report(Protocol):
    """Called as work goes on."""

    def __call__(self, done: int, total: int, numbers: Mapping[str, float] | None = None) -> None:
        """`done` of `total` are done; `numbers` are worth watching."""
        ...


@contextmanager
def progress(console: Console, title: str) -> Iterator[Report]:
    """Show the progress of one stage."""
    if console.is_terminal:
        with _bar(console, title) as report:
            yield report
    else:
        yield _lines(console, title)


@contextmanager
def _bar(console: Console, title: str) -> Iterator[Report]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[numbers]}"),
    )
    with Progress(*columns, console=console) as bars:
        task = bars.add_task(title, total=None, numbers="")

        def report(done: int, total: int, numbers: Mapping[str, float] | None = None) -> None:
            bars.update(task, completed=done, total=total, numbers=_text(numbers))

        yield report


def _lines(console: Console, title: str) -> Report:
    last_line = float("-inf")

    def report(done: int, total: int, numbers: Mapping[str, float] | None = None) -> None:
        nonlocal last_line
        if done == total or time.monotonic() - last_line >= _SECONDS_BETWEEN_LINES:
            last_line = time.monotonic()
            console.print(f"{title} {done}/{total} {_text(numbers)}".rstrip(), highlight=False)

    return report


def _text(numbers: Mapping[str, float] | None) -> str:
    return "  ".join(f"{name} {value:.3g}" for name, value in (numbers or {}).items())
