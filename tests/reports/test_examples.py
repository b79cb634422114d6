import pytest

from smalt.reports.examples import example_dialogues
from smalt.reports.run_folder import Dialogue
from smalt.rollouts.store import TrajectoryStore
from tests.conftest import drop_first
from tests.scripted import trajectory, turn

PROBLEMS = [drop_first(f"p{number}", statement=f"Task {number}.") for number in range(9)]


@pytest.fixture
def folders(tmp_path):
    return tmp_path / "before", tmp_path / "after"


def store(folder, *trajectories):
    TrajectoryStore(folder / "trajectories").append(trajectories)


def test_a_repair_is_shown_beside_the_same_dialogue_before_training(folders):
    before, after = folders
    store(before, trajectory(0, 0, 0, problem_id="p1"), trajectory(1, problem_id="p1", sample=1))
    store(after, trajectory(0, 0.5, 1, problem_id="p1"))
    first, second = example_dialogues(PROBLEMS, before, after)
    assert first["problem_id"] == "p1, before training"
    assert [shown["verdict"] for shown in first["turns"]] == [None, "failed", None, "failed", None, "failed", None]
    assert second["problem_id"] == "p1, after training"
    assert [shown["role"] for shown in second["turns"]] == ["user", "assistant"] * 3
    assert [shown["verdict"] for shown in second["turns"]] == [None, "failed", None, "failed", None, "passed"]
    assert second["turns"][0]["text"] == "Task 1."
    assert second["turns"][2]["text"] == "Expected: [2]"
    for example in (first, second):
        Dialogue.model_validate(example)


def test_only_dialogues_that_fail_first_and_pass_later_are_examples(folders):
    before, after = folders
    store(before)
    store(after, trajectory(1, 1, problem_id="p0"), trajectory(0, 0.5, problem_id="p1"), trajectory(0, problem_id="p2"))
    assert example_dialogues(PROBLEMS, before, after) == []


def test_public_tests_alone_make_no_repair(folders):
    before, after = folders
    store(before)
    store(after, trajectory(0, turn(0.9, public=True), problem_id="p0"))
    assert example_dialogues(PROBLEMS, before, after) == []


def test_a_failure_of_the_grader_is_no_repair(folders):
    before, after = folders
    store(before)
    store(after, trajectory(turn(0, infra=True), 1, problem_id="p0"))
    assert example_dialogues(PROBLEMS, before, after) == []


def test_a_few_examples_and_a_few_turns_are_enough(folders):
    before, after = folders
    store(before)
    store(after, *(trajectory(0, 0, 0, 1, 0, 0, problem_id=problem.id) for problem in PROBLEMS))
    examples = example_dialogues(PROBLEMS, before, after)
    assert [example["problem_id"] for example in examples] == [f"p{number}, after training" for number in range(4)]
    assert all(len(example["turns"]) == 8 for example in examples)


def test_a_dialogue_without_a_counterpart_stands_alone(folders):
    before, after = folders
    store(before, trajectory(0, problem_id="p1", sample=5))
    store(after, trajectory(0, 1, problem_id="p1"))
    assert len(example_dialogues(PROBLEMS, before, after)) == 1


def test_no_evaluation_no_examples(folders):
    assert example_dialogues(PROBLEMS, *folders) == []
