"""Programs to grade, read from a file of JSON Lines (`docs/formats.md` describes the fields).

The file is a stream: whatever its length, memory holds a line at a time, and 8 bytes a line while ids are checked.
"""

from __future__ import annotations

import difflib
import gzip
import hashlib
import json
import zlib
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from smalt.grading.extraction import extract_program
from smalt.grading.verdicts import Grade
from smalt.problems.problem import Problem
from smalt.problems.records import describe
from smalt.problems.values import encode_value

NO_PROGRAM = "no_program"
"""Status of a response that holds no program: nothing was run."""
_SOURCES = ("program", "response", "completion", "solution")
_IRRELEVANT = {"statement", "solutions", "metadata"}
_DIGEST_CHARACTERS = 16

GradeLine = dict[str, Any]
"""One line of the file of grades."""


class SubmissionError(ValueError):
    """A file of programs or grades that cannot be used; the message says where, why, and the fix."""


@dataclass(frozen=True)
class Submission:
    """One line of a file of programs."""

    number: int
    """Counted from 0 in the file."""
    place: str
    """`file:line`."""
    problem: Problem
    program_id: str | int
    source: str
    """The field that `text` comes from: program, response, completion or solution."""
    text: str
    digest: str
    """Of the problem's tests and the text: grades with the same digest are grades of the same thing."""

    def program(self) -> str | None:
        """The program to run; None when a response holds none."""
        if self.source == "response":
            return extract_program(self.text, self.problem.entry_point).program
        if self.source == "completion":
            return (self.problem.starter_code or "") + self.text
        return self.text

    def grade_line(self, grade: Grade | None) -> GradeLine:
        """The line that reports a grade; None means that there was no program."""
        return {
            "problem_id": self.problem.id,
            "program_id": self.program_id,
            "passed": grade is not None and grade.passes_all,
            "pass_rate": grade.pass_rate if grade else 0.0,
            "verdicts": [str(result.status) for result in grade.results] if grade else [],
            "status": str(grade.status) if grade else NO_PROGRAM,
            "cpu_seconds": round(grade.cpu_seconds, 6) if grade else 0.0,
            "wall_seconds": round(grade.wall_seconds, 6) if grade else 0.0,
            "is_low_trust": grade is not None and grade.is_low_trust,
            "digest": self.digest,
        }


class SubmissionFile:
    """A file of programs for known problems; it can be read any number of times."""

    def __init__(self, path: Path, problems: Sequence[Problem]) -> None:
        """Nothing is read yet."""
        self.path = path
        self._problems = {problem.id: problem for problem in problems}
        # evalplus writes Mbpp/2 for what is mbpp/2 here; ids that only case tells apart stay apart.
        folded = Counter(problem.id.casefold() for problem in problems)
        self._any_case = {name: problem for problem in problems if folded[name := problem.id.casefold()] == 1}
        self._digests: dict[str, bytes] = {}

    def check(self) -> int:
        """Read the whole file and return the number of programs.

        Raises:
            SubmissionError: at the first line that cannot be used, or because an id repeats.
        """
        hashes = array("q", (hash(_key(submission)) for submission in self))
        ordered = np.sort(np.frombuffer(hashes, dtype=np.int64))
        self._refuse_repeats(set(ordered[1:][ordered[1:] == ordered[:-1]].tolist()))
        return len(hashes)

    def __iter__(self) -> Iterator[Submission]:
        """The programs in the order of the file; raises SubmissionError at a line that cannot be used."""
        counts: Counter[str] = Counter()
        for number, (place, fields) in enumerate(json_objects(self.path)):
            problem = self._problem(place, fields)
            source, text = _source(place, fields)
            program_id = _program_id(place, fields, counts[problem.id])
            counts[problem.id] += 1
            yield Submission(number, place, problem, program_id, source, text, self._digest(problem, source, text))

    def _refuse_repeats(self, suspects: set[int]) -> None:
        """Name the two lines with the same id; `suspects` are the hashes of ids that seem to repeat."""
        places: dict[tuple[str, str], str] = {}
        for submission in self if suspects else ():
            key = _key(submission)
            if hash(key) not in suspects:
                continue
            if key in places:
                raise SubmissionError(
                    f"{submission.place}: program_id: {submission.program_id!r} of problem {key[0]!r} repeats the one "
                    f"at {places[key]}; give each program of a problem its own, or leave program_id out everywhere"
                )
            places[key] = submission.place

    def _problem(self, place: str, fields: dict[str, Any]) -> Problem:
        field = "problem_id" if fields.get("problem_id") is not None or "task_id" not in fields else "task_id"
        name = fields.get(field)
        if not isinstance(name, str):
            example = next(iter(self._problems))
            found = describe(name, field in fields)
            raise SubmissionError(f"{place}: {field}: {found}; expected a problem's id, such as {example!r}")
        problem = self._problems.get(name) or self._any_case.get(name.casefold())
        if problem is None:
            near = difflib.get_close_matches(name, self._problems) or list(self._problems)[:3]
            raise SubmissionError(
                f"{place}: {field}: {name!r} is the id of no problem given; ids are like {', '.join(map(repr, near))}"
            )
        return problem

    def _digest(self, problem: Problem, source: str, text: str) -> str:
        if problem.id not in self._digests:
            # Not pickle nor repr(): a resumed run is another process, perhaps another Python.
            relevant = json.dumps(encode_value(problem.model_dump(exclude=_IRRELEVANT)), sort_keys=True)
            self._digests[problem.id] = hashlib.sha256(relevant.encode()).digest()
        data = f"{source}\0{text}".encode("utf-8", "surrogatepass")
        return hashlib.sha256(self._digests[problem.id] + data).hexdigest()[:_DIGEST_CHARACTERS]


def _key(submission: Submission) -> tuple[str, str]:
    return submission.problem.id, str(submission.program_id)


def _source(place: str, fields: dict[str, Any]) -> tuple[str, str]:
    """The one field that holds the program in some form, and its text."""
    given = [field for field in _SOURCES if fields.get(field) is not None]
    if not given:
        raise SubmissionError(f"{place}: program: missing; expected one of the fields {', '.join(_SOURCES)}")
    if len(given) > 1:
        raise SubmissionError(f"{place}: {' and '.join(given)}: only one can be graded; leave the others out")
    text = fields[given[0]]
    if not isinstance(text, str):
        raise SubmissionError(f"{place}: {given[0]}: {describe(text)}; expected a string")
    return given[0], text


def _program_id(place: str, fields: dict[str, Any], number: int) -> str | int:
    name = fields.get("program_id")
    if name is None:
        return number
    if isinstance(name, bool) or not isinstance(name, str | int) or name == "":
        found = "is empty" if name == "" else describe(name)
        raise SubmissionError(f"{place}: program_id: {found}; expected a string or a whole number")
    return name


def json_objects(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The JSON objects of a file with their places; blank lines are skipped, no object at all is an error."""
    is_empty = True
    for number, line in enumerate(_lines(path), start=1):
        if line.strip():
            is_empty = False
            yield f"{path}:{number}", json_object(f"{path}:{number}", line)
    if is_empty:
        raise SubmissionError(f"{path}: is empty; expected one JSON object a line, a program each")


def _lines(path: Path) -> Iterator[bytes]:
    """The lines of a file, unpacked when its name ends in .gz."""
    if path.exists() and not path.is_file():
        raise SubmissionError(f"{path}: is no file; expected one that can be read twice, so no folder and no pipe")
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            yield from file
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise SubmissionError(f"{path}: cannot be read: {reason}") from None


def json_object(place: str, line: bytes) -> dict[str, Any]:
    """One line, found at `place`, as an object; raises `SubmissionError` when it is none."""
    try:
        value = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise SubmissionError(f"{place}: is not UTF-8 text; convert the file to UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise SubmissionError(f"{place}: is not JSON: {error}; expected one object on each line") from None
    if not isinstance(value, dict):
        raise SubmissionError(f"{place}: {describe(value)}; expected a JSON object, a program each")
    return value
