"""Examples in a docstring as call tests.

HumanEval's docstrings show examples in many hands' notations. Read are doctests (`>>> f(1)` and the value on
the next line) and, on one line, `f(1) == 2`, `= 2`, `=> 2`, `==> 2`, `-> 2`, `➞ 2`, `# => 2`, `returns 2`,
`should return 2`. Also `Input: n = 1` / `Output: 2`, and `For n = 1 the output should be 2`. An example whose
arguments or value are no literals is left out: a missing public test costs little, a wrong one misleads.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Any

from smalt.problems.asserts import NotALiteralError, call_arguments, literal
from smalt.problems.problem import CallTest

_ARROW = re.compile(r"[ \t]*(?:#[ \t]*)?(?:==>|=>|->|➞|==|=|returns\b|should return\b)[ \t]*")
_LONGEST_CALL = 2000
# What may follow a value on its line: a comment, a remark in parentheses, the end of the sentence.
_AFTER_VALUE = re.compile(r"\s*(?:[#(.].*)?$")
_WORKED_SUM = re.compile(r"[\d\s+\-*/()]+=\s*(-?[\d.]+)\s*$")
_INPUT_OUTPUT = re.compile(r"Input:\s*(?P<input>[^\n]+?)\s*\n\s*Output:\s*(?P<output>[^\n]+)")
_FOR_OUTPUT = re.compile(r"For (?P<input>\w+ = .+?),?\s+the (?:output|result) should be (?P<output>[^\n]+)")


def docstring_examples(docstring: str, entry_point: str, parameters: Sequence[str] = ()) -> list[CallTest]:
    """The examples of a docstring in their order, each once.

    `parameters` are the function's parameter names; examples that name their arguments need them.
    """
    found = [*_calls(docstring, entry_point), *_labelled(docstring, parameters)]
    tests: list[CallTest] = []
    for _, test in sorted(found, key=lambda item: item[0]):
        if all(repr(test) != repr(other) for other in tests):
            tests.append(test)
    return tests


def _calls(docstring: str, entry_point: str) -> Iterator[tuple[int, CallTest]]:
    for match in re.finditer(rf"(?<![\w.]){re.escape(entry_point)}\(", docstring):
        start = match.start()
        before = docstring[docstring.rfind("\n", 0, start) + 1 : start].strip()
        call = _call_at(docstring, start, entry_point)
        if call is None or before.endswith(("+", "/", ",", "(", "=")):
            continue  # no literals, or a part of a longer expression
        arguments, end = call
        try:
            yield start, CallTest(args=arguments, expected=_value_after(docstring, end, before == ">>>"))
        except NotALiteralError:
            continue


def _call_at(text: str, start: int, entry_point: str) -> tuple[tuple[Any, ...], int] | None:
    """Arguments and end of the call that begins at `start`; the first closing parenthesis that parses."""
    for match in re.finditer(r"\)", text[start : start + _LONGEST_CALL]):
        end = start + match.end()
        try:
            node = ast.parse(text[start:end], mode="eval").body
        except (SyntaxError, ValueError):
            continue
        arguments = call_arguments(node, entry_point)
        return None if arguments is None else (arguments, end)
    return None


def _value_after(text: str, end: int, is_doctest: bool) -> Any:
    line, _, rest = text[end:].partition("\n")
    if arrow := _ARROW.match(line):
        return _leading_value(line[arrow.end() :])
    if not is_doctest or not re.fullmatch(r"\s*(?:#.*)?", line):
        raise NotALiteralError("no value follows")
    output = re.split(r"\n\s*(?:\n|>>>|$)", "\n" + rest, maxsplit=1)[0].strip()
    # As in doctest: a call that shows nothing returned None.
    return literal(re.sub(r"\s*\n\s*", " ", output)) if output else None


def _leading_value(text: str) -> Any:
    """The literal that a line begins with, when nothing but a remark follows it."""
    if worked_sum := _WORKED_SUM.match(text):
        text = worked_sum[1]  # "19 - 5 - 6 = 8"
    text = text.strip()
    ends = [len(text.removesuffix(".")), *(match.start() for match in re.finditer(r"\s*[#(.]", text))]
    for end in ends:
        value = text[:end].strip()
        if not _AFTER_VALUE.match(text[end:]):
            continue
        if value in ("true", "false"):
            return value == "true"
        try:
            return literal(value)
        except NotALiteralError:
            continue
    raise NotALiteralError("no literal")


def _labelled(docstring: str, parameters: Sequence[str]) -> Iterator[tuple[int, CallTest]]:
    for pattern in (_INPUT_OUTPUT, _FOR_OUTPUT):
        for match in pattern.finditer(docstring):
            try:
                arguments = _named_arguments(match["input"], parameters)
                yield match.start(), CallTest(args=arguments, expected=_leading_value(match["output"]))
            except NotALiteralError:
                continue


def _named_arguments(text: str, parameters: Sequence[str]) -> tuple[Any, ...]:
    """`a = 1, b = [2]` in the order of the parameters; a single bare value is the only argument."""
    try:
        call = ast.parse(f"_({text})", mode="eval").body
    except (SyntaxError, ValueError):
        raise NotALiteralError("no arguments") from None
    if not isinstance(call, ast.Call) or (call.args and call.keywords):
        raise NotALiteralError("no arguments")
    if call.args and len(call.args) == len(parameters) == 1:
        return (literal(call.args[0]),)
    values = {keyword.arg: keyword.value for keyword in call.keywords}
    if not values or set(values) != set(parameters):
        raise NotALiteralError("the names are not the parameters")
    return tuple(literal(values[name]) for name in parameters)
