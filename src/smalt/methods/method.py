"""What a method is: a way to grow a tree, a way to give credit in it, and its defaults.

A method does not sample, grade, or touch the model. `docs/methods/your-own.md` writes one in thirty lines.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict

from smalt.credit.advantage_settings import OverlongSettings
from smalt.credit.estimators import Estimator, overlong_penalty
from smalt.rollouts.growth import Shape
from smalt.rollouts.tree import Node, Tree
from smalt.training.companions import Companion
from smalt.training.groups import TrainingGroup, training_groups


class MethodSettings(BaseModel):
    """A method's own choices; the recipe's section of the method's name holds them."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ProgramVerifier(Companion, Protocol):
    """Judges programs without running them; see `training/verifier_training.py`."""

    def scores(self, nodes: Sequence[Node]) -> list[float]:
        """A score for each node's program, higher for better; minus infinity without a program."""
        ...

    def fit(self, trees: Sequence[Tree]) -> dict[str, float]:
        """Learn from graded programs; numbers for the log."""
        ...

    def export(self, folder: Path) -> None:
        """Write the verifier for evaluations to come."""
        ...


@dataclass(frozen=True)
class MethodTools:
    """What a run lends to its method."""

    tokenizer: Any = None
    """Counts tokens of a text."""
    is_thinking_model: bool = False
    estimator: Estimator = field(default_factory=Estimator)
    """Turns the rewards of a group into advantages."""
    overlong: OverlongSettings | None = None
    """Penalty on long completions, if any."""
    verifier: ProgramVerifier | None = None
    """Learned judge of programs, for methods that train one."""
    log_ratios: Callable[[Sequence[Node]], list[float]] = lambda nodes: [0.0] * len(nodes)
    """For each node the mean over its tokens of log pi / pi_ref, for methods that need the reference policy."""


Options = TypeVar("Options", bound=MethodSettings)


@dataclass(frozen=True)
class Method(ABC, Generic[Options]):
    """A method of training."""

    settings: Options
    tools: MethodTools = field(default_factory=MethodTools)

    settings_class: ClassVar[type[MethodSettings]]
    starts_at: ClassVar[Literal["problem", "context"]] = "problem"
    """Whether trees start at bare problems, or at contexts cut from stored trajectories."""
    defaults: ClassVar[Mapping[str, Any]] = {}
    """Fields of other sections, by dotted name, that a recipe of this method has unless it says otherwise."""
    has_own_advantages: ClassVar[bool] = False
    """Whether `credit` computes advantages itself and `training.advantages` means nothing to it."""
    has_several_rewards: ClassVar[bool] = False
    """Whether nodes carry `reward_parts` that GDPO can normalise one by one."""
    learns_values: ClassVar[bool] = False
    """Whether groups carry returns, from which the learner subtracts a learned value of each prompt."""
    imitates: ClassVar[bool] = False
    """Whether groups hold programs to imitate, for the objective "likelihood", instead of programs to compare."""
    learns_verifier: ClassVar[bool] = False
    """Whether it needs `tools.verifier`, trained by the `verifier` section of its settings."""
    has_own_length_rule: ClassVar[bool] = False
    """Whether the reward minds the length already, so that an overlong penalty would count it twice."""

    @property
    @abstractmethod
    def shape(self) -> Shape:
        """How trees grow."""

    @abstractmethod
    def credit(self, tree: Tree) -> list[TrainingGroup]:
        """Set `reward` and `credit` on the nodes of a grown tree; return the groups that carry a signal."""

    def learn_from(self, trees: Sequence[Tree]) -> dict[str, float]:
        """Learn something of the method's own from the trees of a step, before credit; numbers for the log."""
        return {}

    @property
    def needs_reference(self) -> bool:
        """Whether `credit` asks for `tools.log_ratios`."""
        return False

    def validation_score(self, node: Node) -> float:
        """Score of one program in validation: 1 when all tests pass, else 0."""
        return float(node.passes_all)

    def compare(self, siblings: Sequence[Node], forgotten: Sequence[float] = ()) -> list[TrainingGroup]:
        """The siblings with advantages from their credits: one group, or none when nobody differs."""
        parts = [node.reward_parts for node in siblings] if self.has_several_rewards else []
        advantages = self.tools.estimator([node.credit for node in siblings], parts, forgotten)
        return training_groups(zip(siblings, advantages, strict=True))

    def length_penalty(self, node: Node) -> float:
        """The overlong penalty of a node's completion, 0 without one."""
        return overlong_penalty(len(node.completion.ids), self.tools.overlong) if self.tools.overlong else 0.0
