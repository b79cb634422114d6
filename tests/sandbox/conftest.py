import functools
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from smalt.problems.problem import Limits
from smalt.sandbox.execution import Execution, Job, ProgramInput, StdinInput
from smalt.sandbox.forkserver import ForkServerSandbox
from smalt.sandbox.worker.processes import children

Run = Callable[..., list[Execution]]


@pytest.fixture(scope="session")
def sandbox() -> Iterator[ForkServerSandbox]:
    with ForkServerSandbox(workers=1) as opened:
        yield opened


@pytest.fixture
def run(sandbox: ForkServerSandbox) -> Run:
    """Run a program on inputs; texts are standard inputs, keywords are limits and fields of the job."""
    return runner(sandbox)


@pytest.fixture
def run_apart(sandbox: ForkServerSandbox) -> Run:
    """As `run`, every input in a process of its own."""
    return functools.partial(runner(sandbox), is_separate=True)


def runner(sandbox: ForkServerSandbox) -> Run:
    def run_program(
        program: str,
        *inputs: ProgramInput | str,
        stop: bool = False,
        is_separate: bool = False,
        cpu_seconds_total: float | None = None,
        wall_seconds_total: float | None = None,
        **limits: float,
    ) -> list[Execution]:
        wrapped = tuple(StdinInput(item) if isinstance(item, str) else item for item in inputs or ("",))
        given = Limits(**{"cpu_seconds": 2.0, "wall_seconds": 10.0, **limits})
        return sandbox.run(Job(program, wrapped, given, stop, is_separate, cpu_seconds_total, wall_seconds_total))

    return run_program


def guardians(sandbox: ForkServerSandbox) -> list[int]:
    """Process ids of the guardians that run."""
    return [server.pid for worker in sandbox._workers for server in worker.servers if server.pid]


def descendants(pid: int) -> list[int]:
    """Process ids below a process."""
    below = children(pid)
    return below + [deeper for child in below for deeper in descendants(child)]


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def wait_until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
