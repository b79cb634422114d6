import pytest

from smalt.grading.verdicts import Status
from smalt.rollouts.growth import Shape
from smalt.rollouts.records import Context, turn_record
from tests.scripted import NO_CODE, RIGHT, WRONG, TrustedGrader, scripted_growth, trajectory, turn


def records(chat, problem, *replies, **options):
    growth = scripted_growth(chat, replies, **options)
    tree = growth.seed_of(problem)
    growth.grow([tree], Shape.group(len(replies)), seed=0)
    return [turn_record(node, growth.feedback_on(node)) for node in tree.children]


def test_a_record_keeps_what_was_sampled_and_what_came_of_it(chat, problem):
    right, wrong = records(chat, problem, RIGHT, WRONG)
    assert right.reply == RIGHT
    assert right.program == "def f(x):\n    return x[1:]\n"
    assert right.completion_ids[-1] == chat.tokenizer.eos_token_id
    assert len(right.logprobs) == len(right.completion_ids)
    assert (right.pass_rate, right.passes_all, right.is_finished) == (1, True, True)
    assert wrong.pass_rate == pytest.approx(1 / 3)
    assert [outcome.status for outcome in wrong.public] == [Status.WRONG_ANSWER]
    assert wrong.public[0].output == "[1, 2]"
    assert wrong.hidden == ("wrong_answer", "passed")
    assert "Expected: [2, 3]" in wrong.feedback


def test_a_reply_without_a_program_has_no_verdicts(chat, problem):
    [record] = records(chat, problem, NO_CODE)
    assert (record.program, record.public, record.hidden, record.pass_rate) == (None, (), (), 0)
    assert not (record.passes_public or record.passes_hidden or record.is_infra_error)
    assert record.feedback == "No program."


def test_a_failure_of_the_grader_is_marked(chat, problem):
    [record] = records(chat, problem, RIGHT, grader=TrustedGrader(broken="x[1:]"))
    assert record.is_infra_error
    assert record.hidden == ("infra_error", "infra_error")


def test_spread_and_solution_of_a_trajectory():
    assert trajectory(0.25, 1, 0.5).spread == 0.75
    assert trajectory(0.5).spread == 0
    assert trajectory(0, 1, 0).is_solved
    assert not trajectory(0, turn(0.9, public=True)).is_solved


def test_a_context_is_the_root_of_a_tree():
    prompt = Context("a", 0, 1, 0.5, (1, 2, 3)).prompt
    assert prompt.ids == prompt.tail == (1, 2, 3)
    assert not prompt.extends_previous
