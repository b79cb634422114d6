"""This project's grader as an engine, whole or as the bare sandbox."""

from __future__ import annotations

from benchmarks.grader.engine import Check, Options
from benchmarks.grader.workload import ENTRY_POINT, Case, Task
from smalt.grading.compare import outputs_match, values_match
from smalt.grading.grader import Grader
from smalt.problems.problem import CallTest, CodeTest, Limits, Problem, StdinTest, TestCase
from smalt.sandbox.execution import CallInput, Execution, Job, Outcome, ProgramInput, StdinInput
from smalt.sandbox.forkserver import ForkServerSandbox
from smalt.sandbox.isolation import IsolationSettings, Layer, Level

_LIMITS = Limits()


def problem_of(task: Task, form: str) -> Problem:
    """The problem that a program of the workload solves."""
    tests: list[TestCase]
    match form:
        case "stdin":
            tests = [StdinTest(stdin=case.stdin, expected=case.stdout) for case in task.cases]
        case "call":
            tests = [CallTest(args=case.arguments, expected=case.result) for case in task.cases]
        case _:
            tests = [CodeTest(code=f"{task.check}\ncheck({ENTRY_POINT})\n")]
    return Problem(id=task.name, statement="Solve it.", hidden_tests=tuple(tests), entry_point=ENTRY_POINT)


def program_of(task: Task, form: str) -> str:
    """What a policy would have written."""
    return task.script if form == "stdin" else task.function


class GraderEngine:
    """The grader as training uses it: batches, comparison, the default policy. It remembers no grades here.

    Options: `prelude` (text before each program) and those of `sandbox_of`.
    """

    def __init__(self, options: Options) -> None:
        """Start the sandbox."""
        self._prelude = options.get("prelude", "")
        self._sandbox = sandbox_of(options)
        self._grader = Grader(self._sandbox, cache_size=0)

    def check_of(self, task: Task, form: str) -> Check:
        """Prepare the problem."""
        problem, program = problem_of(task, form), self._prelude + program_of(task, form)
        return lambda: self._grader.grade(problem, program).passes_all

    def close(self) -> None:
        """Stop the sandbox."""
        self._sandbox.close()


class SeparateEngine:
    """The sandbox with a process for every test, and comparison; for forms "stdin" and "call".

    Options: those of GraderEngine.
    """

    def __init__(self, options: Options) -> None:
        """Start the sandbox."""
        self._prelude = options.get("prelude", "")
        self._sandbox = sandbox_of(options)

    def check_of(self, task: Task, form: str) -> Check:
        """Prepare the job."""
        program = self._prelude + program_of(task, form)
        is_stdin = form == "stdin"
        is_right = _output_is_right if is_stdin else _value_is_right
        inputs: list[ProgramInput] = [
            StdinInput(case.stdin) if is_stdin else CallInput(ENTRY_POINT, case.arguments) for case in task.cases
        ]
        job = Job(program, tuple(inputs), _LIMITS, is_separate=True)
        return lambda: all(map(is_right, self._sandbox.run(job), task.cases))

    def close(self) -> None:
        """Stop the sandbox."""
        self._sandbox.close()


def _output_is_right(execution: Execution, case: Case) -> bool:
    return execution.outcome is Outcome.OK and outputs_match(execution.stdout, case.stdout, None)


def _value_is_right(execution: Execution, case: Case) -> bool:
    return execution.outcome is Outcome.OK and values_match(execution.value, case.result, None)


def sandbox_of(options: Options, workers: int = 1) -> ForkServerSandbox:
    """A sandbox with every layer the machine allows, or with none under the option `is_bare`."""
    if options.get("is_bare"):
        return ForkServerSandbox(workers, Level.NONE, IsolationSettings(without=frozenset(Layer)))
    return ForkServerSandbox(workers)
