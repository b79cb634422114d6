import time

import pytest

from smalt.sandbox.execution import CallInput, Outcome
from tests.sandbox.conftest import Run

LOOPS = {
    "plain": "while True: pass",
    "except": "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
    "signals ignored": "import signal\nfor s in set(signal.Signals) - {9, 19}:\n"
    "    try: signal.signal(s, signal.SIG_IGN)\n    except (OSError, ValueError): pass\nwhile True: pass",
    "timer off": "import signal\nsignal.setitimer(signal.ITIMER_PROF, 0)\nwhile True: pass",
    "in C": "10 ** 10 ** 9",
    "regular expression": "import re\nre.match('(a+)+b', 'a' * 60)",
    "thread": "import threading\ndef f():\n    while True: pass\nthreading.Thread(target=f).start()",
    "repr of an exception": "class E(Exception):\n    def __str__(self):\n        while True: pass\nraise E",
}


@pytest.mark.parametrize("name", LOOPS)
def test_busy_loops_end_at_the_cpu_limit(run: Run, name: str) -> None:
    begin = time.monotonic()
    (execution,) = run(LOOPS[name], cpu_seconds=0.3)
    assert execution.outcome is Outcome.TIMEOUT
    assert time.monotonic() - begin < 5


def test_compiling_is_limited_as_well(run: Run) -> None:
    (execution,) = run("x = " + "+".join(["1"] * 3) + "\ny = (" + "1," * 3_000_000 + ")", cpu_seconds=0.2)
    assert execution.outcome is Outcome.TIMEOUT


def test_sleepers_end_at_the_wall_limit(run: Run) -> None:
    program = "print('before', flush=True)\nimport time\nwhile True:\n    try: time.sleep(60)\n    except: pass"
    begin = time.monotonic()
    (execution,) = run(program, wall_seconds=0.4)
    assert (execution.outcome, execution.stdout) == (Outcome.TIMEOUT, "before\n")
    assert time.monotonic() - begin < 3


def test_stopped_processes_end_at_the_wall_limit(run: Run) -> None:
    (execution,) = run("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", wall_seconds=0.4)
    assert execution.outcome is Outcome.TIMEOUT


def test_each_input_has_its_own_time(run: Run) -> None:
    program = "import time\nbegin = time.process_time()\nwhile time.process_time() - begin < 0.15: pass"
    assert [execution.outcome for execution in run(program, *[""] * 4, cpu_seconds=0.4)] == [Outcome.OK] * 4


@pytest.mark.parametrize(
    "program",
    [
        "x = bytearray(10**9)",
        "x = []\nwhile True: x.append(bytes(10**6))",
        "import numpy\nx = numpy.ones(10**9)",
        "x = 'a'\nwhile True: x += x",
    ],
)
def test_memory(run: Run, program: str) -> None:
    outcomes = [execution.outcome for execution in run(program, "", "", memory_mb=400, cpu_seconds=4)]
    assert outcomes == [Outcome.MEMORY_LIMIT] * 2


def test_a_caught_memory_error_is_no_failure(run: Run) -> None:
    program = "try:\n    x = bytearray(10**9)\nexcept MemoryError:\n    print('caught')"
    assert run(program, memory_mb=400)[0].stdout == "caught\n"


FLOODS = {
    "print": "while True: print('x' * 1000)",
    "one write": "print('x' * 10**7)",
    "descriptor": "import os\nwhile True: os.write(1, b'x' * 1000)",
    "swallowed": "while True:\n    try: print('x' * 1000)\n    except Exception: pass",
    "exit": "import os, sys\nsys.stdout.write('x' * 20000)\nsys.stdout.flush()\nos._exit(0)",
}


@pytest.mark.parametrize("name", FLOODS)
def test_output_floods(run: Run, name: str) -> None:
    for execution in run(FLOODS[name], "", "", output_bytes=10_000, cpu_seconds=0.3):
        assert execution.outcome is Outcome.OUTPUT_LIMIT
        assert execution.stdout == "x" * 1000 + execution.stdout[1000:] and len(execution.stdout) <= 10_000


def test_output_up_to_the_limit(run: Run) -> None:
    first, second = run("print('x' * 999_999)", "", "", output_bytes=1_000_000)
    assert first.outcome is second.outcome is Outcome.OK
    assert len(second.stdout) == 1_000_000


def test_an_input_may_be_longer_than_the_output_limit(run: Run) -> None:
    assert run("print(len(input()))", "x" * 100_000, output_bytes=100)[0].stdout == "100000\n"


def test_large_values(run: Run) -> None:
    (execution,) = run("def f(): return 'x' * (20 << 20)", CallInput("f", ()))
    assert execution.outcome is Outcome.OUTPUT_LIMIT


def test_deep_recursion(run: Run) -> None:
    plain = "def f(n): return n and 1 + f(n - 1)\n"
    cached = "import sys, functools\nsys.setrecursionlimit(10**6)\nf = functools.lru_cache(None)(f)\n"
    first, second = run(plain + "print(f(45000))")[0], run(plain + cached + "print(f(50000))")[0]
    assert (first.stdout, second.stdout) == ("45000\n", "50000\n")
    assert run(plain + "f(10**6)")[0].error_type == "RecursionError"


def test_bottomless_recursion_is_the_programs_failure(run: Run) -> None:
    program = "import sys, functools\nsys.setrecursionlimit(10**9)\n@functools.lru_cache(None)\n"
    program += "def f(n): return f(n + 1)\nf(0)"
    (execution,) = run(program, cpu_seconds=4, wall_seconds=60)
    assert execution.outcome in (Outcome.RUNTIME_ERROR, Outcome.MEMORY_LIMIT)
