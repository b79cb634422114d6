"""Reading a problem file of any known format.

A new data set goes here: write `problems/<name>.py` with a function `read_<name>(path) -> list[Problem]`
(`mbpp.py` is a short example), add a `Format` to `FORMATS` with the fields that every record of it has, and
describe it in `docs/formats.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from smalt.problems.apps import read_apps
from smalt.problems.codecontests import PUBLIC_COUNT, read_codecontests
from smalt.problems.evalplus import HUMANEVAL_PLUS_TEST, read_evalplus
from smalt.problems.humaneval import read_humaneval
from smalt.problems.kodcode import read_kodcode
from smalt.problems.leetcode import read_leetcode
from smalt.problems.livecodebench import read_livecodebench
from smalt.problems.mbpp import read_mbpp
from smalt.problems.native import read_native
from smalt.problems.problem import Problem
from smalt.problems.records import ProblemFileError, Record, read_records


@dataclass(frozen=True)
class Format:
    """A format: its name, the fields its records have, and its reader.

    `fields` are groups of alternatives: a record fits when it has at least one field of each group. Where two
    formats have the same fields, `test_text` is what the `test` of one of them holds.
    """

    name: str
    fields: tuple[tuple[str, ...], ...]
    read: Callable[..., list[Problem]]
    test_text: str = ""

    def fits(self, record: Record) -> bool:
        """Whether a record can be of this format."""
        has_fields = all(record.fields.keys() & set(group) for group in self.fields)
        return has_fields and self.test_text in str(record.fields.get("test", ""))

    @property
    def needs(self) -> str:
        """The fields in words."""
        return ", ".join(" or ".join(group) for group in self.fields)


_HUMANEVAL_FIELDS = (("task_id",), ("prompt",), ("entry_point",), ("canonical_solution",), ("test",))
# In the order of detection: the first that fits is taken.
FORMATS = (
    Format("native", (("id",), ("statement",)), read_native),
    Format("evalplus", _HUMANEVAL_FIELDS, read_evalplus, HUMANEVAL_PLUS_TEST),
    Format("humaneval", _HUMANEVAL_FIELDS, read_humaneval),
    Format("evalplus", (("task_id",), ("code",), ("test_list",), ("test",)), read_evalplus),
    Format("mbpp", (("task_id",), ("text", "prompt"), ("code",), ("test_list",)), read_mbpp),
    Format(
        "codecontests",
        (
            ("name",),
            ("description", "statement"),
            ("tests", "public_tests", "private_tests", "generated_tests"),
        ),
        read_codecontests,
    ),
    Format("leetcode", (("task_id",), ("completion",), ("entry_point",), ("test",)), read_leetcode),
    Format("apps", (("question",), ("input_output",)), read_apps),
    Format("kodcode", (("question_id",), ("question",), ("test_code", "test")), read_kodcode),
    Format("livecodebench", (("question_id",), ("question_content",), ("public_test_cases",)), read_livecodebench),
)


def read_problems(
    path: str | Path,
    format: str = "auto",
    split: str | None = None,
    public_count: int = PUBLIC_COUNT,
) -> list[Problem]:
    """Read the problems of a file.

    Args:
        path: `.jsonl`, `.json` (one array), or either with `.gz`.
        format: the name of a format in `FORMATS`; "auto" looks at the first record's fields.
        split: keep the problems whose `metadata["split"]` is this (MBPP: train, validation, test, prompt).
        public_count: see `read_codecontests` and `read_apps`; other formats tell public and hidden apart themselves.

    Raises:
        ProblemFileError: the format is unknown, the file does not follow it, or no problem has the split.
    """
    chosen = detect_format(path) if format == "auto" else _named_format(format)
    chooses_public = chosen.read in (read_codecontests, read_apps)
    read = partial(chosen.read, public_count=public_count) if chooses_public else chosen.read
    problems = read(path)
    return problems if split is None else _of_split(path, problems, split)


def detect_format(path: str | Path) -> Format:
    """The format that the first record of a file follows."""
    record = next(read_records(path))
    for candidate in FORMATS:
        if candidate.fits(record):
            return candidate
    known = "\n".join(f"  {candidate.name}: {candidate.needs}" for candidate in FORMATS)
    found = ", ".join(record.fields) or "none"
    raise ProblemFileError(
        f"{record.place}: no known format has these fields: {found}\n"
        f"Known formats and the fields they need:\n{known}\n"
        "Convert the file to the native format, or name the format if a field is misspelt."
    )


def _named_format(name: str) -> Format:
    for candidate in FORMATS:
        if candidate.name == name:
            return candidate
    known = ", ".join(candidate.name for candidate in FORMATS)
    raise ProblemFileError(f"format {name!r} is unknown; known are auto, {known}")


def _of_split(path: str | Path, problems: list[Problem], split: str) -> list[Problem]:
    kept = [problem for problem in problems if problem.metadata.get("split") == split]
    if not kept:
        found = sorted({str(problem.metadata["split"]) for problem in problems if "split" in problem.metadata})
        known = f"its splits are {', '.join(found)}" if found else "its problems name no split"
        raise ProblemFileError(f"{path}: has no problem of split {split!r}; {known}")
    return kept
