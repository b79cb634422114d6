"""Nothing a program starts outlives its job, and nothing of the sandbox outlives its owner."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from smalt.problems.problem import Limits
from smalt.sandbox import forkserver
from smalt.sandbox.execution import CallInput, Job, Outcome, StdinInput
from smalt.sandbox.forkserver import ForkServerSandbox
from smalt.sandbox.isolation import IsolationSettings, Layer, Level
from smalt.sandbox.worker.processes import children
from tests.sandbox.conftest import Run, descendants, guardians, is_alive, runner, wait_until

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


@pytest.mark.parametrize("namespaces", [True, False])
@pytest.mark.parametrize("end", ["", "while True: pass", "os._exit(0)"])
def test_descendants_are_killed_where_programs_can_start_them(end: str, namespaces: bool) -> None:
    without = {Layer.SECCOMP, Layer.LANDLOCK} | (set() if namespaces else {Layer.NAMESPACES})
    with ForkServerSandbox(1, Level.NONE, IsolationSettings(frozenset(without))) as sandbox:
        (execution,) = runner(sandbox)(FORKS + end, cpu_seconds=0.3, wall_seconds=1)
        assert execution.stdout
        (guardian,) = guardians(sandbox)
        # The server and the process that forks for it.
        assert len(descendants(guardian)) == 2


def test_no_process_can_be_started(run: Run) -> None:
    for way in ("os.fork()", "os.posix_spawn('/bin/true', ['true'], {})", "os.execv('/bin/true', ['true'])"):
        program = f"import os\ntry: {way}\nexcept OSError: print('refused')"
        assert run(program)[0].stdout == "refused\n"


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
        for victim in (0, 1):
            sandbox.run(job)
            (guardian,) = guardians(sandbox)
            server = children(guardian)[0]
            os.kill((guardian, server)[victim], signal.SIGKILL)
            assert sandbox.run(job)[0].outcome is Outcome.OK
            wait_until(lambda server=server: not is_alive(server))  # a busy machine may let it answer once more
            assert sandbox.run(job)[0].outcome is Outcome.OK
            assert guardians(sandbox) != [guardian]


def test_a_server_that_dies_in_mid_job_takes_no_result_with_it() -> None:
    program = "import time\ndef f(n):\n    time.sleep(0.6 if n == 2 else 0)\n    return n"
    with ForkServerSandbox(1) as sandbox, ThreadPoolExecutor(1) as pool:
        job = Job(program, tuple(CallInput("f", (n,)) for n in range(4)), Limits())
        running = pool.submit(sandbox.run, job)
        (guardian,) = guardians(sandbox)
        wait_until(lambda: len(descendants(guardian)) == 3)
        time.sleep(0.3)
        os.kill(descendants(guardian)[0], signal.SIGKILL)
        assert [execution.value for execution in running.result()] == [0, 1, 2, 3]


def test_servers_are_replaced_after_many_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forkserver, "RUNS_PER_SERVER", 3)
    with ForkServerSandbox(1) as sandbox:
        run = runner(sandbox)
        first = guardians(sandbox)
        assert run("print(1)", "", "")[1].stdout == "1\n" and guardians(sandbox) == first
        assert run("print(1)")[0].stdout == "1\n" and guardians(sandbox) == []
        assert run("print(1)")[0].stdout == "1\n" and guardians(sandbox) != first


def test_a_program_cannot_kill_its_server(sandbox: ForkServerSandbox, run: Run) -> None:
    before = guardians(sandbox)
    program = "import os, signal\nfor pid in (os.getppid(), 1, -1, 0, -os.getpid(), os.getpid() - 1):\n"
    program += "    try: os.kill(pid, signal.SIGKILL)\n    except PermissionError: print('refused')"
    assert run(program)[0].stdout == "refused\n" * 6
    assert guardians(sandbox) == before


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
        pids = guardians(sandbox)
        sandbox.run(job)
        assert guardians(sandbox) == pids


def test_close_leaves_no_process_descriptor_or_folder() -> None:
    before, groups = len(list(Path("/proc/self/fd").iterdir())), control_groups()
    sandbox = ForkServerSandbox(2)
    for program in ("print(1)", "import numpy", "while True: pass"):
        sandbox.run(Job(program, (StdinInput(""),), Limits(cpu_seconds=0.2)))
    pids = guardians(sandbox)
    pids += [child for pid in pids for child in descendants(pid)]
    folders = [server._scratch_root for worker in sandbox._workers for server in worker.servers if server.pid]
    assert len(pids) == 9
    sandbox.close()
    sandbox.close()
    assert not any(map(is_alive, pids))
    assert not any(Path(folder).exists() for folder in folders)
    assert control_groups() <= groups
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    with pytest.raises(RuntimeError):
        sandbox.run(Job("", (StdinInput(""),), Limits()))


def test_only_programs_are_limited_in_the_tasks_of_their_user() -> None:
    """Workers may share a user: a limit on what forks would let one's program keep another from starting."""
    with ForkServerSandbox(1) as sandbox:
        [execution] = sandbox.run(
            Job("import resource\nprint(resource.getrlimit(resource.RLIMIT_NPROC)[0])", (StdinInput(""),), Limits())
        )
        pids = guardians(sandbox)
        ours = [task_limit(pid) for pid in [*pids, *(child for pid in pids for child in descendants(pid))]]
        has_own_user = Layer.OWN_USER in sandbox.isolation.present
    assert len(ours) >= 3
    assert set(ours) == {task_limit("self")}
    assert not has_own_user or execution.stdout.strip() == "128"


def task_limit(pid: int | str) -> str:
    """The soft limit on processes of a process's user."""
    [line] = [line for line in Path(f"/proc/{pid}/limits").read_text().splitlines() if line.startswith("Max processes")]
    return line.split()[2]


def control_groups() -> set[Path]:
    """Control groups whose guardian is gone. A guardian that somebody killed at any time before has left its own."""
    found = [path for path in Path("/sys/fs/cgroup").rglob("smalt-*") if path.name[6:].isdigit()]
    return {path for path in found if not is_alive(int(path.name[6:]))}


def test_servers_and_programs_end_with_a_killed_caller() -> None:
    caller = """
from smalt.problems.problem import Limits
from smalt.sandbox.execution import Job, StdinInput
from smalt.sandbox.forkserver import ForkServerSandbox
sandbox = ForkServerSandbox(1)
print(sandbox._workers[0].servers[0]._scratch_root, flush=True)
sandbox.run(Job("import time\\ntime.sleep(60)", (StdinInput(""),), Limits(wall_seconds=60)))
"""
    groups = control_groups()
    with subprocess.Popen([sys.executable, "-c", caller], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        wait_until(lambda: len(descendants(process.pid)) == 4, 20)
        pids = descendants(process.pid)
        process.kill()
    wait_until(lambda: not any(map(is_alive, pids)))
    wait_until(lambda: not folder.exists() and control_groups() <= groups)
