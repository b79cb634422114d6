"""Nothing a program starts outlives its job, and nothing of the sandbox outlives its owner."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from smalt.problems.problem import Limits
from smalt.sandbox.execution import CallInput, Job, Outcome, StdinInput
from smalt.sandbox.forkserver import ForkServerSandbox
from smalt.sandbox.worker.processes import children
from tests.sandbox.conftest import Run

FORKS = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.chdir('/')
        time.sleep(600)
print(os.getpid(), flush=True)
"""


def server_pids(sandbox: ForkServerSandbox) -> list[int]:
    return [server.pid for worker in sandbox._workers for server in worker.servers if server.pid]


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def wait_until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("end", ["", "while True: pass", "time.sleep(60)", "os._exit(0)", "os.abort()"])
def test_descendants_are_killed(sandbox: ForkServerSandbox, run: Run, end: str) -> None:
    (execution,) = run(FORKS + end, cpu_seconds=0.3, wall_seconds=1)
    assert execution.stdout
    assert [children(pid) for pid in server_pids(sandbox)] == [[]] * len(server_pids(sandbox))
    wait_until(lambda: not is_alive(int(execution.stdout)))


def test_threads_left_behind_do_not_disturb_the_next_input(run: Run) -> None:
    program = "import threading, time\ndef f():\n    while True: print('late'); time.sleep(0.001)\n"
    program += "threading.Thread(target=f, daemon=True).start()\nx = input()\ntime.sleep(0.02)\nprint(x)"
    first, second = run(program, "a", "b")
    assert first.outcome is second.outcome is Outcome.OK
    assert "a" in first.stdout.split() and "a" not in second.stdout.split()
    assert "b" in second.stdout.split()


def test_the_working_folder_is_fresh_and_goes(run: Run) -> None:
    program = "import os\nassert not os.listdir()\nopen('left', 'w').write('x')\nos.mkdir('d')\nprint(os.getcwd())"
    folders = [run(program)[0].stdout.strip() for _ in range(2)]
    assert folders[0] and not any(Path(folder).exists() for folder in folders)


def test_the_callers_environment_stays_out(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMALT_TEST_SECRET", "1")
    with ForkServerSandbox(1) as sandbox:
        job = Job("import os, sys\nprint('SMALT_TEST_SECRET' in os.environ, sys.argv)", (StdinInput(""),), Limits())
        assert sandbox.run(job)[0].stdout == "False ['solution.py']\n"


def test_sets_have_the_same_order_every_time(run: Run) -> None:
    with ForkServerSandbox(1) as other:
        program = "print(list({'a', 'b', 'c', 'd', 'e'}), hash('x'))"
        again = other.run(Job(program, (StdinInput(""),), Limits()))
        assert run(program)[0].stdout == again[0].stdout


def test_a_dead_server_is_replaced() -> None:
    with ForkServerSandbox(1) as sandbox:
        job = Job("print(1)", (StdinInput(""),), Limits())
        sandbox.run(job)
        (pid,) = server_pids(sandbox)
        os.kill(pid, signal.SIGKILL)
        assert sandbox.run(job)[0].outcome is Outcome.OK
        assert server_pids(sandbox) != [pid]


def test_a_program_that_kills_its_server_is_an_infra_error() -> None:
    with ForkServerSandbox(1) as sandbox:
        program = "import os, signal\ndef f(n):\n    if n == 1: os.kill(os.getppid(), signal.SIGKILL)\n    return n"
        executions = sandbox.run(Job(program, tuple(CallInput("f", (n,)) for n in range(3)), Limits()))
        assert [execution.outcome for execution in executions] == [Outcome.INFRA_ERROR] * 3
        assert sandbox.run(Job("print(1)", (StdinInput(""),), Limits()))[0].stdout == "1\n"


def test_a_forged_report_does_no_harm(run: Run) -> None:
    program = "import os\nos.write(202, b'\\0\\0\\0\\2{}' + b'\\xff' * 100)\nos.write(202, b'junk')\nos._exit(0)"
    executions = run(program, "", "")
    assert len(executions) == 2
    assert all(execution.outcome is not Outcome.INFRA_ERROR for execution in executions)


def test_jobs_run_in_parallel_and_keep_apart() -> None:
    with ForkServerSandbox(2) as sandbox, ThreadPoolExecutor(6) as pool:
        jobs = [Job(f"print({n}, input())", tuple(StdinInput(str(k)) for k in range(3)), Limits()) for n in range(40)]
        for n, executions in enumerate(pool.map(sandbox.run, jobs)):
            assert [execution.stdout for execution in executions] == [f"{n} {k}\n" for k in range(3)]
        sleep = Job("import time\ntime.sleep(0.5)", (StdinInput(""),), Limits())
        begin = time.monotonic()
        list(pool.map(sandbox.run, [sleep, sleep]))
        assert time.monotonic() - begin < 0.95


def test_servers_survive_the_thread_that_started_them() -> None:
    made: list[ForkServerSandbox] = []
    thread = threading.Thread(target=lambda: made.append(ForkServerSandbox(1)))
    thread.start()
    thread.join()
    with made[0] as sandbox:
        job = Job("print(1)", (StdinInput(""),), Limits())
        sandbox.run(job)
        pids = server_pids(sandbox)
        sandbox.run(job)
        assert server_pids(sandbox) == pids


def test_close_leaves_no_process_descriptor_or_folder() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    sandbox = ForkServerSandbox(2)
    for program in ("print(1)", "import numpy", "while True: pass"):
        sandbox.run(Job(program, (StdinInput(""),), Limits(cpu_seconds=0.2)))
    pids = server_pids(sandbox)
    folders = [server._scratch_root for worker in sandbox._workers for server in worker.servers if server.pid]
    assert len(pids) == 3
    sandbox.close()
    sandbox.close()
    assert not any(map(is_alive, pids))
    assert not any(Path(folder).exists() for folder in folders)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    with pytest.raises(RuntimeError):
        sandbox.run(Job("", (StdinInput(""),), Limits()))


def test_servers_and_programs_end_with_a_killed_caller(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    caller = f"""
from smalt.problems.problem import Limits
from smalt.sandbox.execution import Job, StdinInput
from smalt.sandbox.forkserver import ForkServerSandbox
sandbox = ForkServerSandbox(1)
program = "import os, time\\nfacts = f'{{os.getpid()}} {{os.getppid()}} {{os.getcwd()}} '\\n"
program += "open({str(note)!r}, 'w').write(facts)\\ntime.sleep(60)"
sandbox.run(Job(program, (StdinInput(""),), Limits(wall_seconds=60)))
"""
    with subprocess.Popen([sys.executable, "-c", caller]) as process:
        wait_until(lambda: note.exists() and note.read_text().endswith(" "), 20)
        process.kill()
    words = note.read_text().split()
    wait_until(lambda: not any(is_alive(int(word)) for word in words[:2]))
    wait_until(lambda: not Path(words[2]).parent.exists())
