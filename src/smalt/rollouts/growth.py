"""Grow rollout trees: sample, take the program, grade it, write its feedback, go on.

The shape decides the method: chains for collection and evaluation, one level of siblings for Cobalt and GRPO,
several levels for MURPHY. All trees grow level by level, so that one level is one batch for sampler and grader; a
program may be graded while others of its level are still being written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter

from smalt.dialogue.chat import ChatFormat, Prompt
from smalt.dialogue.feedback import feedback_message
from smalt.dialogue.wording import Wording, no_code_message, task_message
from smalt.grading.extraction import extract_program
from smalt.policy.sampling import (
    Completion,
    OnFinished,
    Sampler,
    SampleRequest,
    SamplingSettings,
    sample_and_tell,
    sampler_over_turns,
)
from smalt.problems.problem import Problem
from smalt.rollouts.best_of import Scores, choose_best, no_scores
from smalt.rollouts.level_grading import Grader, GradingTime, level_grading
from smalt.rollouts.tree import Node, Tree

_OpenPrompt = tuple[Tree, Node | None, Prompt]
"""A prompt whose completions are wanted: where they hang, and after which node."""


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
    grades_early: bool = True
    """Whether a program is graded as soon as it is written, if sampler and grader can; else with its whole level."""
    grading_time: GradingTime = field(default_factory=GradingTime)
    """Wall time of grading so far."""

    def with_sampling(self, sampling: SamplingSettings) -> Growth:
        """The same growth with other draws."""
        return replace(self, sampling=sampling)

    def seed_of(self, problem: Problem) -> Tree:
        """A tree that starts at the bare problem."""
        task = task_message(problem, self.wording, self.show_public_tests)
        return Tree(problem, self.chat.opening(task))

    def grow(self, trees: Sequence[Tree], shape: Shape, seed: int) -> None:
        """Grow `trees` in place. A prompt that does not fit the model's context stays without children."""
        open_prompts: list[_OpenPrompt] = [(tree, None, tree.root) for tree in trees]
        with sampler_over_turns(self.sampler, len(shape.branching)) as sampler:
            for level, count in enumerate(shape.branching):
                open_prompts = [entry for entry in open_prompts if sampler.fits(entry[2].ids, self.sampling)]
                requests = [_request(parent, prompt, count) for _, parent, prompt in open_prompts]
                draw = partial(sample_and_tell, sampler, requests, self.sampling, seed * 1009 + level)
                grown = self._grow_level(open_prompts, draw)
                if shape.best_of > 1:
                    choose_best([node for _, node in grown], shape.best_of, self.scores)
                if level + 1 < len(shape.branching):
                    inner = [(tree, node) for tree, node in grown if node.is_chosen and not shape.is_leaf(node)]
                    open_prompts = [(tree, node, self.next_prompt(node)) for tree, node in inner]

    def attach(self, tree: Tree, completions: Sequence[Completion]) -> None:
        """Hang completions that were sampled earlier under a tree's root, and grade them."""
        self._grow_level([(tree, None, tree.root)], lambda on_finished: [completions])

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

    def _grow_level(
        self,
        prompts: Sequence[_OpenPrompt],
        draw: Callable[[OnFinished], Sequence[Sequence[Completion]]],
    ) -> list[tuple[Tree, Node]]:
        """Make graded nodes of the completions drawn, and hang them into their trees in the order of the prompts."""
        nodes: dict[tuple[int, int], Node] = {}
        with level_grading(self.grader, self.grading_time, self.grades_early) as grading:

            def on_finished(place: int, number: int, completion: Completion) -> None:
                node = nodes[place, number] = self._node(prompts[place], completion)
                grading.begin(node)

            for place, completions in enumerate(draw(on_finished)):
                for number, completion in enumerate(completions):
                    if (place, number) not in nodes:  # the sampler did not tell
                        on_finished(place, number, completion)
            ordered = [(prompts[place][0], node) for (place, _), node in sorted(nodes.items(), key=itemgetter(0))]
            grading.finish([node for _, node in ordered])
        for tree, node in ordered:
            (tree.children if node.parent is None else node.parent.children).append(node)
        return ordered

    def _node(self, prompt: _OpenPrompt, completion: Completion) -> Node:
        tree, parent, text = prompt
        reply = self.chat.reply_text(completion.ids)
        extraction = extract_program(reply, tree.problem.entry_point)
        return Node(tree.problem, text, completion, reply, extraction, grade=None, parent=parent)


def _request(parent: Node | None, prompt: Prompt, count: int) -> SampleRequest:
    """The request for a prompt's completions; says what of it the sampler has met as `parent`."""
    is_extension = parent is not None and prompt.extends_previous
    return SampleRequest(prompt.ids, count, extends=len(prompt.ids) - len(prompt.tail) if is_extension else 0)
