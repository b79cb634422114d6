"""Verdicts that graders in use get wrong, each case by its name; the right verdict is what must come out."""

from __future__ import annotations

import time
from typing import Any

import pytest

from smalt.problems.problem import Limits, TestCase
from tests.verdicts.conftest import Judge, printed, returned

PASSES: dict[str, tuple[str, TestCase]] = {
    "sys.stdin.buffer.read": (
        "import sys\nprint(sys.stdin.buffer.read().decode().split()[1])",
        printed("6", "5\n6\n"),
    ),
    "buffer.readline twice": (
        "import sys\nr = sys.stdin.buffer.readline\nprint(int(r()), int(r()))",
        printed("5 6", "5\n6\n"),
    ),
    "for line in sys.stdin": ("import sys\nfor line in sys.stdin: print(line.strip())", printed("5\n6", "5\n6\n")),
    "open(0).read()": ("print(len(open(0).read().split()))", printed("2", "5\n6\n")),
    "os.read(0)": ("import os\nprint(len(os.read(0, 100).split()))", printed("2", "5\n6\n")),
    "sys.stdout.buffer.write": ("import sys\nsys.stdout.buffer.write(b'6\\n')", printed("6")),
    "sys.stdin.readlines() on input ending in a newline": (
        "import sys\nprint(len(sys.stdin.readlines()))",
        printed("2", "5\n6\n"),
    ),
    "module-level global in a function": (
        "c = 0\ndef f():\n    global c\n    c += 6\nf()\nprint(c)",
        printed("6"),
    ),
    "from __future__ import annotations first": (
        "from __future__ import annotations\ndef f(x: Missing): return x\nprint(f(6))",
        printed("6"),
    ),
    "exit() after printing": ("print(6)\nexit()", printed("6")),
    "import numpy": ("import numpy as np\nprint(np.arange(4).sum())", printed("6")),
    "trailing space on each line": ("print('1 2 \\n3 ')", printed("1 2\n3\n")),
    "trailing space expected": ("print('1 2\\n3')", printed("1 2 \n3 \n\n")),
    "CRLF in expected": ("print('1\\n2')", printed("1\r\n2\r\n")),
    "CRLF in input": ("print(int(input()) + int(input()))", printed("11", "5\r\n6\r\n")),
    "0.333333333 vs 1/3 to 16 digits": ("print(0.333333333)", printed("0.3333333333333333")),
    "0.333333 vs 0.333333333333": ("print('0.333333')", printed("0.333333333333")),
    "1.0 vs 1": ("print(1.0)", printed("1")),
    "5000-digit integer": ("print(10 ** 5000)", printed("1" + "0" * 5000)),
    "5000-digit integer read": ("print(int(input()) % 10)", printed("7", "1" * 5000 + "7")),
    "100 kB of stdout": ("print('x' * 100_000)", printed("x" * 100_000)),
    "190 kB of stdout": ("print('x' * 190_000)", printed("x" * 190_000)),
    "1 MB of stdout": ("print('x' * (1 << 20), end='')", printed("x" * (1 << 20))),
    "100 kB of stderr": ("import sys\nprint('x' * 100_000, file=sys.stderr)\nprint(6)", printed("6")),
    "a large input": ("import sys\nprint(len(sys.stdin.read()))", printed("8000000", "1234567\n" * 1_000_000)),
    "nothing expected, nothing printed": ("pass", printed("")),
}


@pytest.mark.parametrize("name", PASSES)
def test_passes(judge: Judge, name: str) -> None:
    program, test = PASSES[name]
    grade = judge(program, test)
    assert grade.passes_all, [(result.status, result.output[:200], result.error) for result in grade.public]


FAILS: dict[str, tuple[str, TestCase, str]] = {
    "50000000000000001 vs ...000": ("print(50000000000000001)", printed("50000000000000000"), "wrong_answer"),
    "only the first line printed": ("print(1)", printed("1\n2\n3"), "wrong_answer"),
    "nothing printed where the first line is blank": ("pass", printed("\n5"), "wrong_answer"),
    "a line too many": ("print('1\\n2')", printed("1"), "wrong_answer"),
    "another case": ("print('yes')", printed("YES"), "wrong_answer"),
    "numbers run together": ("print('12')", printed("1 2"), "wrong_answer"),
    "right output, then a crash": ("print(6)\n1 / 0", printed("6"), "runtime_error"),
    "right output, then a bad exit": ("print(6)\nexit(1)", printed("6"), "runtime_error"),
    "right output, then an abort": ("import os\nprint(6, flush=True)\nos.abort()", printed("6"), "runtime_error"),
    "right output on standard error": ("import sys\nprint(6, file=sys.stderr)", printed("6"), "wrong_answer"),
    "right output in an error": ("raise SystemExit('6')", printed("6"), "runtime_error"),
    "right output, then a loop": ("print(6, flush=True)\nwhile True: pass", printed("6"), "timeout"),
    "a prompt before the output": ("input('n? ')\nprint(6)", printed("6", "5\n"), "wrong_answer"),
    "a syntax error after the output": ("print(6)\n)", printed("6"), "compile_error"),
    "an input that is not there": ("input()\ninput()\nprint(6)", printed("6", "5\n"), "runtime_error"),
}


@pytest.mark.parametrize("name", FAILS)
def test_fails(judge: Judge, name: str) -> None:
    program, test, status = FAILS[name]
    grade = judge(program, test, limits=Limits(cpu_seconds=0.5, wall_seconds=5.0))
    assert [str(result.status) for result in grade.results] == [status]


VALUES: dict[str, tuple[Any, Any, bool]] = {
    "0.1 + 0.2 vs 0.3": (0.1 + 0.2, 0.3, True),
    "a list of tuples vs lists": ([(1, 2), (3, 4)], [[1, 2], [3, 4]], True),
    "the first element of a list answer": (1, [1, 2, 3], False),
    "a list around the answer": ([1], 1, False),
    "True vs 1": (True, 1, False),
    "a large integer, one off": (2**60 + 1, 2**60, False),
    "a large integer as float": (float(2**60), 2**60 + 1, False),
}


@pytest.mark.parametrize("name", VALUES)
def test_values(judge: Judge, name: str) -> None:
    value, expected, is_right = VALUES[name]
    grade = judge(f"def f():\n    return {value!r}", returned(expected), entry_point="f")
    assert grade.passes_all is is_right


HOSTILE_LOOPS = {
    "swallows": "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
    "ignores alarms": "import signal\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\nsignal.alarm(0)\nwhile True: pass",
    "sleeps": "import time\nwhile True:\n    try: time.sleep(100)\n    except BaseException: pass",
}


@pytest.mark.parametrize("name", HOSTILE_LOOPS)
def test_a_hostile_loop_fails_fast(judge: Judge, name: str) -> None:
    """Peers take 2 to 8 s at a limit of 2 s; a loaded machine takes its time here too."""
    begin = time.monotonic()
    grade = judge(HOSTILE_LOOPS[name], printed("6"), limits=Limits(cpu_seconds=0.3, wall_seconds=1.0))
    assert [str(result.status) for result in grade.results] == ["timeout"]
    assert time.monotonic() - begin < 8


def test_nineteen_of_twenty_tests_keep_their_verdicts(judge: Judge) -> None:
    """One test that hangs, wherever it stands, costs itself only."""
    program = "n = int(input())\nwhile n == 7: pass\nprint(n)"
    tests = [printed(str(n), str(n)) for n in range(20)]
    grade = judge(program, *tests, limits=Limits(cpu_seconds=0.3, wall_seconds=5.0))
    assert [str(result.status) for result in grade.results] == ["passed"] * 7 + ["timeout"] + ["passed"] * 12
    assert grade.pass_rate == 19 / 20
