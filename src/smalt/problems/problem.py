"""What is asked: a problem, its tests, and which of them the policy may learn about.

A problem's tests come in two lists. *Public* tests feed the dialogue: their inputs, outputs and expected
outputs may be shown to the policy. *Hidden* tests only score. The two lists stay apart through grading
(`smalt.grading.verdicts`), so that nothing about a hidden test can reach a prompt.
"""

from __future__ import annotations

import ast
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator


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


class Limits(_Frozen):
    """What one program may use. A `None` in a problem means: as the grader's default."""

    cpu_seconds: float = Field(4.0, gt=0, description="CPU time of one test, in seconds (Cobalt: 4 s).")
    wall_seconds: float = Field(10.0, gt=0, description="Wall time of one test, in seconds; stops sleepers.")
    memory_mb: int = Field(1024, gt=0, description="Address space of the program, in MiB.")
    output_bytes: int = Field(1 << 20, gt=0, description="Output kept of one test; more is output_limit.")


class ExactRule(_Frozen):
    """Printed: the same text. Returned: the same value, with list and tuple apart and floats equal."""

    rule: Literal["exact"]


class TokensRule(_Frozen):
    """Printed output as words between white space; a float matches a number within the tolerances."""

    rule: Literal["tokens"]
    relative_tolerance: float = Field(1e-6, ge=0, lt=1, description="Of the larger of the two numbers.")
    absolute_tolerance: float = Field(1e-6, ge=0, allow_inf_nan=False, description="Whatever their size.")
    ignores_case: bool = Field(False, description="Whether YES, Yes and yes are one answer.")
    ignores_order: bool = Field(False, description="Whether the tokens may come in any order.")


class LinesRule(_Frozen):
    """Printed output line by line, for answers whose spacing matters; white space at line ends does not."""

    rule: Literal["lines"]
    ignores_case: bool = Field(False, description="Whether YES, Yes and yes are one answer.")
    ignores_order: bool = Field(False, description="Whether the lines may come in any order.")


class ValueRule(_Frozen):
    """Returned values as plain data; a float matches a number within the tolerances."""

    rule: Literal["value"]
    relative_tolerance: float = Field(1e-9, ge=0, lt=1, description="Of the larger of the two numbers.")
    absolute_tolerance: float = Field(1e-9, ge=0, allow_inf_nan=False, description="Whatever their size.")
    tells_tuples_from_lists: bool = Field(False, description="Whether (1, 2) is wrong where [1, 2] is expected.")
    unordered: Literal["nothing", "outermost", "everywhere"] = Field(
        "nothing", description="Which lists may hold their items in any order."
    )
    equals_as_python: bool = Field(
        False, description="Whether Python's == decides alone: 0 is False, (1,) is not [1], no tolerance, no NaN."
    )

    @field_validator("equals_as_python")
    @classmethod
    def _decides_alone(cls, value: bool, others: ValidationInfo) -> bool:
        settings = [name for name in others.data if name != "rule"]
        changed = [name for name in settings if others.data[name] != cls.model_fields[name].default]
        if value and changed:
            raise ValueError(f"decides alone; drop {', '.join(changed)}")
        return value


class CheckerRule(_Frozen):
    """A program decides, for problems with several right answers; `docs/grading.md` has its contract."""

    rule: Literal["checker"]
    program: str = Field(description="Python source that defines check(input, output, expected) -> bool.")
    limits: Limits | None = Field(None, description="Limits of one call of check; the test's own by default.")

    @field_validator("program")
    @classmethod
    def _defines_check(cls, program: str) -> str:
        try:
            names = [node.name for node in ast.parse(program).body if isinstance(node, ast.FunctionDef)]
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ValueError(f"is not Python: {error}") from None
        if "check" not in names:
            raise ValueError("must define check(input, output, expected) at its top level")
        return program


CompareName = Literal["tokens", "exact", "value"]
RuleObject = Annotated[ExactRule | TokensRule | LinesRule | ValueRule | CheckerRule, Field(discriminator="rule")]
CompareRule = CompareName | RuleObject
"""A comparison rule: a name for the rule with its defaults, or an object with its settings."""

_RULES: dict[str, type[_Frozen]] = {
    "exact": ExactRule,
    "tokens": TokensRule,
    "lines": LinesRule,
    "value": ValueRule,
    "checker": CheckerRule,
}
_RULE_FORM = f"""an object is {{"rule": one of {", ".join(_RULES)}, ..its settings}}"""
_JUDGED: dict[type[_Frozen], tuple[type[_Frozen], ...]] = {
    TokensRule: (StdinTest,),
    LinesRule: (StdinTest,),
    ValueRule: (CallTest,),
}


class Problem(_Frozen):
    """One programming task with its tests.

    `entry_point` names the function that call and code tests use; without one the task is a stdin/stdout
    program. `starter_code` is shown to the policy. `preamble` is code that the grader places before every
    program, e.g. the imports and helper functions that the statement shows and that an answer need not
    repeat. `compare` is the comparison rule: "tokens" (white-space
    tolerant, the default for stdin), "exact", "value" (the default for calls), or a rule object with settings
    of its own. A test that a rule does not concern is compared by its kind's default.
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

    @field_validator("compare", mode="before")
    @classmethod
    def _known_rule(cls, value: Any) -> Any:
        if value is None or isinstance(value, _Frozen) or value in get_args(CompareName):
            return value
        if not isinstance(value, dict):
            raise ValueError(f"Input should be 'tokens', 'exact' or 'value', or an object; {_RULE_FORM}")
        rule = value.get("rule")
        if not isinstance(rule, str) or rule not in _RULES:
            raise ValueError(f"rule {rule!r} is unknown; {_RULE_FORM}")
        try:
            return _RULES[rule](**value)
        except ValidationError as error:
            complaint = error.errors()[0]
            field = ".".join(map(str, complaint["loc"]))
            known = ", ".join(_RULES[rule].model_fields)
            message = complaint["msg"].removeprefix("Value error, ")
            raise ValueError(f"{field}: {message} (fields of rule {rule!r}: {known})") from None

    @model_validator(mode="after")
    def _rule_fits(self) -> Problem:
        if self.compare is None or isinstance(self.compare, str):
            return self
        judged = _JUDGED.get(type(self.compare), (StdinTest, CallTest))
        if not any(isinstance(test, judged) for test in (*self.public_tests, *self.hidden_tests)):
            wanted = " or ".join(repr(next(iter(kind.model_fields))) for kind in judged)
            raise ValueError(
                f"compare: rule {self.compare.rule!r} judges tests with {wanted} and there are none; drop 'compare'"
            )
        return self

    @model_validator(mode="after")
    def _tests_fit(self) -> Problem:
        if not self.public_tests and not self.hidden_tests:
            raise ValueError("a problem needs at least one test in public_tests or hidden_tests")
        calls = any(isinstance(test, CallTest) for test in (*self.public_tests, *self.hidden_tests))
        if calls and not self.entry_point:
            raise ValueError("tests with 'args' need 'entry_point', the name of the function to call")
        return self
