import ast
import itertools
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    diagnosis,
    dialogues,
    public_results,
    write_dialogue,
)
from smalt.lab.demo import DEMO_RECIPE
from smalt.lab.generator import generate, run_trusted
from smalt.lab.ideas import IDEAS, STEPS, program_of
from smalt.sandbox.forkserver import ForkServerSandbox
from smalt.settings import load_recipe


@pytest.fixture(scope="module")
def made():
    return generate("train", 60, seed=0)


def corpus(made, period, count=200, seed=0):
    return list(itertools.islice(dialogues(made, period, seed), count))


def written(made, period, count=200):
    """Problems and dialogues about them."""
    problems = itertools.islice(itertools.cycle(made), count)
    return [(m, write_dialogue(m, period, random.Random(place))) for place, m in enumerate(problems)]


def solved(m, messages):
    """Whether each reply of a dialogue holds the intended program."""
    return [extract_program(reply, "f").program == m.program(m.intended) for reply in messages[1::2]]


def steps_of(reply):
    """The lines of a reply by the letter of their step."""
    return dict(re.findall(r"    # (\w)\) .*\n    x = (.*)\n", reply))


def remark_of(reply):
    return reply.partition("```")[0]


def patches(remark):
    """The steps that a diagnosis names, each with its old and its new line."""
    step = r"    # (\w)\) .*\n    x = (.*)\n"
    found = re.findall(f"Not\n{step}but\n{step}", remark)
    assert len(found) == remark.count("Not\n")
    assert all(old_step == new_step for old_step, _, new_step, _ in found)
    return [(step, old, new) for step, old, _, new in found]


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
            assert messages[0].startswith("Write f(x).\nA) ")
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
            for line in ("x", "x[::-1]", "[]"):
                program = (*m.intended[:-1], line)
                told = feedback_message(public_results(m, program), LAB_WORDING, entry_point="f")
                graded = grader.grade(m.problem, m.program(program)).public
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


def test_school_reads_feedback_and_habit_mostly_repeats(made):
    def repairs(period):
        """Share of second programs that are right, after a first one that failed a public test."""
        seconds = [
            solved(m, messages)[1] for m, messages in written(made, period, 600) if messages[2].startswith("Call: ")
        ]
        return sum(seconds) / len(seconds)

    assert repairs(SCHOOL) > 0.7
    assert repairs(HABIT) < 0.4


def test_most_lessons_at_school_start_from_a_failure(made):
    def failing_starts(period):
        starts = [messages[2].startswith("Call: ") for _, messages in written(made, period, 400)]
        return sum(starts) / len(starts)

    assert failing_starts(SCHOOL) > 0.8
    assert failing_starts(HABIT) < 0.7


def test_authors_do_what_they_are_said_to(made, monkeypatch):
    import smalt.lab.corpus as module

    perfect = Author(repeats=0, solves=1, slips=1)
    monkeypatch.setattr(module, "_AUTHORS", (perfect, perfect, perfect))
    for m, messages in written(made, Period((1, 0, 0), (3,)), 100):
        first, second, third = messages[1::2]
        if messages[2] == "All tests pass. Check it again.":
            assert first == second
        else:
            assert solved(m, messages) == [False, True, True]
            assert remark_of(second)
            assert third == second.removeprefix(remark_of(second))


def test_a_diagnosis_names_exactly_the_steps_that_the_new_program_mends(made):
    remarks = set()
    for m, messages in written(made, SCHOOL, 400):
        replies = messages[1::2]
        assert not remark_of(replies[0])
        for place, (last, reply) in enumerate(itertools.pairwise(replies), 1):
            before, after = steps_of(last), steps_of(reply.removeprefix(remark_of(reply)))
            if remark_of(reply):
                assert solved(m, messages)[place]
                expected = [(step, before[step], line) for step, line in after.items() if before[step] != line]
                assert patches(remark_of(reply)) == expected
                remarks.add("".join(step for step, _, _ in expected))
    assert {"A", "B", "C", "AB"} <= remarks


expressions = st.sampled_from([e for idea in IDEAS for e in (*idea.meanings, *idea.slips)])
pairs_of_lines = st.tuples(expressions, expressions) | expressions.map(lambda line: (line, line))


@given(pairs=st.lists(pairs_of_lines, min_size=1, max_size=len(STEPS)))
def test_a_diagnosis_names_exactly_the_steps_that_differ(pairs):
    program, better = (tuple(side) for side in zip(*pairs, strict=True))
    words = ["sort them"] * len(pairs)
    expected = [(step, *pair) for step, pair in zip(STEPS[: len(pairs)], pairs, strict=True) if pair[0] != pair[1]]
    assert patches(diagnosis(words, program, better)) == expected


def test_a_diagnosis_is_lines_of_the_two_programs():
    words, better = ("drop one end", "sort them"), ("x[1:]", "sorted(x)")
    assert diagnosis(words, better, better) == ""
    remark = diagnosis(words, ("x[1:]", "sorted(x)[::-1]"), better)
    assert remark == "Not\n    # B) sort them\n    x = sorted(x)[::-1]\nbut\n    # B) sort them\n    x = sorted(x)\n"
    assert remark.split("but\n")[1] in program_of(words, better)


def test_results_are_those_of_the_trusted_run(made):
    for m in made[:20]:
        for result in public_results(m, ("x[1:]",)):
            output = run_trusted(("x[1:]",), result.test.args[0])
            assert result.output == repr(output)
            assert result.passed == (output == result.test.expected)
