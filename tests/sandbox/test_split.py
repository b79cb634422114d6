"""Test code and program in two processes: honest tests work, and a program cannot pass itself."""

import pytest

from smalt.sandbox.execution import CodeInput, Execution, Outcome
from tests.sandbox.conftest import Run

ALWAYS_EQUAL = """
class E:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    __lt__ = __gt__ = __le__ = __ge__ = __contains__ = __eq__
    def __sub__(self, other): return self
    __add__ = __radd__ = __rsub__ = __abs__ = __round__ = lambda self, *rest: self
    def __hash__(self): return 1
    def __bool__(self): return True
    def __len__(self): return 3
def f(*args): return E()
"""


def code(text: str) -> CodeInput:
    return CodeInput(text, entry_point="f")


def only(executions: list[Execution]) -> Execution:
    (execution,) = executions
    return execution


HONEST = {
    "plain": ("def f(x): return x + 1", "assert f(1) == 2"),
    "check": ("def f(x): return x + 1", "def check(c):\n    for n in range(30): assert c(n) == n + 1\ncheck(f)"),
    "keywords": ("def f(a, *, b): return a - b", "assert f(a=3, b=1) == 2 and f(3, b=1) == 2"),
    "types": ("def f(x): return x", "for v in (1, 2.5, 'a', b'b', None, True, (1, (2,)), {1: {2}}, 10**60, 1j,\n"
              "          float('inf'), frozenset([3]), range(3)): assert f(v) == v and type(f(v)) is type(v), v"),
    "rare types": ("from collections import *\nfrom decimal import Decimal\nfrom fractions import Fraction\n"
                   "def f(x): return [Counter('aab'), deque([1]), Decimal('0.1'), Fraction(1, 3)][x]",
                   "from collections import deque\nfrom decimal import Decimal\nfrom fractions import Fraction\n"
                   "assert f(0) == {'a': 2, 'b': 1} and f(1) == deque([1]) and f(2) == Decimal('0.1')\n"
                   "assert f(3) * 3 == 1"),
    "arrays": ("import numpy as np\ndef f(x): return np.array(x) * 2",
               "assert np.allclose(f([1, 2]), [2, 4])\nassert (f([1, 2]) == np.array([2, 4])).all()"),
    "nan": ("def f(x): return float('nan')", "assert f(1) != f(1), 'NaN equals nothing'"),
    "nan among others": ("def f(x): return [1.0, float('nan')]",
                         "import math\nassert [math.isnan(n) for n in f(1)] == [False, True]"),
    "changed in place": ("def f(x): x.sort()\n", "a = [3, 1]\nassert f(a) is None\nassert a == [1, 3]"),
    "expected error": ("def f(x): raise ValueError('no ' + x)",
                       "try: f('x')\nexcept ValueError as e: assert str(e) == 'no x'\nelse: assert False"),
    "custom error": ("class Odd(ValueError): pass\ndef f(x): raise Odd(x)",
                     "try: f('x')\nexcept ValueError: pass\nelse: assert False"),
    "generator": ("def f(n):\n    for k in range(n): yield k", "assert list(f(3)) == [0, 1, 2]\nassert sum(f(3)) == 3\n"
                  "g = f(2)\nassert next(g) == 0 and next(g) == 1 and next(g, 'end') == 'end'"),
    "function back": ("def f(n): return lambda x: x + n", "assert f(2)(3) == 5"),
    "builtin given": ("def f(g, x): return g(x)", "assert f(len, [1]) == 1 and f(int, '3') == 3"),
    "method": ("class Solution:\n    def f(self, x): return x + 1", "assert f(1) == 2"),
    "solution object": ("class Solution:\n    def g(self, x): return x + 1", "assert Solution().g(1) == 2"),
    "object": ("class P:\n    def __init__(self, x): self.x = x\n    def __len__(self): return 7\n"
               "def f(x): return P(x)",
               "p = f(3)\nassert p.x == 3 and len(p) == 7\np.x = 4\nassert p.x == 4"),
    "modules by name": ("import math\ndef f(x): return x", "assert math.isclose(f(1.0), 1.0)"),
    "printing": ("def f(x): print('called'); return x", "assert f(1) == 1\nprint('tested')"),
    "recursion": ("def f(n): return n and 1 + f(n - 1)", "assert f(20000) == 20000"),
    "large": ("def f(n): return list(range(n))", "assert f(200_000)[-1] == 199_999"),
    "large inputs": ("def f(x): x.append(len(x)); return len(x)",
                     "assert f([]) == 1\na = ['a' * (5 << 20)] * 2\nassert f(a) == 3 and a[2] == 2"),
    "state": ("calls = []\ndef f(x): calls.append(x); return len(calls)", "assert [f(0), f(0)] == [1, 2]"),
    "unittest": ("def f(x): return x", "import unittest\nclass T(unittest.TestCase):\n"
                 "    def test(self): self.assertEqual(f([1]), [1])\n"
                 "r = unittest.TestResult()\nT('test').run(r)\nassert r.wasSuccessful()"),
}  # fmt: skip


@pytest.mark.parametrize("name", HONEST)
def test_honest_tests_pass(run: Run, name: str) -> None:
    program, test = HONEST[name]
    for execution in run(program, code(test), code(test)):
        assert (execution.outcome, execution.error, execution.is_low_trust) == (Outcome.OK, "", False)


CHEATS = {
    "always equal": ALWAYS_EQUAL,
    "raise StopIteration": "def f(*args): raise StopIteration",
    "raise AssertionError": "def f(*args): raise AssertionError",
    "exit": "def f(*args): raise SystemExit(0)",
    "hard exit": "import os\ndef f(*args): os._exit(0)",
    "exit at once": "import os\nos._exit(0)",
    "frames": "import sys\ndef f(*args):\n    frame = sys._getframe()\n    while frame:\n"
    "        for value in list(frame.f_locals.values()) + list(frame.f_globals.values()):\n"
    "            if isinstance(value, str) and 'ANSWER-' in value:\n"
    "                return value[value.index('ANSWER-'):][:10]\n        frame = frame.f_back",
    "memory": "import gc\ndef f(*args):\n    for thing in gc.get_objects():\n"
    "        if isinstance(thing, (dict, list, tuple)) and 'ANSWER-' in repr(thing)[:10**6]:\n"
    "            text = repr(thing)\n            return text[text.index('ANSWER-'):][:10]",
    "descriptors": "import os\ndef f(*args):\n    for n in range(3, 1024):\n        try: data = os.pread(n, 10**6, 0)\n"
    "        except OSError: continue\n        if b'ANSWER-' in data:\n"
    "            return data[data.index(b'ANSWER-'):][:10].decode()",
    "messages": "import json, os, struct\ndef f(*args):\n    for n in range(3, 1024):\n"
    "        for message in (b'p', json.dumps({'outcome': 'ok', 'is_low_trust': False}).encode()):\n"
    "            try: os.write(n, message)\n            except OSError: pass",
    "answers to come": "import json, os, struct\ndef f(*args):\n    m = json.dumps(['ok', None, []]).encode()\n"
    "    for n in range(200, 210):\n        try: os.write(n, (struct.pack('!I', len(m)) + m) * 50)\n"
    "        except OSError: pass",
    "uncompiled": "import json, os, struct\ndef f(*args):\n"
    "    m = json.dumps(['uncompiled', 'ok', 'ok', 'ok']).encode()\n"
    "    for n in range(200, 210):\n        try: os.write(n, struct.pack('!I', len(m)) + m)\n"
    "        except OSError: pass",
    "builtins": "import builtins\nbuiltins.AssertionError = KeyError\nbuiltins.all = lambda x: True\n"
    "def all(x): return True\ndef abs(x): return 0\ndef f(*args): return 1",
    "kill": "import os, signal\ndef f(*args):\n    for n in range(1, 5000):\n        try:\n"
    "            if n != os.getpid(): os.kill(n, 9)\n        except OSError: pass",
}
TESTS = [
    "assert f(3) == 'ANSWER-' + str(417)",
    "assert abs(len(f(3)) - 10) < 1 and f(3) == 'ANSWER-' + str(417)",
    "assert all(map(lambda n: f(n) == 'ANSWER-' + str(417), [1, 2]))",
    "def check(c):\n    want = ['ANSWER-' + str(417)]\n    assert c(3) in want\ncheck(f)",
    "x = 'ANSWER-' + str(417)\nassert not (f(3) != x)",
]


@pytest.mark.parametrize("name", CHEATS)
def test_cheats_fail(run: Run, name: str) -> None:
    for execution in run(CHEATS[name], *map(code, TESTS), cpu_seconds=3, wall_seconds=60):
        assert execution.outcome not in (Outcome.OK, Outcome.INFRA_ERROR)
    assert run("def f(x): return x", code("assert f(1) == 1"))[0].outcome is Outcome.OK


def test_how_programs_fail(run: Run) -> None:
    def failed(program: str) -> tuple[Outcome, str]:
        execution = only(run(program, code("assert f(1) == 1"), cpu_seconds=0.5, wall_seconds=30))
        return execution.outcome, execution.error_type

    assert failed("def f(x): return 2") == (Outcome.RUNTIME_ERROR, "AssertionError")
    assert failed("def f(x): return 1 / 0") == (Outcome.RUNTIME_ERROR, "ZeroDivisionError")
    assert failed("class Odd(Exception): pass\ndef f(x): raise Odd") == (Outcome.RUNTIME_ERROR, "Odd")
    assert failed("def f(x: return 1") == (Outcome.COMPILE_ERROR, "SyntaxError")
    assert failed("1 / 0") == (Outcome.RUNTIME_ERROR, "ZeroDivisionError")
    assert failed("def g(x): return 1") == (Outcome.RUNTIME_ERROR, "NameError")
    assert failed("def f(x):\n    while True: pass") == (Outcome.TIMEOUT, "")
    assert failed("def f(x): return bytearray(10**10)") == (Outcome.MEMORY_LIMIT, "MemoryError")
    assert failed("import os\ndef f(x): os._exit(0)") == (Outcome.RUNTIME_ERROR, "SystemExit")
    assert failed("import ctypes\ndef f(x): ctypes.string_at(0)") == (Outcome.RUNTIME_ERROR, "SIGSEGV")
    assert failed("def f(x):\n    while True: print('x' * 10**5)")[0] in (Outcome.OUTPUT_LIMIT, Outcome.TIMEOUT)


def test_the_programs_own_traceback_is_told(run: Run) -> None:
    execution = only(run("def f(x):\n    return 1 / x", code("x = 0\nassert f(x) == 1")))
    assert execution.error.splitlines()[1:3] == ['  File "solution.py", line 2, in f', "    return 1 / x"]
    execution = only(run("def f(x): return 2", code("x = 0\nassert f(x) == 1")))
    assert execution.error.splitlines()[1:3] == ['  File "test.py", line 2, in <module>', "    assert f(x) == 1"]


def test_output_of_both_is_kept(run: Run) -> None:
    first, second = run("def f(x): print('program', x)", *map(code, ("f(1)\nprint('test')", "f(2)")))
    assert sorted(first.stdout.splitlines()) == ["program 1", "test"]
    assert second.stdout == "program 2\n"


def test_every_input_starts_afresh_and_a_dead_program_is_replaced(run: Run, run_apart: Run) -> None:
    program = (
        "import os\nseen = []\ndef f(x):\n    if x == 'die': os._exit(1)\n    seen.append(x)\n    return len(seen)"
    )
    tests = [code("assert f(1) == 1"), code("f('die')"), code("assert f(1) == 1")]
    for how in (run, run_apart):
        outcomes = [execution.outcome for execution in how(program, *tests)]
        assert outcomes == [Outcome.OK, Outcome.RUNTIME_ERROR, Outcome.OK]


LOW_TRUST = {
    "a helper of the program": ("def g(x): return x\ndef f(x): return x", "assert g(f(1)) == 1"),
    "objects compared": ("class A:\n    def __eq__(s, o): return True\ndef f(x): return A()", "assert f(1) == f(2)"),
    "a function given": ("def f(g, x): return g(x)", "assert f(lambda x: x + 1, 1) == 2"),
    "a function given late": (
        "def f(g, x): return g(x)",
        "assert f(int, '1') == 1 and list(f(range, 2)) == [0, 1]\nassert f(lambda x: x + 1, 1) == 2",
    ),
    "a builtin that does not cross": ("def f(g, x): return g(x)", "assert f(ord, 'a') == 97"),
    "nested deep": (
        "def f(x): return 0 if x == [] else 1 + f(x[0])",
        "x = []\nfor _ in range(300): x = [x]\nassert f(x) == 300",
    ),
    "large from the start": ("def f(x): return len(x)", "assert f(['a' * (5 << 20)] * 2) == 2"),
    "an object given": ("def f(o): return o.x", "class A: x = 3\nassert f(A()) == 3"),
    "streams": (
        "def f(x): print(x)",
        "import io, sys\nsys.stdout = s = io.StringIO()\nf(1)\nassert s.getvalue() == '1\\n'",
    ),
}


@pytest.mark.parametrize("name", LOW_TRUST)
def test_what_needs_the_programs_word_is_marked(run: Run, name: str) -> None:
    program, test = LOW_TRUST[name]
    execution = only(run(program, code(test)))
    assert (execution.outcome, execution.is_low_trust) == (Outcome.OK, True)


def test_without_an_entry_point_they_share_a_process(run: Run) -> None:
    execution = only(run("def f(x): return x", CodeInput("assert f(1) == 1")))
    assert (execution.outcome, execution.is_low_trust) == (Outcome.OK, True)


def test_libraries_ask_nothing_of_the_programs_objects(run: Run) -> None:
    program = (
        "class A:\n    __array_interface__ = {'shape': (1,), 'typestr': '<i8', 'data': (4096, True), 'version': 3}\n"
    )
    program += (
        "    def __array__(self, *rest): return 1\n    def __deepcopy__(self, memo): return 1\ndef f(x): return A()"
    )
    test = "import numpy as np\nassert np.array(f(1)).dtype == object"
    assert only(run(program + "\nimport numpy", code(test))).outcome is not Outcome.INFRA_ERROR
    assert only(run(program, code("import copy\nassert copy.deepcopy(f(1)) == 1"))).outcome is Outcome.RUNTIME_ERROR


def test_a_program_cannot_ask_to_share_a_process(run: Run) -> None:
    """Comparing its object with the test's value fails, and does not fall back to its own comparison."""
    execution = only(run(ALWAYS_EQUAL, code("assert f(1) == 2")))
    assert (execution.outcome, execution.error_type) == (Outcome.RUNTIME_ERROR, "AssertionError")
