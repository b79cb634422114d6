import ast
import math

import pytest

from smalt.problems.asserts import NotALiteralError
from smalt.problems.infinity import literal_with_infinity


def read(text):
    return literal_with_infinity(ast.parse(text, mode="eval").body)


@pytest.mark.parametrize(
    ("text", "value"),
    [("inf", math.inf), ("[-inf, (1, {'a': inf})]", [-math.inf, (1, {"a": math.inf})]), ("[1, 'inf']", [1, "inf"])],
)
def test_infinity_is_a_number(text, value):
    assert read(text) == value


@pytest.mark.parametrize("text", ["nan", "[information]", "inf + x", "float('inf')"])
def test_other_names_are_no_literals(text):
    with pytest.raises(NotALiteralError):
        read(text)
