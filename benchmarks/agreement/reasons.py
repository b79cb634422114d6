"""Why verdicts differ: `reasons.yaml`, found by running and reading the programs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

_FILE = Path(__file__).with_name("reasons.yaml")


@dataclass(frozen=True)
class Reason:
    """One cause of differing verdicts in one data set."""

    data_set: str
    text: str
    """For the report: what happens and whose verdict is right."""
    program_ids: frozenset[str]


@dataclass(frozen=True)
class Reasons:
    """All known reasons."""

    reasons: tuple[Reason, ...]

    def of(self, data_set: str) -> list[Reason]:
        """The reasons in one data set."""
        return [reason for reason in self.reasons if reason.data_set == data_set]

    def reason_for(self, data_set: str, program_id: str) -> Reason | None:
        """The reason why this program's verdict differs, if one is known."""
        return next((reason for reason in self.of(data_set) if program_id in reason.program_ids), None)


def load_reasons(path: Path = _FILE) -> Reasons:
    """Read the reasons.

    Raises:
        ValueError: an entry lacks its text or its programs.
    """
    entries = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    found = []
    for data_set, reasons in entries.items():
        for entry in reasons:
            if not entry.get("reason") or not entry.get("programs"):
                raise ValueError(f"{path.name}: {data_set}: each entry needs 'reason' and 'programs'; found {entry}")
            found.append(Reason(data_set, " ".join(entry["reason"].split()), frozenset(map(str, entry["programs"]))))
    return Reasons(tuple(found))
