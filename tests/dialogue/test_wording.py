import pytest
from pydantic import ValidationError

from smalt.dialogue.wording import Wording, fenced, no_code_message, task_message
from smalt.problems.problem import CallTest, CodeTest, Problem, StdinTest

CALL = Problem(
    id="a",
    statement="Add {statement} {x}.",
    starter_code="def f(a):\n    pass\n",
    entry_point="f",
    public_tests=(CallTest(args=(1, [2, 3]), expected={"k": 1}),),
    hidden_tests=(CallTest(args=("secret-input",), expected="secret-output"),),
)
STDIN = Problem(id="b", statement="Echo.", public_tests=(StdinTest(stdin="12\n", expected="34\n"),))


def test_every_message_asks_for_one_python_block():
    wording = Wording()
    for message in (task_message(CALL), task_message(STDIN), no_code_message(), wording.system):
        assert "```python" in message
    assert "first line of your reply is ```python" in task_message(CALL)


def test_task_message_of_a_function():
    message = task_message(CALL)
    assert "Add {statement} {x}." in message
    assert "```python\ndef f(a):\n    pass\n```" in message
    assert "`f`" in message
    assert "standard input" not in message
    assert "f(1, [2, 3])" not in message
    assert "\n\n\n" not in message


def test_task_message_of_a_program():
    message = task_message(STDIN)
    assert "standard input" in message
    assert "Begin with" not in message
    assert "12" not in message


def test_public_tests_are_shown_on_demand_and_hidden_ones_never():
    shown = task_message(CALL, show_public_tests=True)
    assert "f(1, [2, 3]) == {'k': 1}" in shown
    assert "secret" not in shown
    assert "Input:\n```\n12\n```\nOutput:\n```\n34\n```" in task_message(STDIN, show_public_tests=True)
    code = Problem(id="c", statement="s", public_tests=(CodeTest(code="assert f"),))
    assert "assert f" in task_message(code, show_public_tests=True)
    assert "standard input" not in task_message(code)


def test_own_templates():
    wording = Wording(task="T {statement}\n{examples}\n{answer_rule}", answer_rule="Now.")
    assert task_message(STDIN, wording) == "T Echo.\nNow."


@pytest.mark.parametrize(
    ("field", "template", "expected"),
    [
        ("task", "{statment}", "{statment} is no part of 'task'; its parts are {statement}"),
        ("task", "hello", "{statement} is missing"),
        ("fix", "wrong", "{feedback} is missing"),
        ("reconsider", "{feedback}", "{feedback} is no part of 'reconsider'"),
    ],
)
def test_bad_templates_are_refused(field, template, expected):
    with pytest.raises(ValidationError) as caught:
        Wording(**{field: template})
    assert expected in str(caught.value)


def test_wording_is_frozen_and_documented():
    with pytest.raises(ValidationError):
        Wording().system = "x"
    assert all(field.description for field in Wording.model_fields.values())
    # The defaults pass their own checks.
    assert Wording(**Wording().model_dump()) == Wording()


def test_a_fence_cannot_be_closed_from_inside():
    assert fenced("a\n```\nb").startswith("````\n")
