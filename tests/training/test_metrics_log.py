import json

import pytest

from smalt.training.metrics_log import MetricsLog


def write(folder, first_step, *steps, **values):
    log = MetricsLog(folder, first_step)
    for step in steps:
        log.write(step, {"reward_mean": float(step), **values})
    log.close()


def lines(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_one_line_a_step(tmp_path):
    write(tmp_path, 0, 0, 1, loss=0.5)
    assert lines(tmp_path) == [
        {"step": 0, "reward_mean": 0.0, "loss": 0.5},
        {"step": 1, "reward_mean": 1.0, "loss": 0.5},
    ]
    assert any((tmp_path / "tensorboard").iterdir())


def test_a_line_is_there_as_soon_as_its_step_is_done(tmp_path):
    log = MetricsLog(tmp_path, 0)
    log.write(0, {"loss": 1.0})
    assert lines(tmp_path) == [{"step": 0, "loss": 1.0}]
    log.close()


def test_steps_that_are_taken_again_replace_the_old_ones(tmp_path):
    write(tmp_path, 0, 0, 1, 2, 3)
    write(tmp_path, 2, 2, 3, 4, again=1.0)
    assert [line["step"] for line in lines(tmp_path)] == [0, 1, 2, 3, 4]
    assert ["again" in line for line in lines(tmp_path)] == [False, False, True, True, True]


@pytest.mark.parametrize("half", ['{"step": 2, "rew', '{"step": 1, "loss": 1.0}', "{", "\x00\x00"])
def test_a_half_line_of_a_killed_run_is_dropped(tmp_path, half):
    write(tmp_path, 0, 0, 1)
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write(half)
    write(tmp_path, 2, 2)
    assert [line["step"] for line in lines(tmp_path)] == [0, 1, 2]


def test_a_run_from_the_start_empties_the_log(tmp_path):
    write(tmp_path, 0, 0, 1, 2)
    write(tmp_path, 0, 0)
    assert [line["step"] for line in lines(tmp_path)] == [0]
    assert not list(tmp_path.glob("*.tmp"))


def test_the_newest_step_kept_is_at_hand(tmp_path):
    assert MetricsLog(tmp_path, 0).last is None
    write(tmp_path, 0, 0, 1, 2)
    log = MetricsLog(tmp_path, 2)
    assert log.last == {"step": 1, "reward_mean": 1.0}
    log.close()
