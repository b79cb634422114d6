import ast
import itertools
import random

import pytest

from smalt.dialogue.feedback import feedback_message
from smalt.dialogue.wording import task_message
from smalt.grading.extraction import extract_program
from smalt.grading.grader import Grader
from smalt.lab.corpus import (
    HABIT,
    LAB_WORDING,
    MOST_TURNS,
    SCHOOL,
    Author,
    Period,
    dialogues,
    public_results,
    reply_of,
    write_dialogue,
)
from smalt.lab.demo import DEMO_RECIPE
from smalt.lab.generator import generate, run_trusted
from smalt.lab.ideas import program_of
from smalt.sandbox.forkserver import ForkServerSandbox
from smalt.settings import load_recipe


@pytest.fixture(scope="module")
def made():
    return generate("train", 60, seed=0)


def corpus(made, period, count=200, seed=0):
    return list(itertools.islice(dialogues(made, period, seed), count))


def solved(made, messages):
    """Whether each reply of a dialogue holds the intended program."""
    [origin] = {m.intended for m in made if m.problem.statement == messages[0]}
    return [reply == reply_of(program_of(origin)) for reply in messages[1::2]]


def test_the_corpus_is_worded_as_the_demo_asks():
    dialogue = load_recipe(DEMO_RECIPE).dialogue
    assert dialogue.wording == LAB_WORDING
    assert dialogue.reply_prefix == ""
    assert not dialogue.show_public_tests
    assert dialogue.max_failing_tests == 1


def test_a_dialogue_alternates_and_ends_with_a_program(made):
    for period in (SCHOOL, HABIT):
        for messages in corpus(made, period):
            assert len(messages) % 2 == 0
            assert len(messages) // 2 in period.turns
            assert messages[0].startswith("Write f(x): ")
            for reply in messages[1::2]:
                extraction = extract_program(reply, "f")
                assert extraction.is_exactly_one_block
                assert extraction.trailing_text == ""
                ast.parse(extraction.program)
    assert max(HABIT.turns) == MOST_TURNS


def test_feedback_is_what_the_grader_would_say(made):
    with ForkServerSandbox(workers=1) as sandbox:
        grader = Grader(sandbox)
        for m in made[:10]:
            for program in (m.intended, ("x[::-1]",), ("[]",)):
                told = feedback_message(public_results(m, program), LAB_WORDING, entry_point="f")
                graded = grader.grade(m.problem, program_of(program)).public
                assert told == feedback_message(graded, LAB_WORDING, entry_point="f")


def test_each_feedback_follows_from_the_program_before_it(made):
    m = made[0]
    for seed in range(20):
        messages = write_dialogue(m, HABIT, random.Random(seed))
        assert messages[0] == task_message(m.problem, LAB_WORDING)
        for reply, feedback in zip(messages[1::2], messages[2::2], strict=False):
            namespace = {}
            exec(extract_program(reply, "f").program, namespace)
            passed = all(namespace["f"](list(t.args[0])) == t.expected for t in m.problem.public_tests)
            assert (feedback == "All tests pass. Check it again.") is passed


def test_the_same_seed_writes_the_same_dialogues(made):
    assert corpus(made, HABIT, 30) == corpus(made, HABIT, 30)
    assert corpus(made, HABIT, 30) != corpus(made, HABIT, 30, seed=1)


def unique_statements(made):
    """Problems whose statement is theirs alone, so that a dialogue tells its problem."""
    statements = [m.problem.statement for m in made]
    return [m for m in made if statements.count(m.problem.statement) == 1]


def test_school_reads_feedback_and_habit_mostly_repeats(made):
    made = unique_statements(made)

    def repairs(period):
        """Share of second programs that are right, after a first one that failed a public test."""
        seconds = [
            solved(made, messages)[1]
            for messages in corpus(made, period, 600)
            if messages[2:] and messages[2].startswith("Call: ")
        ]
        return sum(seconds) / len(seconds)

    assert repairs(SCHOOL) > 0.55
    assert repairs(HABIT) < 0.4


def test_authors_do_what_they_are_said_to(made, monkeypatch):
    import smalt.lab.corpus as module

    perfect = Author(repeats=0, solves=1, slips=1, spoils=0)
    monkeypatch.setattr(module, "_AUTHORS", (perfect, perfect, perfect))
    made = unique_statements(made)
    for messages in corpus(made, Period((1, 0, 0), (3,)), 100):
        told, right = messages[2], solved(made, messages)
        assert right[1] or told == "All tests pass. Check it again."


def test_results_are_those_of_the_trusted_run(made):
    for m in made[:20]:
        for result in public_results(m, ("x[1:]",)):
            output = run_trusted(("x[1:]",), result.test.args[0])
            assert result.output == repr(output)
            assert result.passed == (output == result.test.expected)
