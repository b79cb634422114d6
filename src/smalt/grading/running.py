"""Running a job so that a failure of the sandbox is tried once more before it becomes a result."""

from __future__ import annotations

from dataclasses import replace

from smalt.sandbox.execution import Execution, Job, Outcome, Sandbox


def run_with_retry(sandbox: Sandbox, job: Job) -> tuple[list[Execution], int]:
    """Return the executions of `job`, and how many runs were made again because the sandbox failed on them."""
    executions = list(sandbox.run(job))
    broken = [place for place, execution in enumerate(executions) if execution.outcome is Outcome.INFRA_ERROR]
    if broken:
        inputs = tuple(job.inputs[place] for place in broken)
        again = sandbox.run(replace(job, inputs=inputs, stop_at_first_failure=False))
        for place, execution in zip(broken, again, strict=True):
            executions[place] = execution
    return executions, len(broken)
