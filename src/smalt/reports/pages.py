"""What every HTML page has in common: its templates, and how it is written."""

from __future__ import annotations

import os
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from smalt.reports.charts import duration


def page_templates() -> Environment:
    """The templates; what is put into them is escaped, and a name that they lack is an error."""
    environment = Environment(
        loader=PackageLoader("smalt.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["duration"] = duration
    return environment


def write_page(target: Path, page: str) -> None:
    """Write beside the target, then rename. What UTF-8 cannot hold (a lone surrogate) becomes a "?"."""
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with unfinished.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
            file.write(page)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)
