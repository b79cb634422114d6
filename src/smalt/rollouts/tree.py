"""The rollout tree: every method's samples in one shape.

A tree starts at a prompt (a bare problem, or a stored partial trajectory); every node is one program: the prompt
tokens added since its parent, the tokens the policy wrote, the verdicts, the reward. Children were sampled after
their parent's feedback.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from smalt.dialogue.chat import Prompt
from smalt.grading.extraction import Extraction
from smalt.grading.verdicts import Grade
from smalt.policy.sampling import Completion
from smalt.problems.problem import Problem


@dataclass(eq=False)
class Node:
    """One program of the policy."""

    problem: Problem
    prompt: Prompt
    """What the policy read, complete; `prompt.tail` is the part added since the parent's completion."""
    completion: Completion
    reply: str
    """The completion as text."""
    extraction: Extraction
    grade: Grade | None
    """None when the reply held no program."""
    parent: Node | None = None
    children: list[Node] = field(default_factory=list)
    is_chosen: bool = True
    """Whether the dialogue went on with it, where the best of several siblings was looked for."""
    reward: float | None = None
    """Own reward; None until credit was given, and for ever when the grader failed on this node."""
    reward_parts: tuple[float, ...] = ()
    """The several rewards that `reward` is made of, where a method has them apart."""
    credit: float | None = None
    """What the node is compared by: its own reward, or what the method made of it and of what came later."""

    @property
    def program(self) -> str | None:
        """The program, if there is one."""
        return self.extraction.program

    @property
    def is_infra_error(self) -> bool:
        """Whether the grader failed: the node is neither right nor wrong and leaves the batch."""
        return self.grade is not None and self.grade.is_infra_error

    @property
    def pass_rate(self) -> float:
        """Share of all tests passed; 0 without a program."""
        return self.grade.pass_rate if self.grade is not None else 0.0

    @property
    def passes_public(self) -> bool:
        """Whether every public test passed."""
        return self.grade is not None and self.grade.passes_public

    @property
    def passes_hidden(self) -> bool:
        """Whether every hidden test passed: what evaluation counts."""
        return self.grade is not None and self.grade.passes_hidden

    @property
    def passes_all(self) -> bool:
        """Whether every test passed."""
        return self.grade is not None and self.grade.passes_all

    @property
    def turn(self) -> int:
        """Turn at which it was sampled, counted from 1 at the tree's root."""
        return 1 if self.parent is None else self.parent.turn + 1

    def leaves(self) -> list[Node]:
        """The childless nodes at and below this one, depth first."""
        return [leaf for child in self.children for leaf in child.leaves()] or [self]

    def path(self) -> list[Node]:
        """The nodes from the root's child down to this one."""
        earlier = self.parent.path() if self.parent is not None else []
        return [*earlier, self]


@dataclass(eq=False)
class Tree:
    """All samples that started at one prompt."""

    problem: Problem
    root: Prompt
    previous_best: float = 0.0
    """Best pass rate among the programs already in the root prompt (0 for a bare problem)."""
    attempts: int = 0
    """Number of programs already in the root prompt."""
    kept: int = 0
    """How many of the first children were sampled in an earlier step (NGU)."""
    forgotten: tuple[float, ...] = ()
    """Rewards of earlier completions of the root prompt that are no longer kept (NGU)."""
    children: list[Node] = field(default_factory=list)

    def nodes(self) -> Iterator[Node]:
        """Every node, parents before children, siblings in the order sampled."""
        level = list(self.children)
        while level:
            yield from level
            level = [child for node in level for child in node.children]

    def groups(self) -> Iterator[list[Node]]:
        """Every set of siblings: the samples of one identical prompt."""
        if self.children:
            yield self.children
        for node in self.nodes():
            if node.children:
                yield node.children

    def chains(self) -> list[list[Node]]:
        """The path to each leaf; chains that share more stand closer, first siblings first."""
        return [leaf.path() for child in self.children for leaf in child.leaves()]
