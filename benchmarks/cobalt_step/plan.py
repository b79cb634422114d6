"""Settings of the step, and the prompts that it begins from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from smalt.comparison.plan import merged
from smalt.dialogue.chat import ChatFormat
from smalt.lab.demo import DEMO_RECIPE
from smalt.policy.sampling import Completion, SampleRequest, SamplingSettings
from smalt.problems.problem import Problem
from smalt.rollouts.growth import Growth, Shape
from smalt.rollouts.records import Context
from smalt.rollouts.tree import Tree
from smalt.settings import RunSettings, recipe_settings
from smalt.yaml_settings import read_yaml

_RECIPE = Path(__file__).parents[2] / "recipes" / "cobalt-smollm2-135m.yaml"
_METHOD = "benchmarks.cobalt_step.full_signal:CobaltWithSignal"
_MUTATIONS = (("return ", "return None and "), ("return ", "return not "))
"""What makes a solution fail at each attempt: its length and its look stay."""


def settings_of(options: dict[str, Any]) -> RunSettings:
    """The recipe (the demo's for lab problems), with the command's model, problems and sizes.

    Raises `SettingsError` where they do not fit together.
    """
    base = options["base"] or (DEMO_RECIPE if options["problems"] == "lab" else _RECIPE)
    changes = {
        "method": _METHOD,
        "own_method": {"group_size": options["group"]},
        "model": {name: options[key] for name, key in (("path", "model"), ("dtype", "dtype"), ("device", "device"))},
        "problems": {
            "train": {"path": options["problems"], "format": "auto", "split": None, "limit": None},
            "validation": None,
        },
        "warm_start": None,
        "training": {
            "contexts_per_step": options["contexts"],
            "sampling": {"temperature": 1.0, "max_new_tokens": options["completion"]},
            "optimiser": {
                "groups_per_update": options["contexts"],
                "warm_up_steps": 0,
                "gradient_checkpointing": False,
            },
            "loss": {"kl_coefficient": 0.0},
            "validate_every": 0,
        },
    }
    return recipe_settings(merged(read_yaml(base), changes), str(base))


def make_contexts(problems: Sequence[Problem], growth: Growth, count: int) -> list[Context]:
    """So many contexts: bare problems, and problems after one and after two failing programs, in turn.

    The programs are solutions spoiled, graded, and told so in the words of the recipe. Only problems with a solution
    serve, and prompts that leave room for a completion and that the tokenizer writes and reads without a change, as
    the peer is given texts. Raises ValueError when there are too few.
    """
    usable = [problem for problem in problems if problem.solutions][: 2 * count]
    trees = [growth.seed_of(problem) for problem in usable]
    replies = [[_spoiled(problem, *mutation) for problem in usable] for mutation in _MUTATIONS]
    scripted = replace(growth, sampler=_Script(growth.chat, replies))
    scripted.grow(trees, Shape.chains(1, len(_MUTATIONS)), seed=0)
    made = [_context(tree, place % (len(_MUTATIONS) + 1), growth) for place, tree in enumerate(trees)]
    sampling, tokenizer = growth.sampling, growth.chat.tokenizer
    kept = [c for c in made if growth.sampler.fits(c.prompt_ids, sampling) and _is_stable(c.prompt_ids, tokenizer)]
    if len(kept) < count:
        raise ValueError(f"{count} contexts are needed and only {len(kept)} of {len(problems)} problems make one")
    return kept[:count]


def prompt_text(context: Context, tokenizer: Any) -> str:
    """A prompt as the peer is given it."""
    return str(tokenizer.decode(list(context.prompt_ids), skip_special_tokens=False))


def _is_stable(ids: Sequence[int], tokenizer: Any) -> bool:
    text = tokenizer.decode(list(ids), skip_special_tokens=False)
    return list(tokenizer(text=text)["input_ids"]) == list(ids)


def _spoiled(problem: Problem, old: str, new: str) -> str:
    program = "\n".join(problem.solutions[0].splitlines()).replace(old, new).replace("print(", "print('?', ")
    return f"```python\n{program}\n```"


def _context(tree: Tree, attempts: int, growth: Growth) -> Context:
    [chain] = tree.chains()
    prompt = growth.next_prompt(chain[attempts - 1]) if attempts else tree.root
    best = max((node.pass_rate for node in chain[:attempts]), default=0.0)
    return Context(tree.problem.id, 0, attempts, best, prompt.ids)


@dataclass
class _Script:
    """A sampler that says at each turn what is written for it."""

    chat: ChatFormat
    replies: Sequence[Sequence[str]]
    turn: int = 0

    def fits(self, prompt_ids: Sequence[int], settings: SamplingSettings) -> bool:
        return True

    def sample(
        self, requests: Sequence[SampleRequest], settings: SamplingSettings, seed: int
    ) -> list[list[Completion]]:
        self.turn += 1
        return [[self._completion(reply)] for reply in self.replies[self.turn - 1]]

    def _completion(self, reply: str) -> Completion:
        text = reply.removeprefix(self.chat.reply_opening)
        ids = [*self.chat.tokenizer.encode(text, add_special_tokens=False), self.chat.tokenizer.eos_token_id]
        return Completion(tuple(ids), (0.0,) * len(ids), True)
