"""The file that grades go to: lines survive a kill as they come, and the file appears when it is complete.

Of a file of any length, memory holds a line at a time and 8 bytes for each to find its grade.
"""

from __future__ import annotations

import fcntl
import json
import os
from array import array
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from smalt.grading.submissions import GradeLine, Submission, SubmissionError, json_object, json_objects
from smalt.grading.verdicts import Status


class GradeFile:
    """The file of grades, in the order of the programs. It appears when it is complete.

    Until then the lines are in `<name>.partial` beside it, in the order in which programs ended, each after the
    number of its program and a tab; from there a killed run goes on. A complete file of earlier is taken over,
    except that its infra errors are graded again. Use as a context: the file is locked meanwhile.
    """

    def __init__(self, path: Path, programs: int) -> None:
        """Nothing is opened yet; `programs` is the number of lines when the file is complete."""
        self.path = path
        self.partial = path.with_name(path.name + ".partial")
        # Where in the partial file the grade of each program begins; -1 for none.
        self._offsets = array("q", [-1]) * programs

    def __enter__(self) -> GradeFile:
        """Open and lock the partial file, find the lines of earlier runs, and drop one that a kill tore."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.partial.open("ab")
        try:
            if not self._is_locked():
                raise SubmissionError(f"{self.partial}: another process is writing it; wait, or choose another --out")
            self._find_lines()
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close; lines written so far stay for the next run."""
        state = os.fstat(self._file.fileno())
        if state.st_size == 0 and state.st_nlink > 0:
            self.partial.unlink()
        self._file.close()

    def known(self, submissions: Iterable[Submission]) -> Iterator[tuple[Submission, GradeLine | None, bool]]:
        """Each submission with its grade of earlier, if any, and whether the partial file has that line already.

        Raises:
            SubmissionError: lines here are grades of other programs, or no grades.
        """
        complete = json_objects(self.path) if self.path.exists() and self.path.stat().st_size else ()
        with self.partial.open("rb") as partial:
            for submission, object_ in zip_longest(submissions, complete):
                if submission is None:
                    raise _foreign(self.path, "any program given")
                finished = _checked(self.path, object_[1], submission) if object_ else None
                offset = self._offsets[submission.number]
                if offset >= 0:
                    line = json_object(str(self.partial), _text_at(partial, offset))
                    yield submission, _checked(self.partial, line, submission), True
                else:
                    is_settled = finished is not None and finished["status"] != Status.INFRA_ERROR
                    yield submission, finished if is_settled else None, False

    def append(self, submission: Submission, line: GradeLine) -> None:
        """Write the grade of a program; it survives the death of this process."""
        self._offsets[submission.number] = self._file.tell()
        self._file.write(f"{submission.number}\t{json.dumps(line)}\n".encode())
        self._file.flush()

    def complete(self) -> None:
        """Put all lines in the order of the programs and the file in its place."""
        temporary = self.path.with_name(self.path.name + ".tmp")
        try:
            with self.partial.open("rb") as partial, temporary.open("wb") as file:
                file.writelines(_text_at(partial, offset) for offset in self._offsets)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.path)
        finally:
            temporary.unlink(missing_ok=True)
        self.partial.unlink()

    def _is_locked(self) -> bool:
        """Whether the lock is ours, and on the file of that name: its last owner may just have removed it."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return os.path.samestat(os.fstat(self._file.fileno()), self.partial.stat())
        except (BlockingIOError, FileNotFoundError):
            return False

    def _find_lines(self) -> None:
        end = 0
        with self.partial.open("rb") as partial:
            for line in partial:
                if not line.endswith(b"\n"):
                    break
                number = line.partition(b"\t")[0]
                if not number.isdigit() or int(number) >= len(self._offsets):
                    raise _foreign(self.partial, "any program given")
                self._offsets[int(number)] = end
                end += len(line)
        self._file.truncate(end)
        self._file.seek(end)


def _text_at(partial: BinaryIO, offset: int) -> bytes:
    """The line that begins at `offset`, without the number before it."""
    partial.seek(offset)
    return partial.readline().partition(b"\t")[2]


def _checked(path: Path, line: GradeLine, submission: Submission) -> GradeLine:
    """The line, if it is the grade of `submission`."""
    ids = (submission.problem.id, submission.program_id, submission.digest)
    if (line.get("problem_id"), line.get("program_id"), line.get("digest")) != ids:
        raise _foreign(path, submission.place)
    return line


def _foreign(path: Path, owner: str) -> SubmissionError:
    return SubmissionError(
        f"{path}: holds a line that is not the grade of {owner}: programs, tests or their order changed; "
        "choose another --out, or delete this file to grade all anew"
    )
