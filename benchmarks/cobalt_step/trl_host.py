"""TRL's GRPOTrainer taking Cobalt's steps on demand: run by the peers' interpreter, with this checkout on its path.

Reads one JSON object a line. The first names a recipe and holds all contexts, in the order of the steps; each other
one lets the trainer take one more step and says whether all completions get the same length. The answer is the step's
cost. The trainer runs by its own `train()`, with transformers' `generate` (its default); rewards are given by our
grader and our reward, called from a reward function.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import trl
from datasets import Dataset
from transformers import TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from benchmarks.cobalt_step.plan import prompt_text
from smalt.assembly import make_chat, open_grader
from smalt.dialogue.chat import ChatFormat
from smalt.grading.extraction import extract_program
from smalt.grading.grader import Grader
from smalt.methods.method import Method, MethodTools
from smalt.policy.loading import load_policy
from smalt.policy.sampling import Completion
from smalt.problems.problem import Problem
from smalt.problems.sources import load_problems
from smalt.rollouts.records import Context
from smalt.rollouts.tree import Node, Tree
from smalt.settings import RunSettings, load_recipe


@dataclass
class Meter:
    """What the step has cost so far."""

    wait: Callable[[], None]
    """Returns when an asynchronous device is done."""
    spent: dict[str, float] = field(default_factory=dict)

    def begin(self) -> None:
        """A step begins."""
        self.spent = {"sampling": 0.0, "grading": 0.0, "tokens": 0, "programs": 0}
        self.started = time.perf_counter()

    def end(self) -> dict[str, float]:
        """The cost of the step."""
        self.wait()
        seconds = time.perf_counter() - self.started
        return self.spent | {"training": seconds - self.spent["sampling"] - self.spent["grading"]}

    def timed(self, stage: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """`call`, its seconds added to a stage."""

        def measured(*arguments: Any, **options: Any) -> Any:
            self.wait()
            started = time.perf_counter()
            found = call(*arguments, **options)
            self.wait()
            self.spent[stage] += time.perf_counter() - started
            return found

        return measured


@dataclass
class Rewards:
    """Our verdicts and rewards on TRL's completions."""

    contexts: Sequence[Context]
    problems: dict[str, Problem]
    grader: Grader
    method: Method[Any]
    chat: ChatFormat
    meter: Meter
    __name__: str = "cobalt"

    def __call__(self, completion_ids: list[list[int]], context: list[int], **_: Any) -> list[float | None]:
        """Grade all in one call; a reward each, None where the grader failed."""
        nodes = [self._node(self.contexts[place], ids) for place, ids in zip(context, completion_ids, strict=True)]
        programs = [(node, node.program) for node in nodes if node.program is not None]
        grades = self.grader.grade_many([(node.problem, program) for node, program in programs])
        for (node, _program), grade in zip(programs, grades, strict=True):
            node.grade = grade
        for place in dict.fromkeys(context):
            start = self.contexts[place]
            group = [node for node, of in zip(nodes, context, strict=True) if of == place]
            self.method.credit(
                Tree(group[0].problem, start.prompt, start.previous_best, start.attempts, children=group)
            )
        self.meter.spent["tokens"] += sum(map(len, completion_ids))
        self.meter.spent["programs"] += len(programs)
        return [node.reward for node in nodes]

    def _node(self, context: Context, ids: Sequence[int]) -> Node:
        problem = self.problems[context.problem_id]
        reply = self.chat.reply_text(ids)
        completion = Completion(tuple(ids), (), True)
        return Node(problem, context.prompt, completion, reply, extract_program(reply, problem.entry_point), None)


@dataclass
class Turnstile(TrainerCallback):  # type: ignore[misc]
    """Holds the trainer before each step until it is asked for, and answers after it."""

    meter: Meter
    trainer: GRPOTrainer

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """Wait."""
        asked = json.loads(sys.stdin.readline())
        length = self.trainer.max_completion_length if asked["has_fixed_length"] else None
        self.trainer.generation_config.min_new_tokens = length
        self.meter.begin()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """Answer."""
        print("result", json.dumps(self.meter.end()), flush=True)


def config_of(settings: RunSettings, steps: int, rows: int) -> GRPOConfig:
    """Our optimisation in TRL's words: one update a step, a mean over tokens, no penalty, `rows` rows at once."""
    training, model = settings.training, settings.model
    optimiser = training.optimiser
    group = settings.make_method().shape.branching[0]
    return GRPOConfig(
        output_dir=tempfile.mkdtemp(),
        max_steps=steps,
        use_cpu=model.device == "cpu",
        bf16=model.dtype == "bfloat16",
        gradient_checkpointing=False,
        per_device_train_batch_size=rows,
        gradient_accumulation_steps=group * training.contexts_per_step // rows,
        num_generations=group,
        max_completion_length=training.sampling.max_new_tokens,
        temperature=training.sampling.temperature,
        shuffle_dataset=False,
        loss_type="dapo",
        epsilon=training.loss.clip_low,
        epsilon_high=training.loss.clip_high,
        beta=0.0,
        learning_rate=optimiser.learning_rate,
        lr_scheduler_type="constant",
        weight_decay=optimiser.weight_decay,
        max_grad_norm=optimiser.gradient_clip,
        logging_strategy="no",
        save_strategy="no",
        disable_tqdm=True,
        report_to="none",
    )


def main() -> None:
    """Serve until all steps are taken."""
    asked = json.loads(sys.stdin.readline())
    torch.set_num_threads(asked["threads"])
    settings = load_recipe(Path(asked["recipe"]))
    contexts = [Context(**{**fields, "prompt_ids": tuple(fields["prompt_ids"])}) for fields in asked["contexts"]]
    problems = {problem.id: problem for problem in load_problems(settings.problems.train)}
    policy = load_policy(settings.model)
    meter = Meter(torch.cuda.synchronize if policy.device.type == "cuda" else lambda: None)
    policy.model.generate = meter.timed("sampling", policy.model.generate)
    method = settings.make_method(MethodTools(tokenizer=policy.tokenizer))
    with open_grader(settings.grader) as grader:
        rewards = Rewards(contexts, problems, grader, method, make_chat(policy, settings.dialogue), meter)
        rows = [{"prompt": prompt_text(c, policy.tokenizer), "context": n} for n, c in enumerate(contexts)]
        trainer = GRPOTrainer(
            model=policy.model,
            processing_class=policy.tokenizer,
            reward_funcs=meter.timed("grading", rewards),
            args=config_of(settings, len(contexts) // settings.training.contexts_per_step, asked["rows"]),
            train_dataset=Dataset.from_list(rows),
        )
        trainer.add_callback(Turnstile(meter, trainer))
        print("ready", json.dumps({"trl": trl.__version__, "torch": torch.__version__}), flush=True)
        trainer.train()


if __name__ == "__main__":
    main()
