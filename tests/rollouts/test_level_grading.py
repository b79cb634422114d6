"""Grading while others are written: what it hides, that it changes nothing, and what happens when it fails."""

import threading
import time

import pytest

from smalt.grading.grader import Grader
from smalt.policy.local_sampler import LocalSampler
from smalt.policy.sampling import SamplingSettings
from smalt.rollouts.growth import Shape
from smalt.rollouts.level_grading import covered
from tests.conftest import drop_first
from tests.grading.scripted_sandbox import RIGHT as PASSES
from tests.grading.scripted_sandbox import ScriptedSandbox, numbered_problem
from tests.scripted import NO_CODE, RIGHT, WRONG, StreamingGrader, TellingSampler, growth_with, scripted_growth

REPLIES = [f"```python\ndef f(x):\n    return {number}\n```" for number in range(6)]


def telling_growth(chat, *levels, grader=None, seconds=0.0, **options):
    sampler = TellingSampler(chat.tokenizer, levels, seconds=seconds)
    return growth_with(chat, sampler, grader=grader or StreamingGrader(), **options)


def grown(growth, shape, *problems):
    trees = [growth.seed_of(problem) for problem in problems]
    growth.grow(trees, shape, seed=0)
    return trees


@pytest.mark.parametrize(
    ("spans", "length"),
    [([], 0), ([(1, 2)], 1), ([(1, 2), (4, 6)], 3), ([(4, 6), (1, 5)], 5), ([(1, 9), (2, 3), (8, 10)], 9)],
)
def test_time_covered_is_counted_once(spans, length):
    assert covered(spans) == length


def test_a_program_is_graded_before_the_last_one_is_written(chat, problem):
    is_graded = threading.Event()
    growth = telling_growth(chat, REPLIES[:2])
    growth.grader.judge = lambda program, place: is_graded.set() or True
    tell = growth.sampler.sample_and_tell

    def patient(requests, settings, seed, on_finished):
        def told(place, number, completion):
            assert number == 1 or is_graded.wait(20)
            on_finished(place, number, completion)

        return tell(requests, settings, seed, told)

    growth.sampler.sample_and_tell = patient
    [tree] = grown(growth, Shape.group(2), problem)
    assert all(node.passes_all for node in tree.children)


def test_wall_time_is_the_longer_of_sampling_and_grading_not_their_sum(chat, problem):
    each = 0.1
    growth = telling_growth(chat, REPLIES, grader=StreamingGrader(seconds=each), seconds=each)
    started = time.perf_counter()
    grown(growth, Shape.group(6), problem)
    elapsed = time.perf_counter() - started
    assert elapsed < 9 * each  # 12 one after the other, 7 beside each other
    assert growth.grading_time.overlapped >= 4 * each
    assert growth.grading_time.waited < 5 * each
    assert growth.grading_time.overlapped + growth.grading_time.waited >= 6 * each


def test_without_early_grading_the_level_is_one_batch_at_its_end(chat, problem):
    growth = telling_growth(chat, REPLIES, grades_early=False)
    batches = []
    grade = growth.grader.grade_many
    growth.grader.grade_many = lambda pairs: batches.append(len(pairs)) or grade(pairs)
    grown(growth, Shape.group(6), problem)
    assert batches == [6]
    assert growth.grading_time.overlapped == 0


@pytest.mark.parametrize("branching", [(4,), (3, 2)])
def test_trees_are_the_same_early_or_late(chat, policy, branching):
    trees = []
    for grades_early in (True, False):
        growth = growth_with(chat, LocalSampler(policy), grader=StreamingGrader(), grades_early=grades_early)
        growth.chat = growth.chat.__class__(chat.tokenizer, reply_prefix="```python\n")
        growth = growth.with_sampling(SamplingSettings(max_new_tokens=16))
        trees.append(grown(growth, Shape(branching), drop_first("a"), drop_first("b", statement="Other words.")))
    for one, other in zip(*trees, strict=True):
        facts = [[(n.prompt, n.completion, n.reply, n.grade, n.turn) for n in tree.nodes()] for tree in (one, other)]
        assert facts[0] == facts[1]
        assert all(grade is not None for *_, grade, _ in facts[0])


def test_nodes_hang_in_the_order_of_requests_whoever_ended_first(chat):
    replies = [REPLIES[0], NO_CODE, WRONG, RIGHT]
    trees = grown(telling_growth(chat, replies), Shape.group(2), drop_first("a"), drop_first("b"))
    assert [node.reply for tree in trees for node in tree.children] == replies
    assert trees[0].children[1].grade is None


def test_a_sampler_that_does_not_tell_is_graded_at_the_end(chat, problem):
    grader = StreamingGrader()
    [tree] = grown(scripted_growth(chat, REPLIES, grader=grader), Shape.group(6), problem)
    assert all(node.grade for node in tree.children)
    assert len(grader.graded) == 6


def test_equal_programs_of_a_level_run_once(chat):
    sandbox = ScriptedSandbox(lambda job, number: PASSES)
    growth = telling_growth(chat, [RIGHT, WRONG, RIGHT, RIGHT], grader=Grader(sandbox, workers=2))
    [tree] = grown(growth, Shape.group(4), numbered_problem(1, public=1))
    assert all(node.passes_all for node in tree.children)
    assert len({job.program for job in sandbox.jobs}) == growth.grader.statistics.programs == 2


def test_an_error_of_the_grader_reaches_the_caller(chat):
    growth = telling_growth(chat, REPLIES, grader=Grader(ScriptedSandbox(lambda job, number: 1 / 0)))
    with pytest.raises(ZeroDivisionError):
        grown(growth, Shape.group(6), numbered_problem(1))


def test_after_an_error_of_the_sampler_programs_not_begun_are_left_out(chat):
    begun, go_on = threading.Event(), threading.Event()

    def answer(job, number):
        begun.set()
        assert go_on.wait(20)
        return PASSES

    def break_off(requests, settings, seed, on_finished):
        for number, completion in enumerate(growth.sampler.sample(requests, settings, seed)[0]):
            on_finished(0, number, completion)
        assert begun.wait(20)
        threading.Timer(0.05, go_on.set).start()
        raise KeyboardInterrupt

    sandbox = ScriptedSandbox(answer)
    growth = telling_growth(chat, REPLIES, grader=Grader(sandbox, workers=1))
    growth.sampler.sample_and_tell = break_off
    with pytest.raises(KeyboardInterrupt):
        grown(growth, Shape.group(6), numbered_problem(1))
    assert len(sandbox.jobs) == 1
