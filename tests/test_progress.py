import io

import pytest
from rich.console import Console

import smalt.progress
from smalt.progress import progress


def console(terminal):
    return Console(file=io.StringIO(), force_terminal=terminal, width=100)


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass as the test says."""
    now = [100.0]
    monkeypatch.setattr(smalt.progress.time, "monotonic", lambda: now[0])
    return now


def lines(out):
    return out.file.getvalue().splitlines()


def test_elsewhere_than_on_a_terminal_a_line_comes_every_few_seconds(clock):
    out = console(terminal=False)
    with progress(out, "train") as report:
        for step in range(1, 10):
            report(step, 10, {"reward": step / 3})
            clock[0] += 4
    assert lines(out) == ["train 1/10 reward 0.333", "train 4/10 reward 1.33", "train 7/10 reward 2.33"]


def test_the_last_step_is_always_said(clock):
    out = console(terminal=False)
    with progress(out, "collect") as report:
        report(1, 3)
        report(2, 3)
        report(3, 3)
    assert lines(out) == ["collect 1/3", "collect 3/3"]


def test_numbers_are_short(clock):
    out = console(terminal=False)
    with progress(out, "evaluate") as report:
        report(1, 1, {"pass": 0.5, "kl": 1e-6})
    assert lines(out) == ["evaluate 1/1 pass 0.5  kl 1e-06"]


def test_a_terminal_shows_a_bar():
    out = console(terminal=True)
    with progress(out, "train") as report:
        report(1, 2, {"reward": 0.25})
        report(2, 2, {"reward": 0.75})
    shown = out.file.getvalue()
    assert "train" in shown
    assert "2/2" in shown
    assert "reward 0.75" in shown


def test_an_error_passes_through_and_frees_the_terminal():
    out = console(terminal=True)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), progress(out, "train") as report:
            report(1, 2)
            raise ZeroDivisionError
