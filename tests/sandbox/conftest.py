from collections.abc import Callable, Iterator

import pytest

from smalt.problems.problem import Limits
from smalt.sandbox.execution import Execution, Job, ProgramInput, StdinInput
from smalt.sandbox.forkserver import ForkServerSandbox

Run = Callable[..., list[Execution]]


@pytest.fixture(scope="session")
def sandbox() -> Iterator[ForkServerSandbox]:
    with ForkServerSandbox(workers=1) as opened:
        yield opened


@pytest.fixture
def run(sandbox: ForkServerSandbox) -> Run:
    """Run a program on inputs; texts are standard inputs, keywords are limits."""

    def run_program(program: str, *inputs: ProgramInput | str, stop: bool = False, **limits: float) -> list[Execution]:
        wrapped = tuple(StdinInput(item) if isinstance(item, str) else item for item in inputs or ("",))
        given = Limits(**{"cpu_seconds": 2.0, "wall_seconds": 10.0, **limits})
        return sandbox.run(Job(program, wrapped, given, stop_at_first_failure=stop))

    return run_program
