"""Trees grown by script, for the tests of every method."""

from tests.scripted import RIGHT, WRONG, TrustedGrader, scripted_growth

THIRD = 1 / 3  # share of the problem's tests that WRONG passes
HALF = "```python\ndef f(x):\n    return x[1:] if x else 1\n```"  # passes all but the empty list
ALL_WRONG = "```python\ndef f(x):\n    return [0]\n```"
BROKEN = "```python\ndef f(x):\n    return list(x)[1:]\n```"


def grow(chat, problem, method, *levels, broken=None, **options):
    """A tree of the method's shape whose levels say what the lists of replies say."""
    growth = scripted_growth(chat, *levels, grader=TrustedGrader(broken), **options)
    tree = growth.seed_of(problem)
    growth.grow([tree], method.shape, seed=0)
    return tree


def names(group):
    """The replies of a group, in letters."""
    letters = {RIGHT: "R", WRONG: "W", ALL_WRONG: "A", HALF: "H", BROKEN: "B"}
    return group if isinstance(group, str) else "".join(letters.get(node.reply, "-") for node in group)
