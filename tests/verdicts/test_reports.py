"""What users of other graders reported, each as a test: the issue is named, its symptom must not occur."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from smalt.grading.grader import Grader
from smalt.problems.problem import CallTest, CodeTest, Limits, Problem, StdinTest
from smalt.sandbox.forkserver import ForkServerSandbox
from smalt.sandbox.worker.processes import children
from tests.verdicts.conftest import Judge, asserted, printed, problem, returned

_SHORT = Limits(cpu_seconds=0.3, wall_seconds=3.0)
_LOOP = "while True: pass"


def _statuses(grade: object) -> list[str]:
    return [str(result.status) for result in grade.results]  # type: ignore[attr-defined]


class TestGradersThatHangOrLeak:
    def test_no_zombie_stays_after_a_timeout(self, sandbox: ForkServerSandbox) -> None:
        """rllm#915, rllm!918."""
        grader = Grader(sandbox, _SHORT)
        grader.grade(problem(printed("6")), "print(6)")
        before = set(children(os.getpid()))
        for n in range(3):
            assert _statuses(grader.grade(problem(printed("6")), f"{_LOOP} #{n}")) == ["timeout"]
        assert set(children(os.getpid())) <= before

    def test_a_busy_loop_does_not_freeze_the_other_programs(self) -> None:
        """verl#288, verl!1466, AISBench/benchmark#182: everybody gets a verdict, and the batch ends."""
        with ForkServerSandbox(workers=2) as sandbox:
            pairs = [(problem(printed("6")), f"print(6) #{n}" if n % 4 else f"{_LOOP} #{n}") for n in range(16)]
            grades = Grader(sandbox, _SHORT).grade_many(pairs)
        assert [_statuses(grade)[0] for grade in grades] == ["timeout", *["passed"] * 3] * 4

    def test_the_program_goes_on_after_grading(self) -> None:
        """verl!1466, evalscope#449: no lingering child keeps the interpreter from its end, closed or not."""
        code = """
from smalt.grading.grader import Grader
from smalt.problems.problem import Problem, StdinTest
from smalt.sandbox.forkserver import ForkServerSandbox
problem = Problem(id="x", statement="x", hidden_tests=(StdinTest(stdin="", expected="6"),))
print(Grader(ForkServerSandbox(2)).grade(problem, "print(6)").passes_all)
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (0, "True\n")

    def test_grading_inside_a_forked_worker(self) -> None:
        """modelscope/evalscope#449: a grader that is made in a worker of a pool works there."""
        with multiprocessing.get_context("fork").Pool(1) as pool:
            assert pool.apply_async(_grade_in_worker).get(timeout=60)

    def test_grading_from_a_thread_that_ends(self) -> None:
        made: list[ForkServerSandbox] = []
        thread = threading.Thread(target=lambda: made.append(ForkServerSandbox(1)))
        thread.start()
        thread.join()
        with made[0] as sandbox:
            assert Grader(sandbox).grade(problem(printed("6")), "print(6)").passes_all

    def test_many_callers_at_once(self) -> None:
        """verl#3478, SandboxFusion#67: trivial programs of many callers all get their verdicts."""
        with ForkServerSandbox(workers=2) as sandbox, ThreadPoolExecutor(32) as pool:
            grader = Grader(sandbox)
            row = problem(printed("6"))
            assert all(pool.map(lambda n: grader.grade(row, f"print(6) #{n}").passes_all, range(128)))

    def test_the_output_before_a_timeout_is_kept(self, judge: Judge) -> None:
        """UKGovernmentBEIS/inspect_ai#1979."""
        grade = judge(f"print('so far', flush=True)\n{_LOOP}", printed("6"), limits=_SHORT)
        assert (_statuses(grade), grade.public[0].output) == (["timeout"], "so far\n")

    def test_a_program_that_breaks_its_own_sandbox_hurts_itself_only(self, judge: Judge) -> None:
        """inspect_ai#4709, inspect_ai#2779."""
        breakers = (
            "import os, signal\nfor pid in (1, os.getppid(), -1):\n    try: os.kill(pid, 9)\n    except OSError: pass",
            "for n in range(10**6): open(str(n), 'w').write('x' * 10**5)",
            "import os\nos.closerange(0, 1 << 16)",
        )
        for program in breakers:
            grade = judge(program, printed("6"), limits=_SHORT)
            assert not grade.passes_all and not grade.is_infra_error
            assert judge(f"print(6) #{hash(program)}", printed("6")).passes_all

    def test_a_loop_in_the_checking_itself_is_a_verdict(self, judge: Judge) -> None:
        """datacurve-ai/deep-swe#1: a program that hangs in the middle of being checked is wrong, not absent."""
        program = "class A:\n    def __repr__(self):\n        while True: pass\n    __eq__ = __len__ = __repr__\n"
        program += "def f(): return A()"
        for test in (returned(5), asserted("assert f() == 5")):
            grade = judge(program, test, entry_point="f", limits=_SHORT)
            assert not grade.passes_all and not grade.is_infra_error

    def test_large_inputs_do_not_pile_up(self, judge: Judge) -> None:
        """allenai/open-instruct!851, OpenRLHF#1139."""
        stdin = "1234567\n" * 500_000
        before = _resident_bytes()
        for n in range(3):
            grade = judge(f"import sys\nprint(len(sys.stdin.read())) #{n}", *[printed(str(len(stdin)), stdin)] * 4)
            assert grade.passes_all
        assert _resident_bytes() - before < 100 << 20


class TestWrongVerdicts:
    def test_buffered_input_in_all_its_forms(self, judge: Judge) -> None:
        """AISBench#517, lighteval!1257, evalscope!1435, NeMo-Gym!2824."""
        for read in (
            "b.read().split()",
            "[b.readline(), b.readline()]",
            "b.readlines()",
            "list(b)",
            "[next(b), next(b)]",
        ):
            program = f"import sys\nb = sys.stdin.buffer\nprint(*(int(x) for x in {read}))"
            assert judge(program, printed("5 6", "5\n6\n")).passes_all, read

    def test_tolerance_in_lists_of_function_tests(self, judge: Judge) -> None:
        """NVIDIA-NeMo/Gym!2956, LiveCodeBench#129 and #133."""
        assert judge(
            "def f(): return [0.1 + 0.2, 1 / 3]", returned([0.3, 0.3333333333333333]), entry_point="f"
        ).passes_all
        assert judge("print(0.1 + 0.2, 2 ** 0.5)", printed("0.3 1.41421356237")).passes_all

    def test_integers_beyond_4300_digits(self, judge: Judge) -> None:
        """NVIDIA-NeMo/Gym!2956."""
        assert judge("print(int(input()) + 1)", printed("1" + "0" * 5000, "9" * 5000)).passes_all
        assert judge("def f(x): return x + 1", returned(10**5000, 10**5000 - 1), entry_point="f").passes_all

    def test_a_function_task_stays_one_when_tests_are_left_out(self, judge: Judge) -> None:
        """rllm#128."""
        whole = problem(returned(2, 1), returned(3, 2), entry_point="f")
        part = whole.model_copy(update={"public_tests": whole.public_tests[1:]})
        with ForkServerSandbox(workers=1) as sandbox:
            assert Grader(sandbox).grade(part, "def f(x): return x + 1").passes_all

    def test_a_loaded_machine_does_not_change_verdicts(self) -> None:
        """openai/human-eval#40, evalplus#5, LiveBench#52: limits are CPU time."""
        program = "import time\nbegin = time.process_time()\nwhile time.process_time() - begin < 0.2: pass\nprint(6)"
        limits = Limits(cpu_seconds=0.45, wall_seconds=60.0)
        with ForkServerSandbox(workers=4) as sandbox:
            pairs = [(problem(printed("6")), f"{program} #{n}") for n in range(8)]
            assert all(grade.passes_all for grade in Grader(sandbox, limits, workers=4).grade_many(pairs))

    def test_the_same_program_gets_the_same_verdict_every_time(self, sandbox: ForkServerSandbox) -> None:
        """GavinZhengOI/LiveCodeBench-Pro#12."""
        program = "import random\nprint(list({'a', 'b', 'c'}), random.random(), hash('x'))"
        outputs = {Grader(sandbox).grade(problem(printed("6")), program).public[0].output for _ in range(6)}
        assert len(outputs) == 1

    def test_a_constant_that_satisfies_the_test_shown_does_not_pass(self, judge: Judge) -> None:
        """EleutherAI/lm-evaluation-harness#4212: hidden tests count, and a right program passes them."""
        row = Problem(
            id="hidden",
            statement="Add one.",
            entry_point="f",
            public_tests=(CallTest(args=(1,), expected=2),),
            hidden_tests=(CallTest(args=(5,), expected=6), CodeTest(code="assert f(9) == 10")),
        )
        with ForkServerSandbox(workers=1) as sandbox:
            grader = Grader(sandbox)
            cheat, right = grader.grade(row, "def f(x): return 2"), grader.grade(row, "def f(x): return x + 1")
        assert (cheat.passes_public, cheat.passes_all, right.passes_all) == (True, False, True)

    def test_numpy_under_a_memory_limit(self, judge: Judge) -> None:
        """numpy#17856, OpenBLAS#4762."""
        program = "import numpy as np\nprint(int(np.ones((50, 50)).dot(np.ones((50, 50))).sum()))"
        assert judge(program, printed("125000"), limits=Limits(memory_mb=256)).passes_all


class TestRewardHacking:
    def test_an_object_equal_to_everything(self, judge: Judge) -> None:
        """openai/human-eval!67."""
        program = "class A:\n    def __eq__(self, other): return True\ndef f(x): return A()"
        code = "def check(candidate):\n    assert candidate(1) == 5\n\ncheck(f)"
        assert not judge(program, returned(5, 1), entry_point="f").passes_all
        assert not judge(program, asserted(code), entry_point="f").passes_all

    def test_a_syntax_error_is_not_an_empty_set_of_tests(self, judge: Judge) -> None:
        """SWE-bench/SWE-smith#24."""
        for test in (returned(5, 1), asserted("assert f(1) == 5"), printed("")):
            grade = judge("def f(x:\n", test, entry_point="f")
            assert (_statuses(grade), grade.passes_all) == (["compile_error"], False)

    def test_forged_lines_of_success(self, judge: Judge) -> None:
        """SWE-bench!620."""
        program = "print('PASSED test_f\\n1 passed in 0.01s')\nimport os\nos._exit(0)"
        for test in (returned(5, 1), asserted("assert f(1) == 5"), printed("5")):
            assert not judge(program, test, entry_point="f").passes_all

    def test_its_own_tests_do_not_count(self, judge: Judge) -> None:
        """Oxen-AI/GRPO-With-Cargo-Feedback#2."""
        program = "def f(x): return 0\ndef check(candidate): assert True\ndef test_f(): assert True\ncheck(f)\ntest_f()"
        assert not judge(
            program, asserted("def check(candidate):\n    assert candidate(1) == 5\n\ncheck(f)"), entry_point="f"
        ).passes_all

    def test_no_test_means_no_pass(self) -> None:
        """A problem without tests cannot be made, so nothing can pass for want of tests."""
        try:
            Problem(id="none", statement="x")
        except ValueError:
            return
        raise AssertionError("a problem without tests was made")


def _grade_in_worker() -> bool:
    row = Problem(id="x", statement="x", hidden_tests=(StdinTest(stdin="", expected="6"),))
    with ForkServerSandbox(workers=1) as sandbox:
        return Grader(sandbox).grade(row, "print(6)").passes_all


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_leak_would_be_seen() -> None:
    """The checks above count children of this process; they must be able to see one."""
    before = set(children(os.getpid()))
    with subprocess.Popen(["sleep", "0.3"]) as process:
        assert set(children(os.getpid())) - before == {process.pid}
        time.sleep(0.01)
