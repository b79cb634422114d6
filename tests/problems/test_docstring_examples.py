import pytest

from smalt.problems.docstring_examples import docstring_examples


def pairs(docstring, parameters=()):
    return [(test.args, test.expected) for test in docstring_examples(docstring, "f", parameters)]


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        (">>> f([1, 2], 'a)')\n[3]\n", [(([1, 2], "a)"), [3])]),
        (">>> f([])\n\n>>> f(['a'])\n'a'\n", [(([],), None), ((["a"],), "a")]),
        (">>> f(1)\n[[1, 2],\n [3]]\n\ntext", [((1,), [[1, 2], [3]])]),
        (">>> f(1)  # why\n2", [((1,), 2)]),
        (">>> f(1) == 'x'", [((1,), "x")]),
        ("f(1, 2) == 3", [((1, 2), 3)]),
        ("* f(1) => true", [((1,), True)]),
        ("f(1) ==> 2 ", [((1,), 2)]),
        ("f(1)==>True", [((1,), True)]),
        ("f(1) -> [2]", [((1,), [2])]),
        ("f(1) ➞ -2", [((1,), -2)]),
        ("f(1) = (1, 2)", [((1,), (1, 2))]),
        ("f('a') returns 'b'", [(("a",), "b")]),
        ("f(14,-15) should return 20.", [((14, -15), 20)]),
        ("f(15)   # returns 'db'", [((15,), "db")]),
        ("f('e') # => 'No' (for a reason)", [(("e",), "No")]),
        ("f(1) ->19 - 5 - 6 = 8", [((1,), 8)]),
        ("f(5) returns [1, 5] # The sequence, in f(5)", [((5,), [1, 5])]),
        ("f([\n  [1],\n  []\n], 1) == 0", [(([[1], []], 1), 0)]),
        ("f(1) == 2\nf(1) == 2", [((1,), 2)]),
        # Left out: no literals, arithmetic, broken quotes, another function, a piece of an expression.
        ("f(n) == f(n - 1) + 1", []),
        ("f(2) == 1 + 1", []),
        ("f(2) == ''a''", []),
        ("f(abc) => True", []),
        ("g.f(1) == 2 and ff(1) == 2", []),
        ("x = f(1) + f(2) = 3", []),
        (">>> round(f(1), 2)\n3", []),
        ("f(1", []),
    ],
)
def test_notations(docstring, expected):
    assert pairs(docstring) == expected


def test_named_arguments_come_in_the_order_of_the_parameters():
    docstring = "Input: k = 2, a = [1]\n  Output: [1] # all\nFor k = 1, a = [] the output should be 'x'."
    assert pairs(docstring, ("a", "k")) == [(([1], 2), [1]), (([], 1), "x")]
    assert pairs("Input: 3\nOutput: (1, 2)", ("n",)) == [((3,), (1, 2))]
    assert pairs("Input: 3\nOutput: (1, 2)", ("n", "m")) == []
    assert pairs("Input: q = 3\nOutput: 1", ("n",)) == []
