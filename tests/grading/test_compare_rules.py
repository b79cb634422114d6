"""Comparison rules as a problem holds them."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from smalt.problems.problem import CallTest, CheckerRule, CodeTest, Problem, StdinTest, TokensRule

STDIN = StdinTest(stdin="", expected="")
CALL = CallTest(args=(), expected=1)
CHECK = "def check(input, output, expected):\n    return True\n"


def problem(compare: Any, *tests: Any) -> Problem:
    return Problem(id="a", statement="b", entry_point="f", hidden_tests=tests or (STDIN, CALL), compare=compare)


RULES: list[Any] = [
    None,
    "tokens",
    "exact",
    "value",
    {"rule": "exact"},
    {"rule": "tokens"},
    {"rule": "tokens", "relative_tolerance": 1e-4, "ignores_order": True},
    {"rule": "lines", "ignores_case": True},
    {"rule": "value", "tells_tuples_from_lists": True, "unordered": "everywhere"},
    {"rule": "value", "equals_as_python": True},
    {"rule": "checker", "program": CHECK},
    {"rule": "checker", "program": CHECK, "limits": {"cpu_seconds": 1}},
]


@pytest.mark.parametrize("compare", RULES, ids=str)
def test_a_rule_survives_json(compare: Any) -> None:
    first = problem(compare)
    stored = json.loads(json.dumps(first.model_dump(exclude_defaults=True)["compare"] if compare else None))
    assert problem(stored) == first
    assert problem(first.compare) == first


def test_an_object_becomes_its_rule() -> None:
    assert problem({"rule": "tokens", "ignores_case": True}).compare == TokensRule(rule="tokens", ignores_case=True)
    assert isinstance(problem({"rule": "checker", "program": CHECK}).compare, CheckerRule)


@pytest.mark.parametrize(
    ("compare", "message"),
    [
        ("fuzzy", "Input should be 'tokens', 'exact' or 'value', or an object"),
        (3, "Input should be 'tokens', 'exact' or 'value', or an object"),
        ({}, "rule None is unknown; an object is"),
        ({"rule": "floats"}, "rule 'floats' is unknown; an object is"),
        ({"rule": ["tokens"]}, "is unknown"),
        ({"rule": "tokens", "tolerance": 1}, r"tolerance: Extra inputs.*\(fields of rule 'tokens': rule, relative"),
        ({"rule": "tokens", "relative_tolerance": -1}, "relative_tolerance: Input should be greater"),
        ({"rule": "tokens", "absolute_tolerance": float("inf")}, "absolute_tolerance: Input should be a finite"),
        ({"rule": "value", "unordered": "all"}, "unordered: Input should be 'nothing', 'outermost' or"),
        ({"rule": "value", "unordered": "outermost", "equals_as_python": True}, "decides alone; drop unordered"),
        ({"rule": "checker"}, "program: Field required"),
        ({"rule": "checker", "program": "def check(:"}, "program: is not Python"),
        ({"rule": "checker", "program": "check = 1"}, "program: must define check"),
        ({"rule": "checker", "program": "\0"}, "program: is not Python"),
        ({"rule": "checker", "program": CHECK, "limits": {"cpu": 1}}, "limits.cpu: Extra inputs"),
    ],
)
def test_a_bad_rule_is_refused_with_field_and_fix(compare: Any, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        problem(compare)


@pytest.mark.parametrize(
    ("compare", "test"),
    [
        ({"rule": "tokens"}, CALL),
        ({"rule": "lines"}, CALL),
        ({"rule": "value"}, STDIN),
        ({"rule": "exact"}, CodeTest(code="")),
        ({"rule": "checker", "program": CHECK}, CodeTest(code="")),
    ],
)
def test_settings_that_judge_no_test_are_refused(compare: Any, test: Any) -> None:
    with pytest.raises(ValidationError, match=f"rule '{compare['rule']}' judges tests with .* there are none"):
        problem(compare, test)


def test_names_are_accepted_whatever_the_tests() -> None:
    for name in ("tokens", "exact", "value"):
        for test in (STDIN, CALL, CodeTest(code="")):
            assert problem(name, test).compare == name
