"""The process that forks: whatever happens to it, jobs get their results and no process stays."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from smalt.sandbox.execution import CallInput, CodeInput, Outcome
from smalt.sandbox.forkserver import ForkServerSandbox
from smalt.sandbox.worker import zygote as zygotes
from smalt.sandbox.worker.processes import children
from tests.sandbox.conftest import Run, guardians, is_alive, runner, wait_until

PROGRAM = "def double(x): return 2 * x"
CALLS = [CallInput("double", (number,)) for number in range(3)]
TEST = CodeInput("assert double(3) == 6", "double")


def zygote(sandbox: ForkServerSandbox) -> int:
    [server] = children(guardians(sandbox)[0])
    [found] = children(server)
    return found


@pytest.mark.parametrize("is_separate", [False, True])
def test_jobs_survive_the_death_of_the_process_that_forks(run: Run, sandbox: ForkServerSandbox, is_separate) -> None:
    run(PROGRAM, *CALLS)
    before = zygote(sandbox)
    os.kill(before, signal.SIGKILL)
    executions = run(PROGRAM, *CALLS, is_separate=is_separate)
    assert [execution.value for execution in executions] == [0, 2, 4]
    assert zygote(sandbox) != before


def test_its_death_in_mid_job_takes_no_result_with_it(run: Run, sandbox: ForkServerSandbox) -> None:
    program = "import time\ndef f(n):\n    time.sleep(0.6 if n == 1 else 0)\n    return n"
    run(program)
    before = zygote(sandbox)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run, program, *(CallInput("f", (n,)) for n in range(4)), is_separate=True)
        time.sleep(0.3)
        os.kill(before, signal.SIGKILL)
        assert [execution.value for execution in running.result()] == [0, 1, 2, 3]


def test_a_late_answer_is_nobodys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a zygote answers too late, no later order gets that answer: there is no later order."""
    monkeypatch.setattr(zygotes, "_ANSWER_SECONDS", 0.1)
    late = zygotes.Zygote(_start_late)
    for _ in range(2):
        with pytest.raises(BrokenPipeError):
            late.spawn(b"order")
        assert late.has_ended and not is_alive(late.pid)
        time.sleep(0.2)
    late.end()


def _start_late(channel: int) -> int:
    """Fork a process that answers every order after 0.2 seconds."""
    pid = os.fork()
    if pid == 0:
        while os.read(channel, 100):
            time.sleep(0.2)
            os.write(channel, b"12345")
    return pid


@pytest.mark.parametrize("is_separate", [False, True])
def test_nothing_but_it_is_left_after_a_job(run: Run, sandbox: ForkServerSandbox, is_separate) -> None:
    for inputs in (CALLS, [TEST, TEST], [*CALLS, TEST]):
        executions = run(PROGRAM, *inputs, is_separate=is_separate)
        assert {execution.outcome for execution in executions} == {Outcome.OK}
    assert zygote(sandbox)


def test_a_compiler_that_is_killed_leaves_the_verdict_to_the_children(run_apart: Run, sandbox) -> None:
    wide = "x = [" + "[]," * 3_000_000 + "]"
    executions = run_apart(wide, "", "", memory_mb=200)
    assert {execution.outcome for execution in executions} == {Outcome.MEMORY_LIMIT}
    assert [execution.outcome for execution in run_apart("print(1)", "", "")] == [Outcome.OK] * 2
    assert zygote(sandbox)


def test_it_ends_with_its_server() -> None:
    with ForkServerSandbox(workers=1) as sandbox:
        runner(sandbox)(PROGRAM, *CALLS)
        found = zygote(sandbox)
    wait_until(lambda: not is_alive(found))
