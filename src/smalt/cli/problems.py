"""`smalt problems`: look at a problem file before anything is run on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import click

if TYPE_CHECKING:
    from rich.console import Console

    from smalt.problems.problem import Problem, TestCase

_MAX_SHOWN = 600


@click.group("problems")
def problems() -> None:
    """Look at problem files."""


def _file_options(command: Callable[..., Any]) -> Callable[..., Any]:
    command = click.option("--split", help="Only the problems of this split, e.g. test (MBPP).")(command)
    command = click.option("--format", "format_name", default="auto", show_default=True, help="Format of the file.")(
        command
    )
    return click.argument("file", type=click.Path())(command)


@problems.command("show")
@_file_options
@click.option("--id", "problem_id", help="Only the problem with this id.")
@click.option("--limit", type=click.IntRange(min=1), default=3, show_default=True, help="At most so many problems.")
def show(file: str, format_name: str, split: str | None, problem_id: str | None, limit: int) -> None:
    """Show the problems of FILE: statement, starter code and tests."""
    found = _read(file, format_name, split)
    if problem_id is not None:
        chosen = [problem for problem in found if problem.id == problem_id]
        if not chosen:
            examples = ", ".join(problem.id for problem in found[:5])
            _fail(f"{file}: has no problem with id {problem_id!r}; its ids are like {examples}")
        found = chosen
    console = _console()
    for problem in found[:limit]:
        _print_problem(console, problem)
    if len(found) > limit:
        console.print(f"{len(found) - limit} more problems; see --limit and --id", style="dim")


@problems.command("stats")
@_file_options
def stats(file: str, format_name: str, split: str | None) -> None:
    """Count the problems of FILE, their tests and what they lack."""
    from rich.table import Table

    from smalt.problems.statistics import problem_statistics

    table = Table(title=file, show_header=False)
    for name, value in problem_statistics(_read(file, format_name, split)).items():
        table.add_row(name, value)
    _console().print(table)


def _read(file: str, format_name: str, split: str | None) -> list[Problem]:
    from smalt.problems.reading import read_problems
    from smalt.problems.records import ProblemFileError

    try:
        return read_problems(file, format=format_name, split=split)
    except ProblemFileError as error:
        _fail(str(error))


def _fail(message: str) -> NoReturn:
    click.echo(f"Error: {message}", err=True)
    raise click.exceptions.Exit(2)


def _console() -> Console:
    from rich.console import Console

    # Statements are full of brackets: no markup, no colouring of numbers.
    return Console(markup=False, highlight=False)


def _print_problem(console: Console, problem: Problem) -> None:
    console.rule(problem.id)
    console.print(problem.statement, soft_wrap=True)
    if problem.preamble:
        _print_code(console, "Preamble, placed before the program", problem.preamble)
    if problem.starter_code:
        _print_code(console, "Starter code", problem.starter_code)
    if problem.entry_point:
        console.print(f"\nEntry point: {problem.entry_point}", style="bold")
    for kind, tests in (("public", problem.public_tests), ("hidden", problem.hidden_tests)):
        for number, test in enumerate(tests, start=1):
            console.print(f"\n[{kind}] test {number}", style="green" if kind == "public" else "yellow")
            console.print(_test_text(test, problem.entry_point), soft_wrap=True)
    console.print()


def _print_code(console: Console, title: str, code: str) -> None:
    from rich.syntax import Syntax

    console.print(f"\n{title}:", style="bold")
    console.print(Syntax(code.strip("\n"), "python", background_color="default", word_wrap=True))


def _test_text(test: TestCase, entry_point: str | None) -> str:
    from smalt.dialogue.feedback import clip
    from smalt.dialogue.wording import call_text
    from smalt.problems.problem import CallTest, StdinTest

    if isinstance(test, CallTest):
        call, expected = call_text(test, entry_point), repr(test.expected)
        return f"{clip(call, _MAX_SHOWN)} == {clip(expected, _MAX_SHOWN)}"
    if isinstance(test, StdinTest):
        given, expected = clip(test.stdin, _MAX_SHOWN), clip(test.expected, _MAX_SHOWN)
        return f"input:\n{given}\nexpected:\n{expected}"
    return clip(test.code, _MAX_SHOWN)
