"""Inputs of one job: handed over one at a time, separate where wanted, their results out of each other's reach."""

import pytest

from smalt.sandbox.execution import CallInput, Outcome
from tests.sandbox.conftest import Run

LOOK_AROUND = """
import gc, os, sys
WORD = 'TOKEN-' + 'NUMBER-'
def texts():
    for thing in gc.get_objects():
        if isinstance(thing, (dict, list, tuple)) and len(thing) < 1000:
            yield from (part for part in thing if isinstance(part, str))
            yield from (str(part) for part in thing if isinstance(part, bytes))
    frame = sys._getframe()
    while frame:
        yield from map(repr, frame.f_locals.values())
        frame = frame.f_back
    for number in range(1024):
        try: yield repr(os.pread(number, 1 << 20, 0))
        except OSError: pass
def around():
    for text in texts():
        while WORD in text:
            text = text[text.index(WORD) + len(WORD):]
            yield text[:1]
token = input()
print(sorted(set(around()) & set('0123') - set(token[-1:])))
"""
TOKENS = [f"TOKEN-NUMBER-{n}" for n in range(4)]


def test_later_inputs_are_out_of_reach(run: Run) -> None:
    for number, execution in enumerate(run(LOOK_AROUND, *TOKENS, cpu_seconds=5, wall_seconds=60)):
        assert (execution.outcome, execution.error) == (Outcome.OK, "")
        assert not any(later in execution.stdout for later in map(str, range(number + 1, 4)))


def test_separate_runs_see_no_other_input(run_apart: Run) -> None:
    for execution in run_apart(LOOK_AROUND, *TOKENS, cpu_seconds=5, wall_seconds=60):
        assert (execution.outcome, execution.stdout) == (Outcome.OK, "[]\n")


def test_separate_runs_share_nothing(run: Run, run_apart: Run) -> None:
    program = "import math, os\nwas = hasattr(math, 'mark') or os.path.exists('f')\n"
    program += "math.mark = 1\nopen('f', 'w')\nprint(was)"
    assert [execution.stdout for execution in run(program, "", "")] == ["False\n", "True\n"]
    assert [execution.stdout for execution in run_apart(program, "", "")] == ["False\n", "False\n"]


ENDS = {
    "exit": "import os\nos._exit(0)",
    "crash": "import ctypes\nctypes.string_at(0)",
    "loop": "while True: pass",
    "error": "1 / 0",
    "memory": "x = bytearray(10**10)",
}


@pytest.mark.parametrize("end", ENDS)
def test_separate_runs_end_as_batched_ones(run: Run, run_apart: Run, end: str) -> None:
    program = f"print(1, flush=True)\nif input() == '1':\n    {ENDS[end].replace(chr(10), chr(10) + '    ')}"
    batched, apart = (how(program, "0", "1", "0", cpu_seconds=0.5, wall_seconds=30) for how in (run, run_apart))
    for one, other in zip(batched, apart, strict=True):
        assert (one.outcome, one.stdout, one.error_type, one.error) == (
            other.outcome,
            other.stdout,
            other.error_type,
            other.error,
        )
    assert batched[2].outcome is Outcome.OK


def test_separate_calls_and_stopping(run_apart: Run) -> None:
    program = "def f(x): return [x, 1 // x]"
    inputs = [CallInput("f", (n,)) for n in (1, 0, 2)]
    assert [execution.value for execution in run_apart(program, *inputs)] == [[1, 1], None, [2, 0]]
    assert len(run_apart(program, *inputs, stop=True)) == 2


def test_programs_that_crash_or_tire_the_compiler(run_apart: Run) -> None:
    slow = "x = (" + "1," * 3_000_000 + ")"
    for execution in run_apart(slow, "", "", cpu_seconds=0.2, wall_seconds=30):
        assert execution.outcome is Outcome.TIMEOUT
    for execution in run_apart("x = (", "", ""):
        assert (execution.outcome, execution.error_type) == (Outcome.COMPILE_ERROR, "SyntaxError")


def test_time_for_all_inputs_together(run: Run, run_apart: Run) -> None:
    program = "import time\nbegin = time.process_time()\nwhile time.process_time() - begin < 0.25: pass\nprint(1)"
    for how in (run, run_apart):
        executions = how(program, *[""] * 6, cpu_seconds=2, cpu_seconds_total=0.7, wall_seconds=60)
        outcomes = [execution.outcome for execution in executions]
        assert outcomes == [Outcome.OK] * 2 + [Outcome.TIMEOUT] * 4
        assert sum(execution.cpu_seconds for execution in executions) < 1
        assert "together" in executions[-1].error


def test_wall_time_for_all_inputs_together(run: Run, run_apart: Run) -> None:
    for how in (run, run_apart):
        executions = how("import time\ntime.sleep(60)", *[""] * 6, wall_seconds=0.2, wall_seconds_total=0.5)
        assert {execution.outcome for execution in executions} == {Outcome.TIMEOUT}
        assert 0.5 <= sum(execution.wall_seconds for execution in executions) < 5
        assert executions[-1].wall_seconds == 0 and "together" in executions[-1].error


def test_peak_memory_is_told(run: Run, run_apart: Run) -> None:
    program = "x = bytearray(int(input()))\nx[::4096] = b'1' * len(x[::4096])"
    for how in (run, run_apart):
        small, large = how(program, "10", str(100 << 20))
        assert 0 < small.peak_memory_bytes < 60 << 20 < 100 << 20 < large.peak_memory_bytes < 200 << 20


MEDDLING = {
    "junk on every descriptor": "for n in range(3, 1024):\n    for junk in (b'x', b'p', b'w', b'u', b'r', b'pppp'):\n"
    "        try: os.write(n, junk)\n        except OSError: pass",
    "many ready messages": "for _ in range(500):\n    try: os.write(203, b'p')\n    except OSError: break",
    "everything closed": "os.closerange(0, 1024)",
    "everything truncated": "for n in range(1024):\n    try: os.ftruncate(n, 0)\n    except OSError: pass",
    "append mode": "import fcntl\nfor n in range(1024):\n    try: fcntl.fcntl(n, fcntl.F_SETFL, os.O_APPEND)\n"
    "    except OSError: pass",
    "blocking mode": "import fcntl\nfor n in range(1024):\n    try: fcntl.fcntl(n, fcntl.F_SETFL, os.O_NONBLOCK)\n"
    "    except OSError: pass",
    "descriptors moved": "for n in range(200, 206):\n    for m in range(200, 206):\n"
    "        try: os.dup2(n, m)\n        except OSError: pass",
    "a report of its own": "import json\nos.pwrite(202, json.dumps({'outcome': 'infra_error'}).encode(), 0)\n"
    "os.write(203, b'p')",
    "a wrong report": "os.pwrite(202, b'\\xff' * 100, 0)\nos.write(203, b'p')",
    "no channel": "import socket\nsocket.socket(fileno=203).shutdown(2)",
    "json replaced": "import json, json.encoder, marshal\njson.dumps = json.JSONEncoder.encode = lambda *a: 'x'\n"
    "marshal.loads = lambda *a: 1 / 0",
    "exit": "os._exit(70)",
}


@pytest.mark.parametrize("name", MEDDLING)
def test_meddling_fails_the_program_and_nobody_else(run: Run, run_apart: Run, name: str) -> None:
    program = f"import os\nx = input()\nprint('ok', x, flush=True)\nif x == '2':\n    {MEDDLING[name]}"
    program = program.replace(MEDDLING[name], MEDDLING[name].replace("\n", "\n    "))
    for how in (run, run_apart):
        executions = how(program, *"012345", cpu_seconds=1, wall_seconds=30)
        assert [execution.stdout for execution in executions[:2]] == ["ok 0\n", "ok 1\n"]
        assert all(execution.outcome is Outcome.OK for execution in executions[:2])
        assert all(execution.outcome is not Outcome.INFRA_ERROR for execution in executions)
        assert executions[5].stdout in ("ok 5\n", "") and len(executions) == 6
        assert how("print(1)")[0].stdout == "1\n"


def test_results_of_a_job_are_bounded(run: Run) -> None:
    program = "def f(): return 'x' * (6 << 20)"
    outcomes = [execution.outcome for execution in run(program, *[CallInput("f", ())] * 9, cpu_seconds=5)]
    assert outcomes[:3] == [Outcome.OK] * 3
    assert outcomes[-1] is Outcome.OUTPUT_LIMIT


def test_no_trace_of_an_earlier_program(run: Run) -> None:
    run("print(input())\nopen('left', 'w').write('x')", "TOKEN-NUMBER-1")
    (execution,) = run(LOOK_AROUND + "print(os.listdir())", "x", cpu_seconds=5, wall_seconds=60)
    assert execution.stdout == "[]\n[]\n"
