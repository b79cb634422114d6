"""What is asked: a problem, its tests, and which of them the policy may learn about.

A problem's tests come in two lists. *Public* tests feed the dialogue: their inputs, outputs and expected
outputs may be shown to the policy. *Hidden* tests only score. The two lists stay apart through grading
(`smalt.grading.verdicts`), so that nothing about a hidden test can reach a prompt.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class StdinTest(_Frozen):
    """The program reads `stdin` and must print `expected`."""

    stdin: str
    expected: str


class CallTest(_Frozen):
    """`entry_point(*args)` must return `expected`.

    Values are plain data: None, bool, int, float, str, list, tuple, dict, set. JSON has no tuples, so data
    read from JSON compares lists and tuples as equal unless the problem's `compare` says otherwise.
    """

    args: tuple[Any, ...]
    expected: Any


class CodeTest(_Frozen):
    """`code` runs after the program, in its namespace, and must end without an exception."""

    code: str


TestCase = Annotated[StdinTest | CallTest | CodeTest, Field(union_mode="left_to_right")]
CompareRule = Literal["tokens", "exact", "value"]


class Limits(_Frozen):
    """What one program may use. A `None` in a problem means: as the grader's default."""

    cpu_seconds: float = Field(4.0, gt=0, description="CPU time of one test, in seconds (Cobalt: 4 s).")
    wall_seconds: float = Field(10.0, gt=0, description="Wall time of one test, in seconds; stops sleepers.")
    memory_mb: int = Field(1024, gt=0, description="Address space of the program, in MiB.")
    output_bytes: int = Field(1 << 20, gt=0, description="Output kept of one test; more is output_limit.")


class Problem(_Frozen):
    """One programming task with its tests.

    `entry_point` names the function that call and code tests use; without one the task is a stdin/stdout
    program. `starter_code` is shown to the policy. `preamble` is code that the grader places before every
    program, e.g. the imports and helper functions that the statement shows and that an answer need not
    repeat. `compare` is the comparison rule: "tokens" (whitespace
    tolerant, the default for stdin), "exact", or "value" (the default for calls).
    """

    id: str = Field(min_length=1)
    statement: str = Field(min_length=1)
    public_tests: tuple[TestCase, ...] = ()
    hidden_tests: tuple[TestCase, ...] = ()
    entry_point: str | None = None
    starter_code: str | None = None
    preamble: str = ""
    compare: CompareRule | None = None
    limits: Limits | None = None
    solutions: tuple[str, ...] = ()
    metadata: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _tests_fit(self) -> Problem:
        if not self.public_tests and not self.hidden_tests:
            raise ValueError("a problem needs at least one test in public_tests or hidden_tests")
        calls = any(isinstance(test, CallTest) for test in (*self.public_tests, *self.hidden_tests))
        if calls and not self.entry_point:
            raise ValueError("tests with 'args' need 'entry_point', the name of the function to call")
        return self
