import pytest
from hypothesis import given
from hypothesis import strategies as st

from smalt.grading.preamble import with_preamble

FUTURE = "from __future__ import annotations\n"


@pytest.mark.parametrize(
    ("program", "joined"),
    [
        ("print(1)\n", "a = 1\nprint(1)\n"),
        (FUTURE + "print(1)\n", FUTURE + "a = 1\nprint(1)\n"),
        ("# head\n" + FUTURE, FUTURE + "a = 1\n# head\n"),
        ("from __future__ import annotations", FUTURE + "a = 1\n"),
        (
            "from __future__ import (\n    annotations,\n    division,\n)\nb = a\n",
            "from __future__ import (\n    annotations,\n    division,\n)\na = 1\nb = a\n",
        ),
        ("", "a = 1\n"),
        ("x = 'a\x0cb\u2028c'\n", "a = 1\nx = 'a\x0cb\u2028c'\n"),
    ],
)
def test_it_stands_before_the_program(program: str, joined: str) -> None:
    assert with_preamble("a = 1\n\n", program) == joined


@given(st.text())
def test_without_a_preamble_a_program_stays_as_it_is(program: str) -> None:
    assert with_preamble(" \n", program) == program
