import itertools
import random

import pytest

from smalt.lab.generator import run_trusted
from smalt.lab.ideas import AMBIGUOUS, CLEAR, IDEAS, STEPS, program_of, statement_of

_rng = random.Random(0)
LISTS = [[], [0], [5, 5], *([_rng.randint(0, 9) for _ in range(_rng.randint(1, 7))] for _ in range(300))]


def outputs(expression):
    return [run_trusted([expression], given) for given in LISTS]


@pytest.mark.parametrize("idea", AMBIGUOUS, ids=lambda idea: idea.name)
def test_the_meanings_of_an_ambiguous_idea_differ_on_some_list(idea):
    assert idea.is_ambiguous
    for left, right in itertools.combinations(idea.meanings, 2):
        assert outputs(left) != outputs(right), (left, right)


@pytest.mark.parametrize("idea", CLEAR, ids=lambda idea: idea.name)
def test_the_slips_of_a_clear_idea_differ_from_its_meaning(idea):
    assert not idea.is_ambiguous
    assert idea.slips
    for slip in idea.slips:
        assert outputs(slip) != outputs(idea.meanings[0]), slip


@pytest.mark.parametrize("idea", IDEAS, ids=lambda idea: idea.name)
def test_an_idea_maps_lists_of_integers_to_such(idea):
    for expression in (*idea.meanings, *idea.slips):
        for output in outputs(expression):
            assert type(output) is list
            assert all(type(value) is int for value in output)


def test_names_and_wordings_are_of_one_idea_only():
    names = [idea.name for idea in IDEAS]
    wordings = [wording for idea in IDEAS for wording in idea.wordings]
    assert len(set(names)) == len(names)
    assert len(set(wordings)) == len(wordings)


def test_no_two_clear_ideas_mean_the_same():
    meanings = [tuple(map(tuple, outputs(idea.meanings[0]))) for idea in CLEAR]
    assert len(set(meanings)) == len(CLEAR)


WORDS = ("drop one end", "sort them")


def test_a_program_applies_its_lines_in_order():
    program = program_of(WORDS, ("x[1:]", "[v * v for v in x]"))
    namespace = {}
    exec(program, namespace)
    given = [3, 2, 1]
    assert namespace["f"](given) == [4, 1] == run_trusted(("x[1:]", "[v * v for v in x]"), given)
    assert given == [3, 2, 1]


def test_a_program_restates_its_steps_as_the_statement_says_them():
    assert statement_of(WORDS) == "Write f(x).\nA) drop one end\nB) sort them"
    assert program_of(WORDS, ("x[1:]", "sorted(x)")) == (
        "def f(x):\n    # A) drop one end\n    x = x[1:]\n    # B) sort them\n    x = sorted(x)\n    return x\n"
    )


@pytest.mark.parametrize("steps", range(1, len(STEPS) + 1))
def test_every_step_has_a_letter(steps):
    wordings = ["drop one end"] * steps
    program, statement = program_of(wordings, ["x[1:]"] * steps), statement_of(wordings)
    for step in STEPS[:steps]:
        assert program.count(f"    # {step}) drop one end\n    x = x[1:]\n") == 1
        assert statement.count(f"\n{step}) drop one end") == 1
    assert program.count("#") == statement.count("\n") == steps


def test_more_steps_than_letters_and_lines_without_words_are_refused():
    with pytest.raises(ValueError):
        statement_of(["sort them"] * (len(STEPS) + 1))
    with pytest.raises(ValueError):
        program_of(["sort them"], ["sorted(x)", "x[1:]"])
