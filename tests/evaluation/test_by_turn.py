import pytest

from smalt.evaluation.by_turn import compare_by_turn, evaluate, outcomes_by_problem
from smalt.files import read_json
from smalt.policy.sampling import SamplingSettings
from smalt.reports.run_folder import EvaluationSummary
from smalt.rollouts.collection import CollectionSettings
from smalt.rollouts.store import TrajectoryStore
from tests.conftest import drop_first
from tests.scripted import NO_CODE, RIGHT, WRONG, SeededSampler, TrustedGrader, growth_with, trajectory, turn

SETTINGS = CollectionSettings(
    samples=2, turns=3, sampling=SamplingSettings(temperature=0.6, top_p=0.95), problems_per_shard=2
)
PROBLEMS = [drop_first(f"p{number}") for number in range(5)]
FIELDS = {
    "pass_at_1",
    "ci95",
    "problems",
    "samples_per_problem",
    "seconds",
    "turns",
    "temperature",
    "top_p",
    "stops_at_public_pass",
    "problems_too_long",
    "dialogues_left_out",
}


def run(chat, folder, problems=PROBLEMS, settings=SETTINGS, grader=None, replies=(RIGHT, WRONG, NO_CODE), **sampler):
    growth = growth_with(chat, SeededSampler(chat.tokenizer, replies, **sampler), grader=grader)
    return evaluate(problems, growth, settings, folder, 0, lambda done, total: None)


def test_the_summary_states_figures_and_protocol(chat, tmp_path):
    summary = run(chat, tmp_path)
    assert summary.keys() >= FIELDS
    assert summary == read_json(tmp_path / "summary.json")
    assert EvaluationSummary.model_validate(summary).by_turn().problems == 5
    assert len(summary["pass_at_1"]) == len(summary["ci95"]) == summary["turns"] == 3
    assert summary["samples_per_problem"] == 2
    assert (summary["temperature"], summary["top_p"], summary["stops_at_public_pass"]) == (0.6, 0.95, False)
    assert (summary["problems_too_long"], summary["dialogues_left_out"]) == (0, 0)
    assert summary["seconds"] >= 0


def test_each_turn_counts_its_own_program_not_the_best_so_far(chat, tmp_path):
    summary = run(chat, tmp_path)
    turns = list(zip(*([t.passes_hidden for t in found.turns] for found in stored(tmp_path)), strict=True))
    assert summary["pass_at_1"] == pytest.approx([sum(passed) / 10 for passed in turns])
    assert any(first and not second for first, second in zip(turns[0], turns[1], strict=True))


def stored(folder):
    return list(TrajectoryStore(folder / "trajectories").read())


def test_a_dialogue_that_stopped_repeats_its_last_program():
    outcomes, left_out = outcomes_by_problem([trajectory(1), trajectory(0, 1), trajectory(0, 0.5, 1, 0)], turns=4)
    assert outcomes == {
        "drop-first": [[True, True, True, True], [False, True, True, True], [False, False, True, False]]
    }
    assert left_out == 0


def test_hidden_tests_decide_not_public_ones():
    public_only = turn(0.5, public=True)
    assert outcomes_by_problem([trajectory(public_only, 1)], turns=2)[0] == {"drop-first": [[False, True]]}


def test_the_stopping_protocol_reaches_the_summary(chat, tmp_path):
    summary = run(chat, tmp_path, settings=SETTINGS.model_copy(update={"stops_at_public_pass": True}))
    assert summary["stops_at_public_pass"] is True
    assert summary["pass_at_1"] == sorted(summary["pass_at_1"])
    assert any(len(found.turns) < 3 for found in stored(tmp_path))


def test_dialogues_in_which_the_grader_failed_are_left_out_and_counted():
    good, broken = trajectory(0, 1), trajectory(1, turn(0, infra=True), sample=1)
    only_broken = trajectory(turn(0, infra=True), 1, problem_id="other")
    outcomes, left_out = outcomes_by_problem([good, broken, only_broken], turns=2)
    assert outcomes == {"drop-first": [[False, True]]}
    assert left_out == 2


def test_left_out_dialogues_reach_the_summary(chat, tmp_path):
    summary = run(chat, tmp_path, grader=TrustedGrader(broken="x[:-1]"), replies=(RIGHT, RIGHT, RIGHT, WRONG))
    failed = [found for found in stored(tmp_path) if any(t.is_infra_error for t in found.turns)]
    assert 0 < len(failed) < 10
    assert summary["dialogues_left_out"] == len(failed)
    assert summary["pass_at_1"] == [1, 1, 1]


def test_an_evaluation_with_nothing_left_says_why(chat, tmp_path):
    with pytest.raises(ValueError, match=r"grader|left out"):
        run(chat, tmp_path, grader=TrustedGrader(broken="f"), replies=(RIGHT,))


def test_problems_that_do_not_fit_are_counted(chat, tmp_path):
    long = drop_first("long", statement="Write f(x): " + "drop one end " * 60)
    summary = run(chat, tmp_path, problems=[*PROBLEMS[:2], long], context=120)
    assert (summary["problems"], summary["problems_too_long"]) == (2, 1)


class StopsAfter:
    """The machine goes down at the second shard."""

    def __init__(self, calls):
        self.calls = calls

    def grade_many(self, pairs):
        self.calls -= 1
        if self.calls < 0:
            raise KeyboardInterrupt
        return TrustedGrader().grade_many(pairs)


@pytest.mark.parametrize("calls", [1, 3, 7])
def test_an_evaluation_killed_and_resumed_equals_an_undisturbed_one(chat, tmp_path, calls):
    whole = run(chat, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(chat, tmp_path / "killed", grader=StopsAfter(calls))
    assert not (tmp_path / "killed" / "summary.json").exists()
    resumed = run(chat, tmp_path / "killed")
    assert resumed | {"seconds": 0} == whole | {"seconds": 0}
    assert stored(tmp_path / "killed") == stored(tmp_path / "whole")


def test_two_evaluations_are_compared_problem_by_problem(chat, tmp_path):
    before, after = tmp_path / "before", tmp_path / "after"
    run(chat, before, replies=(WRONG, NO_CODE))
    run(chat, after, replies=(RIGHT,))
    difference = compare_by_turn(before, after, turns=3)
    assert difference["difference"] == [1, 1, 1]
    assert difference["problems"] == 5
    assert difference["ci95"] == [[1, 1]] * 3


def test_problems_that_only_one_evaluation_has_are_not_compared(chat, tmp_path):
    before, after = tmp_path / "before", tmp_path / "after"
    run(chat, before, problems=PROBLEMS[:3], replies=(WRONG,))
    run(chat, after, problems=PROBLEMS[::-1][:3], replies=(RIGHT,))
    assert compare_by_turn(before, after, turns=3)["problems"] == 1
    run(chat, tmp_path / "other", problems=[drop_first("elsewhere")])
    assert compare_by_turn(before, tmp_path / "other", turns=3) is None
