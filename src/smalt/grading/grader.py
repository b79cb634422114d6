"""Grade programs: run them on a problem's tests, compare, and keep public and hidden verdicts apart."""

from __future__ import annotations

import hashlib
import pickle
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

from smalt.grading.examination import Examination
from smalt.grading.policy import GraderStatistics, GradingPolicy
from smalt.grading.verdicts import Grade, Status
from smalt.problems.problem import Limits, Problem
from smalt.sandbox.execution import Sandbox
from smalt.sandbox.forkserver import ForkServerSandbox

_Key = tuple[str, bytes, bytes]
Submit = Callable[[Problem, str], "Future[Grade]"]
"""Takes a program to be graded, at once."""


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
        policy: GradingPolicy | None = None,
    ) -> None:
        """Grade under `default_limits` where a problem has none; `workers` jobs at a time in `grade_many`."""
        self._sandbox = sandbox
        self._default_limits = default_limits or Limits()
        self._workers = workers
        self._cache_size = cache_size
        self._policy = policy or GradingPolicy()
        self._statistics = GraderStatistics()
        self._cache: OrderedDict[_Key, Grade] = OrderedDict()
        # The problem is kept beside its digest: its id() is its own only while it lives.
        self._digests: OrderedDict[int, tuple[Problem, bytes]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def statistics(self) -> GraderStatistics:
        """What grading took so far; the disagreements are worth a look."""
        with self._lock:
            return self._statistics

    def grade(self, problem: Problem, program: str) -> Grade:
        """Return the verdicts on `program`, public tests first."""
        return self._grade(self._key(problem, program), problem, program)

    def grade_many(self, pairs: Sequence[tuple[Problem, str]]) -> list[Grade]:
        """Grade in parallel; grades are in the order of `pairs`. Equal programs for a problem run once."""
        with self.stream() as submit:
            futures = [submit(problem, program) for problem, program in pairs]
            return [future.result() for future in futures]

    @contextmanager
    def stream(self) -> Iterator[Submit]:
        """Grade programs as they come, in parallel; in one `with` block equal programs for a problem run once.

        To submit never waits: what waits for a worker is bounded by what the caller holds. The block ends when all
        is graded, or after an error when the programs that are running are.
        """
        running: dict[_Key, Future[Grade]] = {}
        pool = ThreadPoolExecutor(self._workers, thread_name_prefix="grader")

        def submit(problem: Problem, program: str) -> Future[Grade]:
            key = self._key(problem, program)
            if key not in running:
                running[key] = pool.submit(self._grade, key, problem, program)
            return running[key]

        try:
            yield submit
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
        pool.shutdown()

    def _grade(self, key: _Key, problem: Problem, program: str) -> Grade:
        with self._lock:
            if key in self._cache:
                self._cache.move_to_end(key)
                self._statistics += GraderStatistics(remembered=1)
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
        grade, count = Examination(self._sandbox, problem, program, limits, self._policy).run()
        with self._lock:
            self._statistics += count
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


def grade(
    problem: Problem,
    programs: Sequence[str],
    workers: int = 2,
    default_limits: Limits | None = None,
    policy: GradingPolicy | None = None,
) -> list[Grade]:
    """Grade programs for one problem on a sandbox of their own, which is gone when this returns.

    For more than one problem, keep a sandbox and a `Grader`: a sandbox takes a moment to start.
    """
    with ForkServerSandbox(workers=workers) as sandbox:
        grader = Grader(sandbox, default_limits, workers, policy=policy)
        return grader.grade_many([(problem, program) for program in programs])
