"""A whole run in a folder: warm start -> evaluate -> collect -> cut contexts -> train -> evaluate -> report.

Every stage leaves its result in the run folder and is skipped when that result is there; a stage that was killed
goes on where it was. The same command on the same folder therefore resumes, whenever it was stopped. Methods that
start at bare problems (all but Cobalt) neither collect nor cut.

    config.yaml                    the settings, complete
    warm_start/                    model after the supervised warm start (only with one)
    trajectories/part-*.parquet    dialogues of the reference policy (validation_trajectories/ likewise);
                                   complete.json once all are there
    contexts.parquet               what is trained on (validation_contexts.parquet likewise)
    metrics.jsonl, tensorboard/    numbers of each training step
    checkpoints/step-*/            newest checkpoints, transformers format (adapters: peft's) and optimiser state
    adapter/                       the trained adapters, peft's format (only with model.lora)
    final/                         the trained model, transformers format, with adapters merged
    verifier/                      the verifier, for methods that train one
    evaluation/before, after/      summary.json and trajectories by turn
    stages.json, summary.json      seconds of each stage; the run's figures
    dialogues.json, report.html    example dialogues; the pictures
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from smalt.assembly import adapt, claim_folder, make_chat, make_growth, make_method_and_learner, open_grader
from smalt.evaluation.by_turn import evaluate
from smalt.files import whole_folder, write_json
from smalt.grading.grader import Grader
from smalt.policy.adapters import merge_adapters
from smalt.policy.loading import load_policy
from smalt.problems.problem import Problem
from smalt.problems.sources import load_problems
from smalt.progress import progress
from smalt.rollouts.best_of import no_scores
from smalt.rollouts.collection import collect
from smalt.rollouts.contexts import ContextCutter, cut_store
from smalt.rollouts.growth import Growth
from smalt.rollouts.records import Context
from smalt.rollouts.store import TrajectoryStore, read_contexts, write_contexts
from smalt.run_parts import RunParts
from smalt.run_summary import write_summary
from smalt.settings import EvaluationRunSettings
from smalt.training.checkpoints import save_model_atomically
from smalt.training.loop import TrainingLoop
from smalt.training.sft import examples_of, fine_tune
from smalt.training.turn_value import detach_value_head
from smalt.training.verifier import load_verifier


class Run(RunParts):
    """One run and its folder: the stages, in their order."""

    def execute(self) -> dict[str, Any]:
        """Run all stages that are not done; returns the summary."""
        _ = self.problems_by_id  # refuse ids that clash before hours of work
        with open_grader(self.settings.grader) as grader:
            self.warm_start()
            self.evaluate("before", self.reference_model, grader)
            self.collect(grader)
            self.cut_contexts()
            self.train(grader)
            self.evaluate("after", str(self.folder / "final"), grader)
            self.say_about_verdicts(grader.statistics)
        return write_summary(self.settings, self.folder)

    def warm_start(self) -> None:
        """Supervised fine-tuning on the training problems' solutions, when the recipe asks for it."""
        settings, target = self.settings.warm_start, self.folder / "warm_start"
        if settings is None or target.exists():
            return
        with self.stage("warm_start") as report:
            policy = self.load(self.settings.model.path)
            adapt(policy, self.settings)
            dialogue = self.settings.dialogue
            sources = self.settings.problems
            examples = examples_of(
                load_problems(sources.warm_start or sources.train),
                make_chat(policy, dialogue),
                dialogue.wording,
                dialogue.show_public_tests,
                settings.max_tokens,
            )
            fine_tune(policy, examples, settings, lambda step, steps, loss: report(step + 1, steps, {"loss": loss}))
            merge_adapters(policy)
            save_model_atomically(target, policy)

    def collect(self, grader: Grader) -> None:
        """Trajectories of the reference policy on the training and validation problems."""
        for name, problems in (
            ("trajectories", self.training_problems),
            ("validation_trajectories", self.validation_problems),
        ):
            complete = self.folder / name / "complete.json"
            if not problems or not self.wants_contexts or complete.exists():
                continue
            with self.stage(f"collect_{name}") as report:
                growth = self.growth(self.load(self.reference_model), grader, self.settings.collection)
                store = TrajectoryStore(self.folder / name)
                too_long = collect(problems, growth, self.settings.collection, store, self.settings.seed, report)
                write_json(complete, {"problems_too_long": too_long})
                self.say_left_out(too_long, "problems", "their prompt leaves no room in the model's context")

    def cut_contexts(self) -> None:
        """Contexts for training and validation."""
        target = self.folder / "contexts.parquet"
        if not self.wants_contexts:
            return
        with self.stage("contexts"):
            policy = self.load(self.reference_model)
            dialogue = self.settings.dialogue
            cutter = ContextCutter(
                make_chat(policy, dialogue),
                dialogue.wording,
                self.settings.contexts,
                dialogue.show_public_tests,
            )
            validation = cut_store(
                self.folder / "validation_trajectories", self.validation_problems, cutter.validation_contexts
            )
            write_contexts(self.folder / "validation_contexts.parquet", validation)
            training = cut_store(self.folder / "trajectories", self.training_problems, cutter.training_contexts)
            write_contexts(target, training)
            after_failure = sum(c.attempts > 0 and c.previous_best < 1 for c in training)
            self.console.print(f"{len(training)} contexts, {after_failure} of them after a failure")

    def train(self, grader: Grader) -> None:
        """The method's training; leaves `final/`, and `adapter/` where adapters were trained."""
        if (self.folder / "final").exists():
            return
        settings = self.settings
        with self.stage("train") as report:
            policy = self.load(self.reference_model)
            method, learner = make_method_and_learner(settings, policy, self.folder)
            verifier = method.tools.verifier
            growth = self.growth(policy, grader, settings.collection).with_sampling(settings.training.sampling)
            growth.scores = verifier.scores if verifier else no_scores
            loop = TrainingLoop(
                method=method,
                growth=growth,
                learner=learner,
                settings=settings.training,
                problems=self.problems_by_id,
                folder=self.folder,
                seed=settings.seed,
                spent_before=self.spent_on_trajectories(),
                on_step=lambda step, steps, metrics: report(step + 1, steps, _worth_watching(metrics)),
            )
            too_long = loop.run(*self._starts(growth))
            self.say_left_out(too_long, "contexts", "their prompt leaves no room in the model's context")
            detach_value_head(policy.model)
            if verifier:
                verifier.export(self.folder / "verifier")
            if policy.adapters is not None:
                with whole_folder(self.folder / "adapter") as folder:
                    policy.adapters.save(folder)
                merge_adapters(policy)
            save_model_atomically(self.folder / "final", policy)

    def evaluate(self, name: str, model: str, grader: Grader) -> None:
        """Pass@1 by turn of a model on the held-out problems."""
        folder = self.folder / "evaluation" / name
        if (folder / "summary.json").exists():
            return
        with self.stage(f"evaluate_{name}") as report:
            growth = self.growth(self.load(model), grader, self.settings.evaluation)
            if name == "after" and self.settings.evaluation.best_of > 1 and (self.folder / "verifier").exists():
                growth.scores = load_verifier(self.folder / "verifier", self.settings.model.device, growth.chat).scores
            problems = load_problems(self.settings.problems.evaluation)
            evaluate(problems, growth, self.settings.evaluation, folder, self.settings.seed, report)

    def _starts(self, growth: Growth) -> tuple[list[Context], list[Context]]:
        """Where the method's trees start, in training and validation: bare problems, or the contexts that were cut."""
        if self.settings.method_class.starts_at == "problem":
            training, validation = (
                [_bare(problem, growth) for problem in problems]
                for problems in (self.training_problems, self.validation_problems)
            )
            return training, validation
        names = ("contexts.parquet", "validation_contexts.parquet")
        training, validation = (read_contexts(self.folder / name) for name in names)
        return training, validation


def evaluate_model(settings: EvaluationRunSettings, folder: Path, console: Console) -> dict[str, Any]:
    """`smalt eval`: one model on one problem set; resumes in the same folder. Returns the summary."""
    claim_folder(folder, settings)
    problems = load_problems(settings.problems)
    policy = load_policy(settings.model)
    with open_grader(settings.grader) as grader, progress(console, "evaluate") as report:
        growth = make_growth(policy, settings.dialogue, settings.sampler, grader, settings.evaluation)
        if settings.verifier is not None:
            growth.scores = load_verifier(Path(settings.verifier), settings.model.device, growth.chat).scores
        summary = evaluate(problems, growth, settings.evaluation, folder, settings.seed, report)
        remarks = grader.statistics.remarks()
    for remark in remarks:
        console.print(f"[yellow]{remark}[/yellow]")
    return summary


def _worth_watching(metrics: Mapping[str, float]) -> dict[str, float]:
    """The numbers a person follows while training runs."""
    shown = {"reward": "reward_mean", "solved": "solved_share", "entropy": "entropy", "kl": "kl"}
    return {name: metrics[key] for name, key in shown.items() if key in metrics}


def _bare(problem: Problem, growth: Growth) -> Context:
    return Context(problem.id, -1, 0, 0.0, growth.seed_of(problem).root.ids)
