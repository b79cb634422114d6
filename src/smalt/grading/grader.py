"""Grade programs: run them on a problem's tests, compare, and keep public and hidden verdicts apart."""

from __future__ import annotations

import hashlib
import pickle
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from smalt.grading.compare import outputs_match, values_match
from smalt.grading.verdicts import Grade, HiddenResult, PublicResult, Status
from smalt.problems.problem import CallTest, CodeTest, CompareRule, Limits, Problem, StdinTest, TestCase
from smalt.sandbox.execution import (
    CallInput,
    CodeInput,
    Execution,
    Job,
    Outcome,
    ProgramInput,
    Sandbox,
    StdinInput,
)

MAX_OUTPUT_CHARACTERS = 10_000
"""Length at which the output of a public result is cut."""
_TRIES = 2
_Key = tuple[str, bytes, bytes]


class Grader:
    """Grades programs on a sandbox, which stays the caller's to close. Safe to use from several threads.

    Grades are remembered, the least recently used forgotten first; those with an infra error or a time-out
    are not, as another run may end otherwise.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        default_limits: Limits | None = None,
        workers: int = 2,
        cache_size: int = 20_000,
    ) -> None:
        """Grade under `default_limits` where a problem has none; `workers` jobs at a time in `grade_many`."""
        self._sandbox = sandbox
        self._default_limits = default_limits or Limits()
        self._workers = workers
        self._cache_size = cache_size
        self._cache: OrderedDict[_Key, Grade] = OrderedDict()
        # The problem is kept beside its digest: its id() is its own only while it lives.
        self._digests: OrderedDict[int, tuple[Problem, bytes]] = OrderedDict()
        self._lock = threading.Lock()

    def grade(self, problem: Problem, program: str) -> Grade:
        """Return the verdicts on `program`, public tests first."""
        return self._grade(self._key(problem, program), problem, program)

    def grade_many(self, pairs: Sequence[tuple[Problem, str]]) -> list[Grade]:
        """Grade in parallel; grades are in the order of `pairs`. Equal programs for a problem run once."""
        keys = [self._key(problem, program) for problem, program in pairs]
        unique = dict(zip(keys, pairs, strict=True))
        with ThreadPoolExecutor(self._workers, thread_name_prefix="grader") as pool:
            running = {key: pool.submit(self._grade, key, *pair) for key, pair in unique.items()}
            return [running[key].result() for key in keys]

    def _grade(self, key: _Key, problem: Problem, program: str) -> Grade:
        with self._lock:
            if key in self._cache:
                self._cache.move_to_end(key)
                return self._cache[key]
        grade = self._run(problem, program)
        if _is_repeatable(grade):
            with self._lock:
                self._cache[key] = grade
                while len(self._cache) > self._cache_size:
                    self._cache.popitem(last=False)
        return grade

    def _run(self, problem: Problem, program: str) -> Grade:
        limits = problem.limits or self._default_limits
        tests = (*problem.public_tests, *problem.hidden_tests)
        job = Job(
            with_preamble(problem.preamble, program),
            tuple(_input_of(test, problem.entry_point) for test in tests),
            limits,
        )
        for _ in range(_TRIES):
            grade = _grade_of(problem, self._sandbox.run(job), limits)
            if not grade.is_infra_error:
                break
        return grade

    def _key(self, problem: Problem, program: str) -> _Key:
        code = hashlib.sha256(program.encode("utf-8", "surrogatepass")).digest()
        return problem.id, self._digest(problem), code

    def _digest(self, problem: Problem) -> bytes:
        """Return a digest of all that a grade depends on besides the program."""
        with self._lock:
            known = self._digests.get(id(problem))
            if known is not None and known[0] is problem:
                return known[1]
        parts = (
            problem.public_tests,
            problem.hidden_tests,
            problem.entry_point,
            problem.preamble,
            problem.compare,
            problem.limits,
        )
        digest = hashlib.sha256(pickle.dumps(parts)).digest()
        with self._lock:
            self._digests[id(problem)] = (problem, digest)
            while len(self._digests) > self._cache_size:
                self._digests.popitem(last=False)
        return digest


def _is_repeatable(grade: Grade) -> bool:
    return all(result.status not in (Status.INFRA_ERROR, Status.TIMEOUT) for result in grade.results)


def _input_of(test: TestCase, entry_point: str | None) -> ProgramInput:
    match test:
        case StdinTest(stdin=stdin):
            return StdinInput(stdin)
        case CallTest(args=args):
            assert entry_point is not None  # Problem sees to it
            return CallInput(entry_point, args)
        case CodeTest(code=code):
            return CodeInput(code)


def _grade_of(problem: Problem, executions: Sequence[Execution], limits: Limits) -> Grade:
    split = len(problem.public_tests)
    return Grade(
        public=tuple(
            _public_result(test, execution, problem.compare, limits)
            for test, execution in zip(problem.public_tests, executions[:split], strict=True)
        ),
        hidden=tuple(
            HiddenResult(_status(test, execution, problem.compare))
            for test, execution in zip(problem.hidden_tests, executions[split:], strict=True)
        ),
        cpu_seconds=sum(execution.cpu_seconds for execution in executions),
    )


def _public_result(test: TestCase, execution: Execution, rule: CompareRule | None, limits: Limits) -> PublicResult:
    is_value = isinstance(test, CallTest) and execution.outcome is Outcome.OK
    return PublicResult(
        test=test,
        status=_status(test, execution, rule),
        output=_cut(_shown(execution.value) if is_value else execution.stdout),
        error=execution.error,
        time_limit=limits.cpu_seconds,
    )


def _status(test: TestCase, execution: Execution, rule: CompareRule | None) -> Status:
    if execution.outcome is not Outcome.OK:
        # A test's code speaks through assertions: that one fails means a wrong answer, not a crash.
        if isinstance(test, CodeTest) and execution.error_type == "AssertionError":
            return Status.WRONG_ANSWER
        return Status(execution.outcome.value)
    match test:
        case StdinTest(expected=expected):
            is_right = outputs_match(execution.stdout, expected, rule)
        case CallTest(expected=expected):
            is_right = values_match(execution.value, expected, exact=rule == "exact")
        case CodeTest():
            is_right = True
    return Status.PASSED if is_right else Status.WRONG_ANSWER


def _shown(value: object) -> str:
    try:
        return repr(value)
    except ValueError:  # the interpreter's bound on printing integers
        return "<a value with an integer too long to print>"


def _cut(text: str) -> str:
    if len(text) <= MAX_OUTPUT_CHARACTERS:
        return text
    return f"{text[:MAX_OUTPUT_CHARACTERS]}\n... (cut, {len(text)} characters in all)"


def with_preamble(preamble: str, program: str) -> str:
    """The program behind its problem's preamble; `from __future__` lines stay first, as Python wants them."""
    if not preamble.strip():
        return program
    lines = program.splitlines(keepends=True)
    future = [line for line in lines if line.startswith("from __future__")]
    rest = [line for line in lines if not line.startswith("from __future__")]
    return "".join([*future, preamble.rstrip("\n") + "\n", *rest])
