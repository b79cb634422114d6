"""Collect trajectories of a policy into a store, problem by problem, resumable at any moment."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence

from pydantic import BaseModel, ConfigDict, Field

from smalt.policy.sampling import SamplingSettings
from smalt.problems.problem import Problem
from smalt.rollouts.growth import Growth, Shape, never_stop, stop_at_public_pass
from smalt.rollouts.records import Trajectory, turn_record
from smalt.rollouts.store import TrajectoryStore
from smalt.rollouts.tree import Tree


class CollectionSettings(BaseModel):
    """How dialogues are collected. Defaults are Cobalt's (METHODS 1.2)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    samples: int = Field(16, gt=0, description="Dialogues a problem.")
    turns: int = Field(3, gt=0, description="Turns a dialogue.")
    sampling: SamplingSettings = Field(
        default_factory=lambda: SamplingSettings(temperature=0.6, top_p=0.95),
        description="How replies are drawn.",
    )
    stops_at_public_pass: bool = Field(
        False,
        description="Whether a dialogue ends when the public tests pass (RLEF, MURPHY); Cobalt goes on.",
    )
    best_of: int = Field(
        1,
        gt=0,
        description="Programs drawn at each turn, of which the dialogue keeps the best by public tests, then by the "
        "verifier where there is one (muCode's search at test time: 5).",
    )
    problems_per_shard: int = Field(64, gt=0, description="Problems sampled, graded and written together.")


def collect(
    problems: Sequence[Problem],
    growth: Growth,
    settings: CollectionSettings,
    store: TrajectoryStore,
    seed: int,
    on_problems: Callable[[int, int], None],
) -> int:
    """Collect what the store lacks; returns the number of problems left out because their prompt is too long.

    `on_problems(done, all)` is told after each shard. A shard's draws depend on the seed and its problems only, so
    a collection that was killed and resumed equals an undisturbed one.
    """
    growth = growth.with_sampling(settings.sampling)
    seeds = [growth.seed_of(problem) for problem in problems]
    fitting = [tree for tree in seeds if growth.sampler.fits(tree.root.ids, settings.sampling)]
    done = store.problem_ids()
    for shard in _shards(fitting, settings.problems_per_shard):
        missing = [tree for tree in shard if tree.problem.id not in done]
        if missing:
            growth.grow(missing, _shape(settings), seed=_shard_seed(missing, seed))
            store.append(trajectories_of(missing, growth))
        done.update(tree.problem.id for tree in shard)
        on_problems(len(done), len(fitting))
    return len(problems) - len(fitting)


def trajectories_of(trees: Sequence[Tree], growth: Growth) -> list[Trajectory]:
    """The chains of grown trees as records; of siblings that were chosen from, the chosen one."""
    return [
        Trajectory(
            tree.problem.id,
            sample,
            tuple(turn_record(node, growth.feedback_on(node)) for node in chain),
        )
        for tree in trees
        for sample, chain in enumerate(chain for chain in tree.chains() if chain[-1].is_chosen)
    ]


def _shape(settings: CollectionSettings) -> Shape:
    is_leaf = stop_at_public_pass if settings.stops_at_public_pass else never_stop
    return Shape.chains(settings.samples, settings.turns, is_leaf, settings.best_of)


def _shards(trees: Sequence[Tree], size: int) -> Iterator[Sequence[Tree]]:
    for start in range(0, len(trees), size):
        yield trees[start : start + size]


def _shard_seed(trees: Sequence[Tree], seed: int) -> int:
    names = "\n".join(tree.problem.id for tree in trees)
    return int.from_bytes(hashlib.sha256(f"{seed}\n{names}".encode()).digest()[:4])
