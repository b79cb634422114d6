"""What the policy is told, in words: the templates of every message, and the first message.

The defaults are for chat models that write code. They are blunt about the code block because small models
otherwise open a fence and write the word "python" on the line below it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from smalt.problems.problem import CallTest, CodeTest, Problem, StdinTest, TestCase
from smalt.problems.values import value_text

_PLACEHOLDERS = {
    "task": ("statement", "starter", "rule", "examples", "answer_rule"),
    "starter": ("starter_code",),
    "entry_point_rule": ("entry_point",),
    "examples": ("tests",),
    "fix": ("feedback", "answer_rule"),
    "reconsider": ("answer_rule",),
    "no_code": ("answer_rule",),
}
_REQUIRED = {"task": "statement", "starter": "starter_code", "examples": "tests", "fix": "feedback"}

_ANSWER_RULE = """\
Reply with one code block that holds the complete program, and with nothing else. The first line of your \
reply is ```python (three backticks and the word python together on that line), the last line is ```. Do not \
write a second code block."""


class Wording(BaseModel):
    """Templates of the messages.

    Names in braces stand for parts that are filled in; an empty part leaves no gap.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    system: str = Field(
        "You are a careful Python programmer. You answer each message with a complete, correct program in "
        "one ```python code block.",
        description="System message; empty for none.",
    )
    task: str = Field(
        "{statement}\n\n{starter}\n\n{rule}\n\n{examples}\n\n{answer_rule}",
        description="First user message. Parts: {statement}, {starter}, {rule}, {examples}, {answer_rule}.",
    )
    starter: str = Field(
        "Begin with this code:\n```python\n{starter_code}\n```",
        description="Shows the problem's starter code as {starter_code}; left out when it has none.",
    )
    entry_point_rule: str = Field(
        "Write a function named `{entry_point}`. It will be called by tests: it returns its result, and the "
        "program prints nothing and reads no input.",
        description="{rule} of a problem with a function to write, {entry_point}.",
    )
    stdin_rule: str = Field(
        "Write a program that reads its input from standard input and prints the answer to standard output. "
        "It prints the answer only: no prompts, no explanations.",
        description="{rule} of a problem whose program reads standard input.",
    )
    examples: str = Field(
        "Examples:\n\n{tests}",
        description="Shows the public tests as {tests}; left out unless they are to be shown.",
    )
    fix: str = Field(
        "Your program failed a test.\n\n{feedback}\n\nFind the mistake and correct the program. {answer_rule}",
        description="After a failing public test. Parts: {feedback}, {answer_rule}.",
    )
    reconsider: str = Field(
        "Your program failed no public test, but there are more tests that you do not see. Read the task "
        "once more and consider the edge cases: empty and smallest inputs, largest inputs, repeated or "
        "negative values, time limits. If the program is wrong or too slow for one of them, correct "
        "it; else give it again unchanged. {answer_rule}",
        description="After all public tests passed; asks for a look at edge cases. Part: {answer_rule}.",
    )
    no_code: str = Field(
        "Your reply had no code block, so nothing could be run. {answer_rule}",
        description="After a reply without a code block. Part: {answer_rule}.",
    )
    answer_rule: str = Field(
        _ANSWER_RULE,
        description="How to write the answer; filled in as {answer_rule} in the other messages.",
    )

    @field_validator(*_PLACEHOLDERS)
    @classmethod
    def _placeholders_are_known(cls, template: str, info: ValidationInfo) -> str:
        name = info.field_name or ""
        known = _PLACEHOLDERS[name]
        listed = ", ".join(f"{{{part}}}" for part in known)
        found = re.findall(r"\{(\w+)\}", template)
        unknown = [part for part in found if part not in known]
        if unknown:
            raise ValueError(f"{{{unknown[0]}}} is no part of {name!r}; its parts are {listed}")
        if name in _REQUIRED and _REQUIRED[name] not in found:
            raise ValueError(f"{{{_REQUIRED[name]}}} is missing; without it the message says nothing")
        return template


DEFAULT_WORDING = Wording()


def fill(template: str, parts: Mapping[str, str]) -> str:
    """Put parts in a template's places.

    Filled in one pass, so that braces inside a part mean nothing. An empty part takes the line breaks after
    it along.
    """

    def replacement(match: re.Match[str]) -> str:
        part = parts.get(match[1])
        if part is None:
            return match[0]
        return part + match[2] if part else ""

    return re.sub(r"\{(\w+)\}(\n*)", replacement, template).strip()


def task_message(problem: Problem, wording: Wording = DEFAULT_WORDING, show_public_tests: bool = False) -> str:
    """The first user message: statement, starter code, how the program is run, and how to answer.

    Args:
        problem: the task; nothing of its hidden tests is read.
        wording: the templates.
        show_public_tests: whether the public tests stand in the message as examples. Off by default:
            statements mostly bring examples of their own.
    """
    starter = problem.starter_code or ""
    tests = problem.public_tests if show_public_tests else ()
    shown = "\n\n".join(_example(test, problem) for test in tests)
    return fill(
        wording.task,
        {
            "statement": problem.statement.strip(),
            "starter": fill(wording.starter, {"starter_code": starter.strip("\n")}) if starter.strip() else "",
            "rule": _rule(problem, wording),
            "examples": fill(wording.examples, {"tests": shown}) if shown else "",
            "answer_rule": wording.answer_rule,
        },
    )


def no_code_message(wording: Wording = DEFAULT_WORDING) -> str:
    """The user message after a reply without a code block."""
    return fill(wording.no_code, {"answer_rule": wording.answer_rule})


def call_text(test: CallTest, entry_point: str | None) -> str:
    """A call test's call as code: `f(1, [2, 3])`."""
    return f"{entry_point or 'f'}({', '.join(value_text(argument) for argument in test.args)})"


def fenced(text: str) -> str:
    """Text in a fence that is longer than any run of backticks in it, so that it cannot close the fence."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text.rstrip(chr(10))}\n{fence}"


def _rule(problem: Problem, wording: Wording) -> str:
    if problem.entry_point:
        return fill(wording.entry_point_rule, {"entry_point": problem.entry_point})
    # Tests that are code and name no function say in the statement what they need.
    reads_stdin = any(isinstance(test, StdinTest) for test in (*problem.public_tests, *problem.hidden_tests))
    return wording.stdin_rule if reads_stdin else ""


def _example(test: TestCase, problem: Problem) -> str:
    if isinstance(test, CallTest):
        return fenced(f"{call_text(test, problem.entry_point)} == {test.expected!r}")
    if isinstance(test, CodeTest):
        return fenced(test.code)
    return f"Input:\n{fenced(test.stdin)}\nOutput:\n{fenced(test.expected)}"
