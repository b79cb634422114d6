"""Grow rollout trees: sample, take the program, grade it, write its feedback, go on.

The shape decides the method: chains for collection and evaluation, one level of siblings for Cobalt and GRPO,
several levels for MURPHY. All trees grow level by level, so that one level is one batch for sampler and grader.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from smalt.dialogue.chat import ChatFormat, Prompt
from smalt.dialogue.feedback import feedback_message
from smalt.dialogue.wording import Wording, no_code_message, task_message
from smalt.grading.extraction import extract_program
from smalt.grading.verdicts import Grade
from smalt.policy.sampling import Completion, Sampler, SampleRequest, SamplingSettings, sampler_over_turns
from smalt.problems.problem import Problem
from smalt.rollouts.best_of import Scores, choose_best, no_scores
from smalt.rollouts.tree import Node, Tree


class Grader(Protocol):
    """Gives verdicts on programs; see `smalt.grading.grader`."""

    def grade_many(self, pairs: Sequence[tuple[Problem, str]]) -> list[Grade]:
        """Grade `(problem, program)` pairs, in order."""
        ...


def never_stop(node: Node) -> bool:
    """Cobalt's protocol: go on whatever the verdicts were."""
    return False


def stop_at_public_pass(node: Node) -> bool:
    """RLEF's and MURPHY's protocol: a program that passes the public tests ends its branch."""
    return node.passes_public


def stop_when_solved(node: Node) -> bool:
    """A program that passes every test ends its branch, and so does one on which the grader failed."""
    return node.passes_all or node.is_infra_error


@dataclass(frozen=True)
class Shape:
    """How many completions each prompt of each level gets: `(n, 1, 1)` is n chains of three turns."""

    branching: tuple[int, ...]
    is_leaf: Callable[[Node], bool] = never_stop
    best_of: int = 1
    """Only the best of so many siblings in a row goes on; the numbers in `branching` are multiples of it."""

    @classmethod
    def chains(cls, count: int, turns: int, is_leaf: Callable[[Node], bool] = never_stop, best_of: int = 1) -> Shape:
        """`count` independent dialogues of `turns` turns, each turn the best of `best_of` draws."""
        return cls((count * best_of, *(best_of for _ in range(turns - 1))), is_leaf, best_of)

    @classmethod
    def group(cls, size: int) -> Shape:
        """One level of `size` siblings."""
        return cls((size,))


@dataclass
class Growth:
    """Grows trees with a sampler and a grader."""

    chat: ChatFormat
    wording: Wording
    sampler: Sampler
    grader: Grader
    sampling: SamplingSettings
    max_failing_tests: int = 1
    """Failing public tests shown in a feedback (Cobalt: the first)."""
    scores: Scores = no_scores
    """Judges programs for shapes that let only the best of several go on."""
    show_public_tests: bool = False
    """Whether the public tests stand in the first message as examples."""
    seconds_grading: float = 0.0
    """Wall time spent in the grader so far; whoever reports it may set it back to 0."""

    def with_sampling(self, sampling: SamplingSettings) -> Growth:
        """The same growth with other draws."""
        return replace(self, sampling=sampling)

    def seed_of(self, problem: Problem) -> Tree:
        """A tree that starts at the bare problem."""
        task = task_message(problem, self.wording, self.show_public_tests)
        return Tree(problem, self.chat.opening(task))

    def grow(self, trees: Sequence[Tree], shape: Shape, seed: int) -> None:
        """Grow `trees` in place. A prompt that does not fit the model's context stays without children."""
        open_prompts: list[tuple[Tree, Node | None, Prompt]] = [(tree, None, tree.root) for tree in trees]
        with sampler_over_turns(self.sampler, len(shape.branching)) as sampler:
            for level, count in enumerate(shape.branching):
                open_prompts = [entry for entry in open_prompts if sampler.fits(entry[2].ids, self.sampling)]
                requests = [_request(parent, prompt, count) for _, parent, prompt in open_prompts]
                sampled = sampler.sample(requests, self.sampling, seed=seed * 1009 + level)
                grown = self._attach(open_prompts, sampled)
                if shape.best_of > 1:
                    choose_best([node for _, node in grown], shape.best_of, self.scores)
                if level + 1 < len(shape.branching):
                    inner = [(tree, node) for tree, node in grown if node.is_chosen and not shape.is_leaf(node)]
                    open_prompts = [(tree, node, self.next_prompt(node)) for tree, node in inner]

    def attach(self, tree: Tree, completions: Sequence[Completion]) -> None:
        """Hang completions that were sampled earlier under a tree's root, and grade them."""
        self._attach([(tree, None, tree.root)], [completions])

    def next_prompt(self, node: Node) -> Prompt:
        """The prompt that follows a node: its history and the feedback on it."""
        return self.chat.next_turn(node.prompt, node.completion.ids, self.feedback_on(node))

    def feedback_on(self, node: Node) -> str:
        """What the policy is told about a node; public results only.

        After a failure of the grader itself nothing is known about the program: the policy is asked to check it
        again, which says nothing false.
        """
        if node.grade is None:
            return no_code_message(self.wording)
        known = () if node.is_infra_error else node.grade.public
        return feedback_message(
            known,
            self.wording,
            max_failing_tests=self.max_failing_tests,
            entry_point=node.problem.entry_point,
            control_tokens=self.chat.control_tokens,
        )

    def _attach(
        self,
        prompts: Sequence[tuple[Tree, Node | None, Prompt]],
        sampled: Sequence[Sequence[Completion]],
    ) -> list[tuple[Tree, Node]]:
        """Make nodes of completions, grade them all in one call, hang them into their trees."""
        grown = [
            (tree, self._node(tree, parent, prompt, completion))
            for (tree, parent, prompt), completions in zip(prompts, sampled, strict=True)
            for completion in completions
        ]
        with_program = [(tree, node) for tree, node in grown if node.program is not None]
        started = time.perf_counter()
        grades = self.grader.grade_many([(tree.problem, node.program or "") for tree, node in with_program])
        self.seconds_grading += time.perf_counter() - started
        for (_, node), grade in zip(with_program, grades, strict=True):
            node.grade = grade
        return grown

    def _node(self, tree: Tree, parent: Node | None, prompt: Prompt, completion: Completion) -> Node:
        reply = self.chat.reply_text(completion.ids)
        extraction = extract_program(reply, tree.problem.entry_point)
        node = Node(tree.problem, prompt, completion, reply, extraction, grade=None, parent=parent)
        (tree.children if parent is None else parent.children).append(node)
        return node


def _request(parent: Node | None, prompt: Prompt, count: int) -> SampleRequest:
    """The request for a prompt's completions; says what of it the sampler has met as `parent`."""
    is_extension = parent is not None and prompt.extends_previous
    return SampleRequest(prompt.ids, count, extends=len(prompt.ids) - len(prompt.tail) if is_extension else 0)
