import itertools
from typing import get_args

import pytest

from smalt.grading.grader import Grader
from smalt.lab.generator import (
    HIDDEN_TESTS,
    PUBLIC_TESTS,
    Split,
    generate,
    readings,
    rivals,
    run_trusted,
    split_of,
)
from smalt.lab.ideas import CLEAR, IDEAS, STEPS, statement_of
from smalt.problems.native import read_native, write_native
from smalt.problems.sources import ProblemSource, load_problems
from smalt.sandbox.forkserver import ForkServerSandbox

SPLITS = get_args(Split)


@pytest.fixture(scope="module")
def made():
    return {split: generate(split, 80, seed=3) for split in SPLITS}


def every(made):
    return [problem for split in SPLITS for problem in made[split]]


def refutes(problem, program):
    """Whether a public test tells `program` from the solution."""
    return any(run_trusted(program, test.args[0]) != test.expected for test in problem.public_tests)


def test_the_same_seed_gives_the_same_problems(made):
    again = generate("train", 80, seed=3)
    assert [m.problem for m in again] == [m.problem for m in made["train"]]
    assert [m.intended for m in again] == [m.intended for m in made["train"]]
    other = generate("train", 80, seed=4)
    assert {m.problem.statement for m in other} != {m.problem.statement for m in again}


def test_fewer_problems_are_the_first_of_more(made):
    assert [m.problem for m in generate("test", 10, seed=3)] == [m.problem for m in made["test"][:10]]


def test_splits_share_no_composition(made):
    compositions = {split: {tuple(idea.name for idea in m.ideas) for m in made[split]} for split in SPLITS}
    for split in SPLITS:
        assert all(split_of(m.ideas) == split for m in made[split])
        others = set().union(*(compositions[other] for other in SPLITS if other != split))
        assert not compositions[split] & others


def test_problems_differ_and_have_ids_of_their_own(made):
    problems = [m.problem for m in every(made)]
    assert len({problem.id for problem in problems}) == len(problems)
    for split in SPLITS:
        assert len({(m.problem.statement, m.intended) for m in made[split]}) == 80


def test_tests_are_made_by_the_intended_program(made):
    for m in every(made):
        public, hidden = m.problem.public_tests, m.problem.hidden_tests
        assert (len(public), len(hidden)) == (PUBLIC_TESTS, HIDDEN_TESTS)
        assert all(run_trusted(m.intended, test.args[0]) == test.expected for test in (*public, *hidden))
        assert not {str(test.args) for test in public} & {str(test.args) for test in hidden}
        assert m.intended in readings(m.ideas)
        assert m.problem.solutions == (m.program(m.intended),)


def test_lists_stay_short_and_numbers_small(made):
    for m in every(made):
        for test in (*m.problem.public_tests, *m.problem.hidden_tests):
            assert len(test.args[0]) <= 7
            assert len(test.expected) <= 12
            assert all(abs(value) < 100 for value in test.expected)


def test_public_tests_refute_most_rivals(made):
    shares = []
    for m in every(made):
        others = rivals(m.ideas, m.intended)
        refuted = [refutes(m.problem, other) for other in others]
        shares.append(sum(refuted) / len(refuted) if refuted else 1.0)
    assert sum(shares) / len(shares) > 0.9
    assert sum(share == 1 for share in shares) / len(shares) > 0.7


def test_most_problems_leave_the_meaning_of_one_phrase_open(made):
    ambiguous = [m for m in every(made) if m.ambiguity > 1]
    assert 0.75 < len(ambiguous) / len(every(made)) < 0.95
    for m in ambiguous:
        assert m.ambiguity == len(readings(m.ideas)) == m.problem.metadata["readings"]
        assert len(set(readings(m.ideas))) == m.ambiguity
    for m in every(made):
        assert len(m.ideas) in (2, 3)
        assert sum(idea.is_ambiguous for idea in m.ideas) == (m.ambiguity > 1)


def twins(made):
    """Pairs of problems that share their statement."""
    return [
        (m, other) for m, other in itertools.combinations(made, 2) if m.problem.statement == other.problem.statement
    ]


def test_an_ambiguous_statement_comes_as_twins_that_mean_different_things(made):
    for split in SPLITS:
        pairs = twins(made[split])
        ambiguous = [m for m in made[split] if m.ambiguity > 1]
        # The last of a split may have lost its twin to the limit.
        assert len({id(m) for pair in pairs for m in pair}) >= len(ambiguous) - 1
        for left, right in pairs:
            assert left.ideas == right.ideas
            assert left.wordings == right.wordings
            assert left.problem.metadata == right.problem.metadata
            [open_idea] = [idea for idea in left.ideas if idea.is_ambiguous]
            [(idea, one, other)] = [
                step for step in zip(left.ideas, left.intended, right.intended, strict=True) if step[1] != step[2]
            ]
            assert idea == open_idea
            assert {one, other} <= set(idea.meanings)


def test_feedback_tells_twins_apart(made):
    for split in SPLITS:
        for left, right in twins(made[split]):
            assert refutes(left.problem, right.intended)
            assert refutes(right.problem, left.intended)


def test_more_problems_than_there_are_is_said(monkeypatch):
    import smalt.lab.generator as module

    monkeypatch.setattr(module, "AMBIGUOUS", IDEAS[:1])
    monkeypatch.setattr(module, "CLEAR", CLEAR[:3])
    monkeypatch.setattr(module, "_MOST_FRUITLESS", 300)
    with pytest.raises(ValueError, match=r"about \d+ test problems, 500 were asked for"):
        generate("test", 500, seed=0)


def test_every_meaning_is_intended_somewhere():
    found = {meaning for m in generate("train", 600, seed=0) for meaning in m.intended}
    assert found == {meaning for idea in IDEAS for meaning in idea.meanings}


def test_nothing_but_the_words_tells_the_reading(made):
    for m in every(made):
        first, *steps = m.problem.statement.split("\n")
        assert first == "Write f(x)."
        assert m.problem.statement == statement_of(m.wordings)
        assert [letter for letter, _ in (step.split(") ") for step in steps)] == list(STEPS[: len(m.ideas)])
        assert all(phrase in idea.wordings for phrase, idea in zip(m.wordings, m.ideas, strict=True))


def test_solutions_pass_in_the_sandbox_and_rivals_that_are_refuted_fail(made):
    sample = every(made)[::6]
    assert len(sample) == 40
    with ForkServerSandbox(workers=1) as sandbox:
        grader = Grader(sandbox, workers=1)
        grades = grader.grade_many([(m.problem, m.problem.solutions[0]) for m in sample])
        assert all(grade.passes_all for grade in grades)
        wrong = [(m, other) for m in sample for other in rivals(m.ideas, m.intended)[:1] if refutes(m.problem, other)]
        grades = grader.grade_many([(m.problem, m.program(other)) for m, other in wrong])
        assert len(grades) > 20
        assert not any(grade.passes_public or grade.is_infra_error for grade in grades)


def test_the_source_lab_generates_by_split_limit_and_seed(made):
    assert load_problems(ProblemSource(path="lab", split="test", limit=80, seed=3)) == [m.problem for m in made["test"]]
    assert len(load_problems(ProblemSource(path="lab"))) == 100
    with pytest.raises(ValueError, match="train, validation, test"):
        load_problems(ProblemSource(path="lab", split="dev"))


def test_problems_survive_a_problem_file(made, tmp_path):
    problems = [m.problem for m in every(made)]
    write_native(tmp_path / "lab.jsonl", problems)
    assert read_native(tmp_path / "lab.jsonl") == problems
