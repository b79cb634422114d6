"""A whole run with steps sampled ahead, on the real sandbox: kill -9 while the thread is at work, and the same end."""

import signal
import subprocess
import sys
import time

import pytest

from tests.test_pipeline import STEPS, TRAIN, execute, metrics_of, recipe  # noqa: F401  (a fixture)

AHEAD = ("training.steps_ahead=1", "training.checkpoint_every=3")


def start(recipe, folder):  # noqa: F811
    options = [option for override in AHEAD for option in ("--set", override)]
    command = [sys.executable, "-c", TRAIN, str(recipe), *options, "--out", str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.slow
def test_kill_9_with_steps_ahead_and_the_same_command_again(recipe, tmp_path):  # noqa: F811
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    execute(recipe, whole, *AHEAD)
    assert any(row["staleness"] for row in metrics_of(whole))
    log = killed / "metrics.jsonl"
    process = start(recipe, killed)
    while not (log.exists() and '{"step": 1,' in log.read_text()):
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not (killed / "final").exists()
    again = start(recipe, killed)
    said = again.communicate()[0]
    assert again.returncode == 0, said
    assert (killed / "final/model.safetensors").read_bytes() == (whole / "final/model.safetensors").read_bytes()
    assert [row["step"] for row in metrics_of(killed)] == list(range(STEPS))
