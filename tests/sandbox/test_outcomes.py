"""Calls, test code, errors as text, and inputs that fail in the middle of a job."""

import pytest

from smalt.sandbox.execution import CallInput, CodeInput, Outcome
from smalt.sandbox.worker.values import Opaque, ValueEncodingError
from tests.sandbox.conftest import Run


def test_call_returns_plain_data(run: Run) -> None:
    program = "def f(*args):\n    print('seen')\n    return args, {1: {2}}, b'x', 10**40, float('inf'), None"
    (execution,) = run(program, CallInput("f", (1, "a", [2.5], (True,))))
    expected = ((1, "a", [2.5], (True,)), {1: {2}}, b"x", 10**40, float("inf"), None)
    assert execution.value == expected
    assert execution.stdout == "seen\n"


def test_call_of_a_solution_method(run: Run) -> None:
    program = "class Solution:\n    def twice(self, x):\n        return 2 * x"
    assert run(program, CallInput("twice", (4,)))[0].value == 8


def test_main_block_does_not_run_for_calls(run: Run) -> None:
    program = "def f():\n    return 1\nif __name__ == '__main__':\n    print(f() / 0)"
    assert run(program, CallInput("f", ()), CodeInput("assert f() == 1"))[0].value == 1


def test_arguments_do_not_leak_between_calls(run: Run) -> None:
    shared = [3]
    program = "def f(items):\n    items.append(1)\n    return len(items)"
    first, second = run(program, CallInput("f", (shared,)), CallInput("f", (shared,)))
    assert (first.value, second.value, shared) == (2, 2, [3])


def test_values_that_are_no_data(run: Run) -> None:
    always_equal = "class A:\n    def __eq__(self, other): return True\ndef f(): return A()"
    assert isinstance(run(always_equal, CallInput("f", ()))[0].value, Opaque)
    cyclic = run("def f():\n    a = []\n    a.append(a)\n    return a", CallInput("f", ()))[0]
    assert (cyclic.outcome, cyclic.error_type) == (Outcome.RUNTIME_ERROR, "ValueEncodingError")


def test_arguments_must_be_plain(run: Run) -> None:
    with pytest.raises(ValueEncodingError):
        run("def f(x): return x", CallInput("f", (object(),)))


@pytest.mark.parametrize("test", [CallInput("f", ()), CodeInput("f()")])
def test_a_program_that_shows_its_own_traceback_quotes_its_own_lines(run: Run, test: CallInput | CodeInput) -> None:
    program = (
        "import sys, traceback\ndef f():\n    try:\n        [][1]\n"
        "    except IndexError:\n        traceback.print_exc(file=sys.stdout)"
    )
    (execution,) = run(program, test)
    assert [line.strip() for line in execution.stdout.splitlines()][1:3] == [
        'File "solution.py", line 4, in f',
        "[][1]",
    ]


def test_missing_entry_point(run: Run) -> None:
    (execution,) = run("def g(): pass", CallInput("f", ()))
    assert execution.error == "NameError: name 'f' is not defined"


@pytest.mark.parametrize(
    "program",
    [
        "import sys\nsys.exit(0)",
        "exit()",
        "import os\nos._exit(0)",
        "def f():\n    raise SystemExit(0)",
        "import os\ndef f():\n    os._exit(0)",
        "import threading, os\ndef f():\n    threading.Thread(target=os._exit, args=(0,)).start()\n    while 1: pass",
    ],
)
def test_leaving_early_passes_no_test(run: Run, program: str) -> None:
    for execution in run(program, CodeInput("assert f() == 1"), CallInput("f", ())):
        assert (execution.outcome, execution.error_type) == (Outcome.RUNTIME_ERROR, "SystemExit")


def test_code_input(run: Run) -> None:
    good, bad = run("def f(): return 1", CodeInput("assert f() == 1"), CodeInput("x = 2\nassert f() == x"))
    assert good.outcome is Outcome.OK
    assert bad.error_type == "AssertionError"
    assert bad.error.splitlines()[1:3] == ['  File "test.py", line 2, in <module>', "    assert f() == x"]


def test_error_text_shows_the_program_only(run: Run) -> None:
    program = "import json\ndef f(text):\n    return json.loads(text)\n"
    (execution,) = run(program, CallInput("f", ("{",)))
    assert execution.error_type == "JSONDecodeError"
    assert execution.error.splitlines()[:3] == [
        "Traceback (most recent call last):",
        '  File "solution.py", line 3, in f',
        "    return json.loads(text)",
    ]
    assert "json/" not in execution.error


def test_error_text_is_bounded(run: Run) -> None:
    program = "def f(n):\n    if n: f(n - 1)\n    raise ValueError('x' * 10**6 + '\\n' * 100)\nf(100)"
    (execution,) = run(program)
    assert len(execution.error.splitlines()) <= 12
    assert len(execution.error) <= 4000


def test_compile_errors(run: Run) -> None:
    for program in ("x = (", "def f(:\n  pass", "\0", "return 1", "x = '\ud800'", "(" * 500 + ")" * 500):
        for execution in run(program, "", CodeInput("pass")):
            assert execution.outcome is Outcome.COMPILE_ERROR, program
    assert 'File "solution.py", line 1' in run("x = (")[0].error


def test_a_hostile_exception_text_is_left_out(run: Run) -> None:
    program = "class E(Exception):\n    def __str__(self): raise E\nraise E"
    (execution,) = run(program)
    assert execution.error_type == "E"


def test_finished_inputs_keep_their_results(run: Run) -> None:
    program = "import ctypes, os, time\ndef f(how):\n    if how == 'crash': ctypes.string_at(0)\n"
    program += "    if how == 'exit': os._exit(0)\n    while how == 'loop': pass\n    return how"
    inputs = [CallInput("f", (how,)) for how in ("a", "crash", "b", "exit", "loop", "c")]
    outcomes = [execution.outcome for execution in run(program, *inputs, cpu_seconds=0.3)]
    error = Outcome.RUNTIME_ERROR
    assert outcomes == [Outcome.OK, error, Outcome.OK, error, Outcome.TIMEOUT, Outcome.OK]


def test_stopping_at_the_first_failure(run: Run) -> None:
    program = "import os\nn = int(input())\nif n == 2: 1 / 0\nif n == 3: os._exit(1)"
    assert len(run(program, "1", "2", "1", stop=True)) == 2
    assert len(run(program, "1", "3", "1", stop=True)) == 2
    assert len(run(program, "1", "1", "1", stop=True)) == 3
    worn = "if input() == '2': x = bytearray(10**10)"
    assert [execution.outcome for execution in run(worn, "1", "2", "1", stop=True)] == [
        Outcome.OK,
        Outcome.MEMORY_LIMIT,
    ]
    flood = "print('x' * 10**5 if input() == '2' else 1)"
    assert len(run(flood, "1", "2", "1", stop=True, output_bytes=1000)) == 2
