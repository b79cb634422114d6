import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import pytest

from smalt.grading.grader import Grader, grade
from smalt.grading.policy import GraderStatistics, GradingPolicy
from smalt.grading.results import MAX_OUTPUT_CHARACTERS
from smalt.grading.verdicts import Status
from smalt.problems.problem import CallTest, CodeTest, Limits, Problem, StdinTest
from smalt.sandbox.execution import CallInput, Execution, Job, Outcome, StdinInput
from smalt.sandbox.forkserver import ForkServerSandbox


@pytest.fixture(scope="module")
def sandbox() -> Iterator[ForkServerSandbox]:
    with ForkServerSandbox(1) as opened:
        yield opened


class FakeSandbox:
    """Answers every job with what `answer` says; counts the jobs."""

    def __init__(self, answer: Callable[[Job, int], Execution]) -> None:
        self.answer = answer
        self.jobs: list[Job] = []
        self._lock = threading.Lock()

    def run(self, job: Job) -> Sequence[Execution]:
        with self._lock:
            self.jobs.append(job)
        return [self.answer(job, len(self.jobs)) for _ in job.inputs]

    def close(self) -> None:
        pass


def stdin_problem(**changes: Any) -> Problem:
    fields: dict[str, Any] = {
        "id": "double",
        "statement": "Print twice the number.",
        "public_tests": (StdinTest(stdin="1", expected="2"),),
        "hidden_tests": (StdinTest(stdin="2", expected="4"), StdinTest(stdin="-3", expected="-6\n")),
    }
    return Problem(**{**fields, **changes})


def call_problem(expected: Any, **changes: Any) -> Problem:
    fields: dict[str, Any] = {
        "id": "call",
        "statement": "Return it.",
        "entry_point": "f",
        "public_tests": (CallTest(args=(), expected=expected),),
    }
    return Problem(**{**fields, **changes})


def public_status(sandbox: ForkServerSandbox, problem: Problem, program: str) -> Status:
    return Grader(sandbox, Limits(cpu_seconds=0.5)).grade(problem, program).public[0].status


def test_public_and_hidden_results(sandbox: ForkServerSandbox) -> None:
    grade = Grader(sandbox).grade(stdin_problem(), "n = int(input())\nprint(abs(2 * n))")
    assert [result.status for result in grade.hidden] == [Status.PASSED, Status.WRONG_ANSWER]
    assert grade.public[0].output == "2\n"
    assert (grade.passes_public, grade.passes_hidden, grade.pass_rate) == (True, False, 2 / 3)
    assert grade.public[0].time_limit == Limits().cpu_seconds


STATUSES = {
    "print(2 * int(input()))": Status.PASSED,
    "print(3)": Status.WRONG_ANSWER,
    "": Status.WRONG_ANSWER,
    "print(2 * int(input())": Status.COMPILE_ERROR,
    "print(1 // 0)": Status.RUNTIME_ERROR,
    "print(2)\nraise SystemExit(1)": Status.RUNTIME_ERROR,
    "while True: pass": Status.TIMEOUT,
    "try:\n    while True: pass\nexcept BaseException:\n    pass\nprint(2)": Status.TIMEOUT,
    "x = bytearray(2 << 30)": Status.MEMORY_LIMIT,
    "print('2' * (2 << 20))": Status.OUTPUT_LIMIT,
}


@pytest.mark.parametrize("program", STATUSES)
def test_statuses(sandbox: ForkServerSandbox, program: str) -> None:
    problem = stdin_problem(hidden_tests=())
    assert public_status(sandbox, problem, program) is STATUSES[program]


# Programs and comparisons that graders in use are known to get wrong, with the right verdict.
STDIN_MATRIX = [
    ("import sys\nprint(sys.stdin.buffer.read().decode().split()[0])", "5\n6", "5", True),
    ("import sys\nr = sys.stdin.buffer.readline\nprint(int(r()) + int(r()))", "5\n6", "11", True),
    ("import sys\nprint(len(sys.stdin.readlines()))", "5\n6\n", "2", True),
    ("print('1 \\n2 ')", "", "1\r\n2", True),
    ("print(0.333333333)", "", "0.3333333333333333", True),
    ("print(1.0)", "", "1", True),
    ("print(10**5000)", "", "1" + "0" * 5000, True),
    ("print('x' * (1 << 20), end='')", "", "x" * (1 << 20), True),
    ("print(50000000000000001)", "", "50000000000000000", False),
    ("print('a')", "", "a\nb", False),
    ("", "", "\nb", False),
    ("print(2)\nexit()", "", "2", True),
    ("from __future__ import annotations\nprint(2)", "", "2", True),
    ("c = 0\ndef f():\n    global c\n    c = 2\nf()\nprint(c)", "", "2", True),
]


@pytest.mark.parametrize(("program", "stdin", "expected", "is_right"), STDIN_MATRIX, ids=count())
def test_stdin_matrix(sandbox: ForkServerSandbox, program: str, stdin: str, expected: str, is_right: bool) -> None:
    problem = stdin_problem(public_tests=(StdinTest(stdin=stdin, expected=expected),), hidden_tests=())
    assert (public_status(sandbox, problem, program) is Status.PASSED) is is_right


CALL_MATRIX = [
    ("def f(): return 0.1 + 0.2", 0.3, True),
    ("def f(): return [(1, 2), (3, 4)]", [[1, 2], [3, 4]], True),
    ("def f(): return 1", [1, 2, 3], False),
    ("def f(): return 1", True, False),
    ("def f(): return 10**5000", 10**5000, True),
    ("class A:\n    def __eq__(self, o): return True\ndef f(): return A()", 1, False),
    ("class A(int):\n    def __eq__(self, o): return True\n    __hash__ = None\ndef f(): return A(2)", 1, False),
    ("import sys\ndef f(): sys.exit(0)", None, False),
    ("import os\nos._exit(0)", None, False),
    ("import numpy as np\ndef f(): return np.arange(3)", [0, 1, 2], True),
]


@pytest.mark.parametrize(("program", "expected", "is_right"), CALL_MATRIX, ids=count())
def test_call_matrix(sandbox: ForkServerSandbox, program: str, expected: Any, is_right: bool) -> None:
    assert (public_status(sandbox, call_problem(expected), program) is Status.PASSED) is is_right


def test_exact_rule_tells_tuples_from_lists(sandbox: ForkServerSandbox) -> None:
    problem = call_problem((1,), compare="exact")
    assert public_status(sandbox, problem, "def f(): return (1,)") is Status.PASSED
    assert public_status(sandbox, problem, "def f(): return [1]") is Status.WRONG_ANSWER


@pytest.mark.parametrize(
    ("program", "status"),
    [
        ("def f(): return 1", Status.PASSED),
        ("def f(): return 2", Status.WRONG_ANSWER),
        ("def f(): return 1 / 0", Status.RUNTIME_ERROR),
        ("def g(): pass", Status.RUNTIME_ERROR),
        ("import sys\nsys.exit(0)", Status.RUNTIME_ERROR),
        ("import os\nos._exit(0)", Status.RUNTIME_ERROR),
        ("class A:\n    def __eq__(self, o): return True\ndef f(): exit()", Status.RUNTIME_ERROR),
    ],
)
def test_code_tests(sandbox: ForkServerSandbox, program: str, status: Status) -> None:
    problem = stdin_problem(public_tests=(CodeTest(code="assert f() == 1"),), hidden_tests=())
    assert public_status(sandbox, problem, program) is status


def test_outputs_shown(sandbox: ForkServerSandbox) -> None:
    grader = Grader(sandbox)
    text = grader.grade(call_problem("a"), "def f(): return 'a'").public[0].output
    assert text == "'a'"
    assert "too long" in grader.grade(call_problem(1), "def f(): return [10**5000]").public[0].output
    crash = grader.grade(call_problem(1), "def f():\n    print('here')\n    return 1 / 0").public[0]
    assert crash.output == "here\n"
    assert crash.error.endswith("ZeroDivisionError: division by zero")
    long = grader.grade(call_problem(1), "def f(): return 'x' * 50_000").public[0].output
    assert len(long) < MAX_OUTPUT_CHARACTERS + 100


def test_a_grade_is_remembered_for_the_same_problem_and_program() -> None:
    sandbox = FakeSandbox(lambda job, count: Execution(Outcome.OK, stdout="2"))
    grader = Grader(sandbox)
    problem = stdin_problem(hidden_tests=())
    first = grader.grade(problem, "a")
    assert grader.grade(stdin_problem(hidden_tests=()), "a") == first
    assert len(sandbox.jobs) == 1
    grader.grade(problem, "b")
    grader.grade(stdin_problem(id="other", hidden_tests=()), "a")
    grader.grade(stdin_problem(public_tests=(StdinTest(stdin="1", expected=" 2"),), hidden_tests=()), "a")
    grader.grade(stdin_problem(limits=Limits(cpu_seconds=1), hidden_tests=()), "a")
    grader.grade(stdin_problem(compare={"rule": "tokens", "ignores_case": True}, hidden_tests=()), "a")
    assert len(sandbox.jobs) == 6
    assert grader.statistics.remembered == 1
    assert grader.statistics.programs == 6


def test_the_memory_is_bounded() -> None:
    sandbox = FakeSandbox(lambda job, count: Execution(Outcome.OK, stdout="2"))
    grader = Grader(sandbox, cache_size=2)
    for program in "abcab":
        grader.grade(stdin_problem(hidden_tests=()), program)
    assert len(sandbox.jobs) == 5


@pytest.mark.parametrize("outcome", [Outcome.TIMEOUT, Outcome.INFRA_ERROR])
def test_doubtful_grades_are_not_remembered(outcome: Outcome) -> None:
    sandbox = FakeSandbox(lambda job, count: Execution(outcome, cpu_seconds=1))
    grader = Grader(sandbox)
    grader.grade(stdin_problem(), "a")
    before = len(sandbox.jobs)
    grader.grade(stdin_problem(), "a")
    assert len(sandbox.jobs) == 2 * before


def test_an_infra_error_is_tried_once_more() -> None:
    sandbox = FakeSandbox(lambda job, count: Execution(Outcome.INFRA_ERROR if count == 1 else Outcome.OK, stdout="2"))
    problem = stdin_problem(hidden_tests=())
    assert Grader(sandbox).grade(problem, "a").passes_all
    broken = FakeSandbox(lambda job, count: Execution(Outcome.INFRA_ERROR))
    assert Grader(broken).grade(problem, "a").is_infra_error
    assert (len(sandbox.jobs), len(broken.jobs)) == (2, 2)


def test_statistics_sum_over_programs_and_threads() -> None:
    sandbox = FakeSandbox(lambda job, count: Execution(Outcome.OK, stdout=job.program))
    grader = Grader(sandbox, workers=4, policy=GradingPolicy(audit_share=0))
    grader.grade_many([(stdin_problem(hidden_tests=()), str(number)) for number in range(40)])
    assert grader.statistics == GraderStatistics(programs=40, tests=40, separate_runs=39)


def test_the_policy_reaches_the_examination(sandbox: ForkServerSandbox) -> None:
    grader = Grader(sandbox, policy=GradingPolicy(stops_at_first_failure=True))
    result = grader.grade(stdin_problem(), "print(3)")
    assert (result.status, len(result.results), result.skipped) == (Status.WRONG_ANSWER, 1, 2)


def test_programs_of_one_problem_are_graded_on_a_sandbox_of_their_own() -> None:
    grades = grade(stdin_problem(), ["print(2 * int(input()))", "print(3)"], workers=1)
    assert [one.status for one in grades] == [Status.PASSED, Status.WRONG_ANSWER]
    assert grades[0].wall_seconds > 0


def test_many_keep_their_order_and_run_once() -> None:
    sandbox = FakeSandbox(lambda job, count: Execution(Outcome.OK, stdout=job.program))
    problem = stdin_problem()
    programs = [str(n % 5) for n in range(50)]
    grader = Grader(sandbox, workers=3)
    grades = grader.grade_many([(problem, program) for program in programs])
    assert [grade.public[0].output for grade in grades] == programs
    assert grader.statistics.programs == 5
    assert grader.grade_many([]) == []


def test_public_tests_go_first_and_expected_outputs_stay_out() -> None:
    sandbox = FakeSandbox(lambda job, count: Execution(Outcome.OK))
    problem = call_problem("secret", hidden_tests=(StdinTest(stdin="in", expected="hidden"),))
    Grader(sandbox).grade(problem, "a")
    assert sandbox.jobs[0].inputs == (CallInput("f", ()), StdinInput("in"))
    assert "secret" not in repr(sandbox.jobs[0]) and "hidden" not in repr(sandbox.jobs[0])


@pytest.mark.parametrize(
    "program",
    [
        "def f(x):\n    return helper(x)\n",
        "from __future__ import annotations\ndef f(x: Missing):\n    return helper(x)\n",
    ],
)
def test_a_preamble_stands_before_the_program(program, sandbox):
    problem = Problem(
        id="preamble",
        statement="Call the helper.",
        entry_point="f",
        preamble="def helper(x):\n    return x + 1",
        hidden_tests=(CallTest(args=(1,), expected=2),),
    )
    assert Grader(sandbox).grade(problem, program).passes_all


LEFTOVER = """
import sys
seen = sys.modules.setdefault("seen", [])
seen.append(1)
n = int(input())
print(2 * n if len(seen) == 1 else "spoiled")
"""


def test_what_one_test_leaves_behind_fails_no_other(sandbox: ForkServerSandbox) -> None:
    grader = Grader(sandbox, policy=GradingPolicy(audit_share=0))
    assert grader.grade(stdin_problem(), LEFTOVER).passes_all
    assert grader.statistics.failures_overturned == 2


def test_what_one_test_leaves_behind_passes_no_other(sandbox: ForkServerSandbox) -> None:
    grader = Grader(sandbox, policy=GradingPolicy(audit_share=1))
    grade = grader.grade(stdin_problem(), LEFTOVER.replace("== 1", "> 1"))
    assert [result.status for result in grade.results] == [Status.WRONG_ANSWER] * 3
    assert grader.statistics.passes_overturned == 2


def test_a_program_that_hangs_on_every_test_costs_its_budget_and_one_limit(sandbox: ForkServerSandbox) -> None:
    tests = tuple(StdinTest(stdin=str(number), expected="") for number in range(30))
    grader = Grader(sandbox, Limits(cpu_seconds=0.1), policy=GradingPolicy(program_budget=3))
    grade = grader.grade(stdin_problem(hidden_tests=tests), "if input() != '0':\n    while True: pass")
    assert [result.passed for result in grade.results] == [False, True] + [False] * 29
    assert grade.cpu_seconds < 1
    assert grader.statistics.separate_runs == 1


def test_nobody_waits_for_a_program_beyond_its_limits(sandbox: ForkServerSandbox) -> None:
    """One program of a level sleeps on every test, which costs wall time and no CPU time."""
    wall, budget, count = 0.3, 3, 100
    tests = tuple(StdinTest(stdin=str(number), expected="") for number in range(count))
    slept_on = stdin_problem(public_tests=(), hidden_tests=tests)
    grader = Grader(sandbox, Limits(wall_seconds=wall), policy=GradingPolicy(program_budget=budget, audit_share=0))
    level = [(stdin_problem(), "print(2 * int(input()))"), (slept_on, "import time\ntime.sleep(3600)")]
    started = time.perf_counter()
    other, sleeper = grader.grade_many(level)
    elapsed = time.perf_counter() - started
    assert other.passes_all
    assert {result.status for result in sleeper.results} == {Status.TIMEOUT}
    assert sum(result.wall_seconds > 0 for result in sleeper.results) <= budget
    # Its budget and one confirmation, not its tests: the rest is for a loaded machine.
    assert elapsed < (budget + 1) * wall + 15 < count * wall


def test_programs_are_graded_as_they_come(sandbox: ForkServerSandbox) -> None:
    grader = Grader(sandbox)
    with grader.stream() as submit:
        right = submit(stdin_problem(), "print(2 * int(input()))")
        assert right.result(20).passes_all
        assert submit(stdin_problem(), "print(2 * int(input()))") is right
        wrong = submit(stdin_problem(), "print(1)")
    assert not wrong.result().passes_all
