"""Programs are compiled behind the layers; what compiling them takes or breaks is theirs alone."""

import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from smalt.sandbox.execution import Outcome
from smalt.sandbox.forkserver import ForkServerSandbox
from smalt.sandbox.isolation import Layer
from smalt.sandbox.worker import compiling, processes
from tests.sandbox.conftest import Run, descendants, guardians, runner, wait_until

# Each with the outcome of its runs.
HOSTILE = {
    "null byte": ("print(1)\0", Outcome.COMPILE_ERROR),
    "half a pair": ("x = '\udc80'", Outcome.COMPILE_ERROR),
    "a coding that is none": ("# -*- coding: bomb -*-\nprint(1)", Outcome.OK),
    "a coding of other bytes": ("# -*- coding: utf-16 -*-\nprint(1)", Outcome.OK),
    "byte order mark": ("\ufeffprint(1)", Outcome.OK),
    "nested lists": ("x = " + "[" * 100_000 + "]" * 100_000, Outcome.COMPILE_ERROR),
    "nested blocks": ("".join(" " * n + "if 1:\n" for n in range(200)), Outcome.COMPILE_ERROR),
    "signs": ("x = " + "-" * 200_000 + "1", Outcome.MEMORY_LIMIT),
    "attributes": ("def f(): x" + ".a" * 20_000, Outcome.OK),
    "folded text": ("def f(): return ('a' * 10**9) * 10**9", Outcome.OK),
    "folded number": ("def f(): return 2 ** 999999999 << 999999999", Outcome.OK),
    "folded tuple": ("def f(): return ((((((0,) * 250) * 250,) * 250) * 250,) * 250) * 250", Outcome.OK),
    "endless digits": ("def f(): return " + "9" * 3_000_000, Outcome.TIMEOUT),
    "wide list": ("x = [" + "[]," * 1_000_000 + "]", Outcome.MEMORY_LIMIT),
    "warning": ("x = 1 is 1, '\\d'\nassert 0 == 0, (1, 2)", Outcome.OK),
}
CONSTANTS = r"""
'''Documentation.'''
from __future__ import annotations
import sys
def f(a: int = 10**30, *b, c='é☃\ud83d', **d) -> "str":
    '''Of a function.'''
    values = (1, True, 1.0, -0.0, 1e400, 3j, None, ..., b'\0\xff', 'x' * 5, (1, (2, frozenset)), 2**70)
    return values, a in {1, "a", None}, f"{a!r:>3}", 'x' is sys.intern('x')
class A:
    __slots__ = ('y',)
    def g(self): return __class__, (lambda: self)()
def outer(n):
    def inner(): nonlocal n; n += 1; return n
    return inner
try: raise ExceptionGroup('e', [ValueError(1)])
except* ValueError: pass
match [1, 2]:
    case [x, *rest]: print(x, rest)
print(f(), f.__doc__, f.__annotations__, __doc__, A().g()[0], outer(1)(), f.__code__.co_filename)
print(list(f.__code__.co_positions()), f.__code__.co_lines is not None, outer.__qualname__)
1 / int(input())
"""


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ForkServerSandbox, Path]]:
    """A sandbox whose server's standard error is a file."""
    said = tmp_path_factory.mktemp("said") / "stderr"
    before = os.dup(2)
    with said.open("w") as file:
        os.dup2(file.fileno(), 2)
    try:
        sandbox = ForkServerSandbox(workers=1)
    finally:
        os.dup2(before, 2)
        os.close(before)
    with sandbox:
        yield sandbox, said


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_source_harms_its_own_runs_alone(started, name: str) -> None:
    sandbox, said = started
    source, outcome = HOSTILE[name]
    before = descendants(guardians(sandbox)[0])
    for is_separate in (False, True):
        executions = runner(sandbox)(source, "", "", is_separate=is_separate, cpu_seconds=0.4, memory_mb=100)
        assert {execution.outcome for execution in executions} == {outcome}
    assert descendants(guardians(sandbox)[0]) == before
    assert said.read_text() == ""


def test_code_that_was_compiled_apart_is_the_same_code(run: Run, run_apart: Run) -> None:
    together, apart = (go(CONSTANTS, "1", "0") for go in (run, run_apart))
    assert [(one.outcome, one.stdout, one.error) for one in apart] == [
        (one.outcome, one.stdout, one.error) for one in together
    ]
    assert [one.outcome for one in apart] == [Outcome.OK, Outcome.RUNTIME_ERROR]
    assert "1 / int(input())" in apart[1].error


def test_who_compiles_is_locked_and_has_no_inputs(run_apart: Run, sandbox: ForkServerSandbox) -> None:
    if Layer.SECCOMP not in sandbox.isolation.present:
        pytest.skip("without filters there is nothing to count")
    run_apart("print(1)", "", "")
    server, zygote = descendants(guardians(sandbox)[0])
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run_apart, "def f(): return " + "9" * 3_000_000, "", "", cpu_seconds=0.4)
        [compiler] = _new_child(server, zygote)
        wait_until(lambda: processes.cpu_seconds(compiler) > 0.1)
        filters, files = _filters(compiler), _files(compiler)
        assert {execution.outcome for execution in running.result()} == {Outcome.TIMEOUT}
    assert filters == _filters(zygote) + 1
    assert files == {"/dev/null", "/memfd:file (deleted)", "socket"}


def _new_child(server: int, zygote: int) -> list[int]:
    found: list[int] = []

    def has_come() -> bool:
        found[:] = [pid for pid in processes.children(server) if pid != zygote]
        return bool(found)

    wait_until(has_come)
    return found


def _filters(pid: int) -> int:
    found = re.search(r"Seccomp_filters:\s*(\d+)", Path(f"/proc/{pid}/status").read_text())
    if found is None:
        pytest.skip("this kernel does not say how many filters a process has")
    return int(found[1])


def _files(pid: int) -> set[str]:
    """What the descriptors of a process are open on."""
    return {str(entry.readlink()).partition(":[")[0] for entry in Path(f"/proc/{pid}/fd").iterdir()}


@pytest.mark.parametrize("left", [b"", b"\0", b"nonsense", b"i\1\0\0\0"])
def test_what_is_no_code_is_none(left: bytes) -> None:
    assert compiling.load_code(left) is None
