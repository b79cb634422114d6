"""Execute a comparison: seed by seed, method by method, each run in a folder of its own.

    OUT/METHOD/seed-0/     a run folder (see pipeline.py), without its checkpoints once it is done
    OUT/seed-0.log         what the runs of a seed said, where several seeds run at once
    OUT/comparison.json    the figures; .md and .html the same to read

The same command goes on where it was: a run that is done is skipped, one that was killed resumes. More seeds or
methods may be asked for later; other settings for a run that is there are refused. The report is written after each
seed, so that it always compares equally many runs of each method.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from smalt.assembly import refuse_other_settings
from smalt.comparison.plan import Plan
from smalt.comparison.results import RunResult, read_run, summarise
from smalt.comparison.sharing import take_over
from smalt.comparison.workers import execute_seeds
from smalt.files import write_text
from smalt.pipeline import Run
from smalt.reports.comparison_file import ComparisonSummary
from smalt.reports.comparison_report import write_comparison_report
from smalt.reports.comparison_tables import comparison_markdown


@dataclass
class Comparison:
    """A plan and the folder it is executed in."""

    plan: Plan
    folder: Path
    console: Console
    results: dict[tuple[str, int], RunResult] = field(default_factory=dict)
    """Of the runs that are done, by method's name and seed."""

    def __post_init__(self) -> None:
        """Refuse a folder in which some run has other settings, before any work is done."""
        for (name, seed), settings in self.plan.runs.items():
            refuse_other_settings(self.run_folder(name, seed), settings)  # only looks: others may be at work there

    def run_folder(self, name: str, seed: int) -> Path:
        """Where a run lives."""
        return self.folder / name / f"seed-{seed}"

    def execute(self, jobs: int = 1) -> ComparisonSummary:
        """Execute what is not done, `jobs` seeds at once; write and return the figures.

        The report is over seeds 0, 1, .. as far as they are done without a gap.
        """
        reported = 0
        summary: ComparisonSummary | None = None
        for _ in self._executed_seeds(jobs):
            while all((name, reported) in self.results for name in self.plan.names):
                reported += 1
                summary = self.report(reported)
        assert summary is not None, "a plan has a seed at least"
        return summary

    def execute_seed(self, seed: int) -> None:
        """Execute what is not done of one seed, method by method."""
        for place, name in enumerate(self.plan.names, start=seed * len(self.plan.names) + 1):
            self.console.print(f"run {place}/{len(self.plan.runs)}: {name}, seed {seed}", highlight=False)
            self._execute(name, seed)

    def report(self, seeds: int) -> ComparisonSummary:
        """Figures of the first so many seeds, written as JSON, Markdown and HTML."""
        runs = {name: [self.results[name, seed] for seed in range(seeds)] for name in self.plan.names}
        summary = summarise(self.plan.budget, runs)
        write_text(self.folder / "comparison.json", summary.model_dump_json(indent=2) + "\n")
        write_text(self.folder / "comparison.md", comparison_markdown(summary))
        write_comparison_report(summary, self.folder.resolve().name, self.folder / "comparison.html")
        return summary

    def _executed_seeds(self, jobs: int) -> Iterator[int]:
        """Each seed when it is done and its results are read, here or in `jobs` other processes."""
        if jobs == 1:
            for seed in range(self.plan.seeds):
                self.execute_seed(seed)
                yield seed
            return
        for seed in execute_seeds(self.plan, self.folder, jobs, self.console):
            self.console.print(f"seed {seed} is done", highlight=False)
            for name in self.plan.names:
                self._execute(name, seed)
            yield seed

    def _execute(self, name: str, seed: int) -> None:
        """One run, unless it is done."""
        folder, settings = self.run_folder(name, seed), self.plan.runs[name, seed]
        if not (folder / "report.html").exists():  # the last that a run writes
            run = Run(settings, folder, self.console)
            taken = take_over(folder, settings, [(self.run_folder(*key), its) for key, its in self.plan.runs.items()])
            if taken:
                self.console.print(f"taken over from another run: {', '.join(taken)}", highlight=False)
            run.execute()
        # final/ is the model; what only a resumed training needs would be most of a comparison's disk.
        shutil.rmtree(folder / "checkpoints", ignore_errors=True)
        self.results[name, seed] = read_run(folder, settings)
