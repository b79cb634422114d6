"""The programs that every design grades: twenty templates times ten numbers, all correct, in three forms.

Plain Python and nothing else: each host process, also one in a peer's environment, makes the workload by itself.
Reading and printing keep to idioms that every peer supports, so that none is slow or quick because it rejects.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random
from typing import Any

from benchmarks.grader.templates import TEMPLATES, Template

ENTRY_POINT = "solve"
VARIANTS = 10
SIZE = VARIANTS * len(TEMPLATES)

_READ = {
    "int": "int(input())",
    "ints": "list(map(int, input().split()))",
    "text": "input()",
}


@dataclass(frozen=True)
class Case:
    """One test in both forms."""

    arguments: tuple[Any, ...]
    result: Any
    stdin: str
    stdout: str


@dataclass(frozen=True)
class Task:
    """One correct program and its tests."""

    name: str
    function: str
    """Source that defines `solve`."""
    script: str
    """The same, reading stdin and printing."""
    cases: tuple[Case, ...]

    @property
    def check(self) -> str:
        """The tests in HumanEval's form: a function `check(candidate)` made of asserts."""
        asserts = [f"    assert candidate{_call(case.arguments)} == {case.result!r}" for case in self.cases]
        return "\n".join(["def check(candidate):", *asserts, ""])


def tasks(programs: int, tests: int) -> list[Task]:
    """Return the first `programs` of the workload with `tests` tests each; templates take turns."""
    return [_task(index, tests) for index in range(programs)]


def _task(index: int, tests: int) -> Task:
    number = index % len(TEMPLATES)
    k = index // len(TEMPLATES) % VARIANTS + 1
    template = TEMPLATES[number]
    name = f"template {number}, number {k}"
    random = Random(name)
    function = template.source.strip().replace("$K", str(k)) + "\n"
    cases = tuple(_case(template, k, template.arguments(random)) for _ in range(tests))
    return Task(name, function, function + _main(template, cases[0].result), cases)


def _case(template: Template, k: int, arguments: tuple[Any, ...]) -> Case:
    # Through JSON and back: an answer must not share objects with the arguments.
    result = json.loads(json.dumps(template.answer(k, *arguments)))
    lines = [_line(argument) for argument in arguments]
    return Case(arguments, result, "\n".join(lines) + "\n", _line(result) + "\n")


def _main(template: Template, result: Any) -> str:
    reading = ", ".join(_READ[kind] for kind in template.kinds)
    star = "*" if isinstance(result, list) else ""
    return f"\nprint({star}{ENTRY_POINT}({reading}))\n"


def _line(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _call(arguments: tuple[Any, ...]) -> str:
    return "(" + ", ".join(map(repr, arguments)) + ")"
