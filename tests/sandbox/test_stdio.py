"""Every honest way to read and write must work, and every end of a program must be told apart."""

import pytest

from smalt.sandbox.execution import Outcome
from tests.sandbox.conftest import Run

INPUT = "3\n1 2 3"  # without a final newline, which the sandbox adds

SUM_PROGRAMS = {
    "input": "n = int(input())\nprint(sum(map(int, input().split())))",
    "read": "import sys\nd = sys.stdin.read().split()\nprint(sum(map(int, d[1:])))",
    "buffer.read": "import sys\nd = sys.stdin.buffer.read().split()\nprint(sum(map(int, d[1:])))",
    "buffer.readline": "import sys\nr = sys.stdin.buffer.readline\nr()\nprint(sum(map(int, r().split())))",
    "iterate": "import sys\nl = [line for line in sys.stdin]\nassert l[1] == '1 2 3\\n'\nprint(6)",
    "readlines": "import sys\nl = sys.stdin.readlines()\nassert len(l) == 2\nprint(6)",
    "iter": "lines = list(iter(input, '1 2 3'))\nprint(6)",
    "open(0)": "print(sum(map(int, open(0).read().split()[1:])))",
    "with open(0)": "with open(0) as f:\n    print(sum(map(int, f.read().split()[1:])))",
    "os.read": "import os\nd = os.read(0, os.fstat(0).st_size).split()\nprint(sum(map(int, d[1:])))",
    "fileinput": "import fileinput\nl = list(fileinput.input())\nprint(sum(map(int, l[1].split())))",
    "from sys import stdin": "from sys import stdin\nstdin.readline()\nprint(sum(map(int, stdin.readline().split())))",
    "stdout.write": "import sys\nsys.stdout.write('6\\n')",
    "stdout.buffer.write": "import sys\nsys.stdout.buffer.write(b'6\\n')",
    "os.write": "import os\nos.write(1, b'6\\n')",
    "end": "print(6, end='')",
    "exit": "print(6)\nexit()",
    "quit": "print(6)\nquit(0)",
    "sys.exit": "import sys\nprint(6)\nsys.exit()",
    "os._exit": "import os\nprint(6, flush=True)\nos._exit(0)",
    "global": "c = 0\ndef f():\n    global c\n    c += 6\nf()\nprint(c)",
    "future": "from __future__ import annotations\nprint(6)",
    "main": "def main():\n    print(6)\nif __name__ == '__main__':\n    main()",
    "thread without join": "import threading\nthreading.Thread(target=lambda: print(6)).start()",
    "large stack": "import threading\nthreading.stack_size(1 << 26)\n"
    "t = threading.Thread(target=lambda: print(6))\nt.start()\nt.join()",
    "atexit": "import atexit\natexit.register(print, 6)",
    "redirected": "import sys, io\nreal = sys.stdout\nsys.stdout = io.StringIO()\nprint(6)\n"
    "real.write(sys.stdout.getvalue())",
    "left open": "f = open(1, 'w')\nf.write('6')",
    "numpy": "import numpy as np\nprint(int(np.array([1, 2, 3]).sum()))",
    "asyncio": "import asyncio\nasync def f():\n    print(6)\nasyncio.run(f())",
    "dataclass": "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int = 6\nprint(A().x)",
    "file": "open('a.txt', 'w').write('6')\nprint(open('a.txt').read())",
    "closed stdout": "import sys\nprint(6)\nsys.stdout.flush()\nsys.stdout.close()",
}


@pytest.mark.parametrize("name", SUM_PROGRAMS)
def test_idiom(run: Run, name: str) -> None:
    for execution in run(SUM_PROGRAMS[name], INPUT, INPUT + "\n"):
        assert (execution.outcome, execution.error) == (Outcome.OK, "")
        assert execution.stdout.strip() == "6"


def test_inputs_start_from_a_fresh_namespace(run: Run) -> None:
    program = "assert 'seen' not in globals()\nseen = True\nimport builtins, random, sys\n"
    program += "print(random.random(), print is builtins.print, sys.getrecursionlimit())\n"
    program += "sys.setrecursionlimit(100)\nbuiltins.print = None"
    first, second = run(program, "", "")
    assert first.outcome is second.outcome is Outcome.OK
    assert first.stdout == second.stdout != ""


def test_empty_input_is_at_its_end(run: Run) -> None:
    (execution,) = run("print(input())", "")
    assert execution.error_type == "EOFError"


def test_unicode_and_large_texts_cross(run: Run) -> None:
    text = "é☃𝄞" * 30_000
    (execution,) = run("print(input(), end='')", text)
    assert execution.stdout == text


def test_integers_of_any_size_print(run: Run) -> None:
    (execution,) = run("print(10**5000)")
    assert execution.stdout == "1" + "0" * 5000 + "\n"


@pytest.mark.parametrize(
    ("program", "error_type"),
    [
        ("import sys\nprint(1)\nsys.exit(3)", "SystemExit"),
        ("print(1)\nraise SystemExit('bad input')", "SystemExit"),
        ("import os\nprint(1, flush=True)\nos._exit(5)", "SystemExit"),
        ("print(1)\n1 / 0", "ZeroDivisionError"),
        ("print(1, flush=True)\nimport ctypes\nctypes.string_at(0)", "SIGSEGV"),
        ("print(1, flush=True)\nimport os\nos.abort()", "SIGABRT"),
        ("print(1)\nclass E(BaseException): pass\nraise E", "E"),
    ],
)
def test_failing_ends(run: Run, program: str, error_type: str) -> None:
    for execution in run(program, "", ""):
        assert execution.outcome is Outcome.RUNTIME_ERROR
        assert execution.error_type == error_type
        assert execution.stdout == "1\n"


def test_exit_message_is_the_error(run: Run) -> None:
    (execution,) = run("raise SystemExit('bad input')")
    assert execution.error == "bad input"
