"""How a dialogue is cut and named."""

import pytest

from smalt.reports.dialogue_view import Badge, Part, badge, dialogue_views, message_parts
from smalt.reports.run_folder import Dialogue


@pytest.mark.parametrize(
    ("text", "is_code", "parts"),
    [
        ("", False, []),
        ("words", False, [Part("words", False)]),
        ("x = 1", True, [Part("x = 1", True)]),
        ("a\n```python\nx\n```\nb", True, [Part("a", False), Part("x", True), Part("b", False)]),
        ("```\n  x\n```\n```\ny\n```", False, [Part("  x", True), Part("y", True)]),
        ("```python\nnever closed", False, [Part("```python\nnever closed", False)]),
        ("a\r\nb\x00\x7f", False, [Part("a\nb␀␡", False)]),
    ],
)
def test_parts(text, is_code, parts):
    assert message_parts(text, is_code) == parts


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        ("passed", Badge("passed", "good")),
        ("passed_public", Badge("passed public", "partial")),
        ("time_limit", Badge("time limit", "neutral")),
        ("timeout", Badge("timeout", "bad")),
        ("infra_error", Badge("infra error", "neutral")),
    ],
)
def test_badges(verdict, expected):
    assert badge(verdict) == expected


def test_names_and_sides():
    roles = ["system", "user", "assistant", "user", "program", "feedback"]
    dialogue = Dialogue.model_validate({"problem_id": "p", "turns": [{"role": role, "text": "t"} for role in roles]})
    (view,) = dialogue_views([dialogue])
    names = ["System", "Problem", "Program 1", "Feedback 1", "Program 2", "Feedback 2"]
    assert [turn.name for turn in view.turns] == names
    assert [turn.side for turn in view.turns].count("program") == 2
    assert view.badges == []
