"""Floors, which grade nothing and cost what no design of their kind can go below, and the plain subprocess."""

from __future__ import annotations

import os
import subprocess
import sys

from benchmarks.grader.engine import Check, Options
from benchmarks.grader.workload import ENTRY_POINT, Case, Task


class ForkFloor:
    """`os.fork`, `os._exit`, `os.waitpid` in this small process, once a test. No option."""

    def __init__(self, options: Options) -> None:
        """Nothing to start."""

    def check_of(self, task: Task, form: str) -> Check:
        """As many forks as there are tests."""
        return lambda: all(_fork() for _ in task.cases)

    def close(self) -> None:
        """Nothing to stop."""


def _fork() -> bool:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    return os.waitpid(pid, 0)[1] == 0


class InterpreterFloor:
    """A fresh interpreter that runs `pass`, once a test. Option: `flags` of the interpreter."""

    def __init__(self, options: Options) -> None:
        """Nothing to start."""
        self._command = [sys.executable, *options["flags"], "-c", "pass"]

    def check_of(self, task: Task, form: str) -> Check:
        """As many interpreters as there are tests."""
        return lambda: all(subprocess.run(self._command).returncode == 0 for _ in task.cases)

    def close(self) -> None:
        """Nothing to stop."""


class SubprocessEngine:
    """What everybody writes first: `subprocess.run([python, "-c", program])` for each test, without any limit.

    In form "assert" one process runs the program and its check function. Option: `flags` of the interpreter.
    """

    def __init__(self, options: Options) -> None:
        """Nothing to start."""
        self._command = [sys.executable, *options["flags"], "-c"]

    def check_of(self, task: Task, form: str) -> Check:
        """Prepare the programs' texts."""
        if form == "stdin":
            return lambda: all(self._output(task.script, case) == case.stdout.split() for case in task.cases)
        if form == "call":
            runs = [(f"{task.function}\nprint({ENTRY_POINT}(*{case.arguments!r}))", case) for case in task.cases]
            return lambda: all(self._output(code, case) == str(case.result).split() for code, case in runs)
        code = f"{task.function}\n{task.check}\ncheck({ENTRY_POINT})"
        return lambda: subprocess.run([*self._command, code]).returncode == 0

    def _output(self, program: str, case: Case) -> list[str]:
        ran = subprocess.run([*self._command, program], input=case.stdin, capture_output=True, text=True)
        return ran.stdout.split()

    def close(self) -> None:
        """Nothing to stop."""
