"""Honest ways to write a function that is called or asserted on. All must pass."""

from __future__ import annotations

from typing import Any

import pytest

from tests.verdicts.conftest import Judge, asserted, returned

CALLS: dict[str, tuple[str, Any, tuple[Any, ...]]] = {
    "a function": ("def f(x): return x + 1", 2, (1,)),
    "a lambda": ("f = lambda x: x + 1", 2, (1,)),
    "class Solution": ("class Solution:\n    def f(self, x): return x + 1", 2, (1,)),
    "class Solution with a constructor": (
        "class Solution:\n    def __init__(self): self.n = 1\n    def f(self, x): return x + self.n",
        2,
        (1,),
    ),
    "class Solution beside an imported name": (
        "from math import floor as f\nclass Solution:\n    def f(self, x): return x + 1",
        2,
        (1,),
    ),
    "a function that class Solution calls": (
        "def f(x): return x + 1\nclass Solution:\n    def f(self, x): return f(f(x))",
        2,
        (1,),
    ),
    "an imported function": ("from math import floor as f", 1, (1.5,)),
    "a static method": ("class Solution:\n    @staticmethod\n    def f(x): return x + 1", 2, (1,)),
    "a class method": ("class Solution:\n    @classmethod\n    def f(cls, x): return x + 1", 2, (1,)),
    "a helper below": ("def f(x): return g(x)\ndef g(x): return x + 1", 2, (1,)),
    "a global that changes": ("n = 0\ndef f(x):\n    global n\n    n += x\n    return n", 3, (3,)),
    "a default argument": ("def f(x, y=1): return x + y", 2, (1,)),
    "a decorator": ("import functools\n@functools.cache\ndef f(x): return x + 1", 2, (1,)),
    "a callable object": ("class F:\n    def __call__(self, x): return x + 1\nf = F()", 2, (1,)),
    "a partial": ("from functools import partial\nfrom operator import add\nf = partial(add, 1)", 2, (1,)),
    "annotations of missing types": (
        "from __future__ import annotations\ndef f(x: List[int]) -> Missing: return x + 1",
        2,
        (1,),
    ),
    "type hints": ("from typing import List\ndef f(x: List[int]) -> int: return sum(x)", 3, ([1, 2],)),
    "a main block": ("def f(x): return x + 1\nif __name__ == '__main__':\n    print(f(int(input())))", 2, (1,)),
    "prints on the way": ("def f(x):\n    print('debug', x)\n    return x + 1", 2, (1,)),
    "a list changed in place and returned": ("def f(x):\n    x.sort()\n    return x", [1, 2], ([2, 1],)),
    "deep recursion": ("def f(n): return n and 1 + f(n - 1)", 30000, (30000,)),
    "nothing returned": ("def f(x): pass", None, (1,)),
    "True": ("def f(x): return x > 0", True, (1,)),
    "a tuple for a list": ("def f(x): return (x, x)", [1, 1], (1,)),
    "tuples in a list": ("def f(x): return [(1, 2), (3, 4)]", [[1, 2], [3, 4]], (1,)),
    "a tuple as argument": ("def f(x):\n    assert type(x) is tuple\n    return x[0]", 1, ((1, 2),)),
    "keys that are numbers": ("def f(x): return {1: 'a', (1, 2): 'b'}", {1: "a", (1, 2): "b"}, (1,)),
    "a set": ("def f(x): return set(x)", {1, 2}, ([2, 1, 1],)),
    "a default dictionary": (
        "from collections import defaultdict\ndef f(x):\n    d = defaultdict(list)\n    d[x].append(1)\n    return d",
        {1: [1]},
        (1,),
    ),
    "a counter": ("from collections import Counter\ndef f(x): return Counter(x)", {"a": 2}, ("aa",)),
    "a named tuple": (
        "from collections import namedtuple\nP = namedtuple('P', 'x y')\ndef f(x): return P(x, 2)",
        (1, 2),
        (1,),
    ),
    "an enumeration of numbers": (
        "from enum import IntEnum\nclass E(IntEnum):\n    A = 2\ndef f(x): return E.A",
        2,
        (1,),
    ),
    "0.1 + 0.2": ("def f(x): return 0.1 + 0.2", 0.3, (1,)),
    "floats in lists": ("def f(x): return [0.1 + 0.2, {'a': 1 / 3}]", [0.3, {"a": 0.3333333333333}], (1,)),
    "a whole float for an integer": ("def f(x): return 2.0", 2, (1,)),
    "infinity": ("def f(x): return float('inf')", float("inf"), (1,)),
    "NaN": ("def f(x): return float('nan')", float("nan"), (1,)),
    "a complex number": ("def f(x): return 1 + 2j", 1 + 2j, (1,)),
    "bytes": ("def f(x): return x.encode()", b"a", ("a",)),
    "an integer of 5000 digits": ("def f(x): return 10 ** 5000", 10**5000, (1,)),
    "a text of all planes": ("def f(x): return x[::-1]", "𝄞☃é\0", ("\0é☃𝄞",)),
    "a text of lone surrogates": ("def f(x): return x", "\ud800", ("\ud800",)),
    "a megabyte": ("def f(x): return 'x' * 10**6", "x" * 10**6, (1,)),
    "a deep list": ("def f(n):\n    x = []\n    for _ in range(n): x = [x]\n    return x", [[[[[]]]]], (4,)),
    "numpy integers": ("import numpy as np\ndef f(x): return np.int64(2)", 2, (1,)),
    "numpy truth": ("import numpy as np\ndef f(x): return np.bool_(True)", True, (1,)),
    "numpy arrays": ("import numpy as np\ndef f(x): return np.array([[1, 2], [3, 4]]) * 1.0", [[1, 2], [3, 4]], (1,)),
    "numpy inside": ("import numpy as np\ndef f(x): return {'a': [np.float64(0.5)]}", {"a": [0.5]}, (1,)),
}


@pytest.mark.parametrize("name", CALLS)
def test_call(judge: Judge, name: str) -> None:
    program, expected, args = CALLS[name]
    grade = judge(program, returned(expected, *args), returned(expected, *args), entry_point="f")
    assert grade.passes_all, [(result.status, result.output, result.error) for result in grade.public]


WRONG_CALLS: dict[str, tuple[str, Any, tuple[Any, ...]]] = {
    "the first element only": ("def f(x): return 1", [1, 2, 3], (1,)),
    "1 for True": ("def f(x): return 1", True, (1,)),
    "True for 1": ("def f(x): return True", 1, (1,)),
    "text for a number": ("def f(x): return '1'", 1, (1,)),
    "a list for a text": ("def f(x): return ['a', 'b']", "ab", (1,)),
    "a generator for a list": ("def f(x):\n    yield 1", [1], (1,)),
    "printed, not returned": ("def f(x): print(2)", 2, (1,)),
    "a large integer, one off": ("def f(x): return 50000000000000001", 50000000000000000, (1,)),
    "the function, not its value": ("def f(x): return f", 2, (1,)),
    "a missing key": ("def f(x): return {1: 2}", {1: 2, 3: None}, (1,)),
    "keys that are text": ("def f(x): return {'1': 2}", {1: 2}, (1,)),
    "nothing": ("def f(x): pass", 0, (1,)),
    "an empty list for nothing": ("def f(x): return []", None, (1,)),
}


@pytest.mark.parametrize("name", WRONG_CALLS)
def test_wrong_call(judge: Judge, name: str) -> None:
    program, expected, args = WRONG_CALLS[name]
    grade = judge(program, returned(expected, *args), entry_point="f")
    assert [str(result.status) for result in grade.results] == ["wrong_answer"]


ASSERTIONS: dict[str, tuple[str, str]] = {
    "check(candidate)": ("def f(x): return x + 1", "def check(candidate):\n    assert candidate(1) == 2\n\ncheck(f)"),
    "plain asserts": ("def f(x): return x + 1", "assert f(1) == 2\nassert f(2) == 3"),
    "a metadata line": (
        "def f(x): return x + 1",
        "METADATA = {'author': 'x'}\n\ndef check(candidate):\n    assert candidate(1) == 2, 'message'\n\ncheck(f)",
    ),
    "a tolerance": (
        "def f(x): return x / 3",
        "def check(candidate):\n    assert abs(candidate(1) - 0.333333) < 1e-5\n\ncheck(f)",
    ),
    "math.isclose": ("def f(x): return x / 3", "import math\nassert math.isclose(f(1), 1 / 3)"),
    "a loop": ("def f(x): return x * x", "for n in range(10):\n    assert f(n) == n ** 2"),
    "random inputs": (
        "def f(x): return sorted(x)",
        "import random\nfor _ in range(5):\n    x = [random.random() for _ in range(4)]\n"
        "    assert f(list(x)) == sorted(x)",
    ),
    "an expected error": (
        "def f(x): raise ValueError('no')",
        "try:\n    f(1)\n    assert False\nexcept ValueError:\n    pass",
    ),
    "a list changed in place": ("def f(x): x.reverse()", "x = [1, 2]\nf(x)\nassert x == [2, 1]"),
    "a set of results": ("def f(x): return {x, x + 1}", "assert f(1) == {1, 2}"),
    "keyword arguments": ("def f(x, y=0): return x - y", "assert f(x=3, y=1) == 2"),
    "a result used as an argument": ("def f(x): return x + [1]", "assert f(f([])) == [1, 1]"),
    "a helper of the program": ("def g(x): return x + 1\ndef f(x): return g(x)", "assert f(1) == 2"),
}


@pytest.mark.parametrize("name", ASSERTIONS)
def test_assertion(judge: Judge, name: str) -> None:
    program, code = ASSERTIONS[name]
    grade = judge(program, asserted(code), asserted(code), entry_point="f")
    assert grade.passes_all, [(result.status, result.output, result.error) for result in grade.public]


@pytest.mark.parametrize("name", sorted(set(ASSERTIONS) - {"an expected error"}))
def test_assertion_on_a_wrong_program(judge: Judge, name: str) -> None:
    grade = judge("def f(*args, **more): return 'wrong'", asserted(ASSERTIONS[name][1]), entry_point="f")
    assert [str(result.status) for result in grade.results] in (["wrong_answer"], ["runtime_error"])
