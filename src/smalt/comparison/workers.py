"""Several seeds of a comparison at once, each in a process of its own.

A seed is one task, because its runs take over stages from each other. Whatever a run says goes to OUT/seed-K.log.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from rich.console import Console

from smalt.comparison.plan import Plan


def execute_seeds(plan: Plan, folder: Path, jobs: int, console: Console) -> Iterator[int]:
    """Execute the seeds of a plan, `jobs` at once; yields each when all its runs are done.

    A seed that fails does not stop the others; the first error is raised when they have ended. Processors are divided
    among the processes, so that seconds of runs compare within one comparison, not with one of other `jobs`.
    """
    threads = max(1, len(os.sched_getaffinity(0)) // jobs)
    folder.mkdir(parents=True, exist_ok=True)
    errors = []
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _begin, (threads,)) as pool:
        seeds = {pool.submit(_execute_seed, plan, folder, seed): seed for seed in range(plan.seeds)}
        for future in as_completed(seeds):
            if error := future.exception():
                errors.append(error)
                console.print(f"seed {seeds[future]} failed: {error}", style="red", highlight=False)
            else:
                yield seeds[future]
    if errors:
        raise errors[0]


def _begin(threads: int) -> None:
    """Set a new process up: its share of the processors, and an end when its parent is killed.

    Otherwise a comparison that was killed and started again would have two processes in one run folder.
    """
    import torch

    torch.set_num_threads(threads)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None, "this runs in a process of a pool"
    parent.join()
    os._exit(1)


def _execute_seed(plan: Plan, folder: Path, seed: int) -> None:
    from smalt.comparison.runs import Comparison

    with (folder / f"seed-{seed}.log").open("a", buffering=1) as log:
        Comparison(plan, folder, Console(file=log, width=120)).execute_seed(seed)
