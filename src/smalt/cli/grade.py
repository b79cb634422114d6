"""`smalt grade`: run programs on the tests of their problems."""

from __future__ import annotations

import functools
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.table import Table

    from smalt.grading.grade_file import GradeFile
    from smalt.grading.grader import Grader
    from smalt.grading.submissions import GradeLine, Submission, SubmissionFile

EXIT_INFRA_ERROR = 3
EXIT_STOPPED = 130
_INFRA_ERROR = "infra_error"
_IN_FLIGHT_PER_WORKER = 8
"""Programs that run or wait for it, for each worker: enough that none is idle, few enough for any memory."""
_GRADES_REMEMBERED = 1000
"""Equal programs mostly stand close together, and a grade holds outputs."""


def _exit_statuses(command: Callable[..., None]) -> Callable[..., None]:
    """Turn errors that a user can mend into a sentence and the status that the command's help names."""

    @functools.wraps(command)
    def run(**options: object) -> None:
        try:
            command(**options)
        except (ValueError, OSError) as error:
            raise click.ClickException(str(error)) from error
        except KeyboardInterrupt:
            click.echo("stopped; the same command goes on where it was", err=True)
            raise click.exceptions.Exit(EXIT_STOPPED) from None

    return run


@click.command("grade")
@click.option("--problems", "problem_path", required=True, help="Problem file (docs/formats.md), or 'lab'.")
@click.option(
    "--programs", "program_path", type=click.Path(path_type=Path), required=True, help="Programs, one a line."
)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="File of grades to write.")
@click.option("--workers", type=click.IntRange(min=1), help="Programs at a time; one a CPU core by default.")
@click.option("--format", "format_name", default="auto", show_default=True, help="Format of the problem file.")
@_exit_statuses
def grade(problem_path: str, program_path: Path, out: Path, workers: int | None, format_name: str) -> None:
    """Grade programs against public and hidden tests, each in a sandbox; one line a program.

    A line of --programs has problem_id and program, or response to take the program from. Samples for HumanEval
    (task_id and completion) and evalplus (task_id and solution) are read as they are: see docs/formats.md.

    Can be stopped at any moment; the same command goes on where it was.

    \b
    Exit status:
      0    every program was graded
      1    bad input: nothing was run, or --out holds other grades
      2    wrong options
      3    the grader itself failed on some programs (infra_error); the same command grades those again
      130  stopped by Ctrl-C
    """
    from rich.console import Console

    from smalt.grading.grade_file import GradeFile
    from smalt.grading.grader import Grader
    from smalt.grading.submissions import SubmissionFile
    from smalt.problems.sources import ProblemSource, load_problems
    from smalt.progress import progress
    from smalt.sandbox.forkserver import ForkServerSandbox

    submissions = SubmissionFile(program_path, load_problems(ProblemSource(path=problem_path, format=format_name)))
    total = submissions.check()
    workers = workers or len(os.sched_getaffinity(0))
    summary = _Summary()
    with (
        GradeFile(out, total) as file,
        ForkServerSandbox(workers) as sandbox,
        progress(Console(stderr=True), "grade") as report,
    ):
        grader = Grader(sandbox, workers=workers, cache_size=_GRADES_REMEMBERED)
        for line, is_new in _graded(submissions, file, grader, workers):
            summary.add(line, is_new)
            report(summary.programs, total, {"passed": summary.passed / summary.programs})
        file.complete()
    Console().print(summary.table(grader.statistics.disagreements))
    click.echo(f"Grades: {out}")
    if summary.statuses[_INFRA_ERROR]:
        click.echo("the grader failed on some programs; the same command grades those again", err=True)
        raise click.exceptions.Exit(EXIT_INFRA_ERROR)


def _graded(
    submissions: SubmissionFile, file: GradeFile, grader: Grader, workers: int
) -> Iterator[tuple[GradeLine, bool]]:
    """Write a line for each submission as it ends; yield it and whether it is new in this run."""
    ended: SimpleQueue[Future[tuple[Submission, GradeLine]]] = SimpleQueue()
    in_flight = 0
    pool = ThreadPoolExecutor(workers, thread_name_prefix="grade")

    def written() -> GradeLine:
        submission, line = ended.get().result()
        file.append(submission, line)
        return line

    try:
        for submission, line, is_written in file.known(submissions):
            if line is not None:
                if not is_written:
                    file.append(submission, line)
                yield line, False
                continue
            if in_flight == _IN_FLIGHT_PER_WORKER * workers:
                yield written(), True
                in_flight -= 1
            pool.submit(_grade, grader, submission).add_done_callback(ended.put)
            in_flight += 1
        for _ in range(in_flight):
            yield written(), True
    finally:
        pool.shutdown(cancel_futures=True)


def _grade(grader: Grader, submission: Submission) -> tuple[Submission, GradeLine]:
    try:
        program = submission.program()
        found = None if program is None else grader.grade(submission.problem, program)
    except ValueError as error:
        raise ValueError(f"{submission.place}: problem {submission.problem.id!r}: {error}") from error
    return submission, submission.grade_line(found)


class _Summary:
    """Counts of the lines, by problem too, and the speed of this run."""

    def __init__(self) -> None:
        self.statuses: Counter[str] = Counter()
        self.passed = 0
        self._low_trust = 0
        self._new = 0
        # Programs and how many of them passed.
        self._by_problem: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
        self._begin = time.monotonic()

    @property
    def programs(self) -> int:
        return self.statuses.total()

    def add(self, line: GradeLine, is_new: bool) -> None:
        self.statuses[line["status"]] += 1
        self.passed += line["passed"]
        self._low_trust += line["is_low_trust"]
        self._new += is_new
        if line["status"] != _INFRA_ERROR:
            counts = self._by_problem[line["problem_id"]]
            counts[0] += 1
            counts[1] += line["passed"]

    def table(self, disagreements: int) -> Table:
        """The counts; `disagreements` is the number of tests that a batch and a separate run judged differently."""
        from rich.table import Table

        table = Table(show_header=False)
        table.add_column()
        table.add_column(justify="right")
        for name, value in self._rows(disagreements):
            table.add_row(name, value)
        return table

    def _rows(self, disagreements: int) -> Iterator[tuple[str, str]]:
        seconds = time.monotonic() - self._begin
        yield "programs", str(self.programs)
        if self._new < self.programs:
            yield "  graded in an earlier run", str(self.programs - self._new)
        yield "passed", f"{self.passed} ({100 * self.passed / self.programs:.1f} %)"
        for status, count in self.statuses.most_common():
            if status != "passed":
                yield f"  {status}", str(count)
        if self._low_trust:
            yield "of low trust", str(self._low_trust)
        if disagreements:
            yield "tests decided by a second run", str(disagreements)
        if any(samples > 1 for samples, _ in self._by_problem.values()):
            yield f"Pass@1 over {len(self._by_problem)} problems", f"{100 * self._pass_at_1():.1f} %"
        yield "seconds", f"{seconds:.1f}"
        yield "programs/s", f"{self._new / seconds:.1f}" if self._new else "–"

    def _pass_at_1(self) -> float:
        """Mean over problems; programs that met an infra error are neither right nor wrong and left out."""
        from smalt.evaluation.pass_at_k import pass_at_k

        shares = [pass_at_k(programs, passed, 1) for programs, passed in self._by_problem.values()]
        return sum(shares) / len(shares)
