"""Training of a verifier on the programs of a run: correct ones should score above incorrect ones.

Bradley-Terry: for pairs of a correct and an incorrect program of the same problem, -log sigmoid(score of the correct
one - score of the incorrect one), as in muCode (arXiv 2502.20380; 32 pairs a problem, 64 pairs an update, two passes,
learning rate 1e-6 in its code). Ours: it goes on learning from each step's programs, instead of beginning anew with
all programs so far.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from smalt.dialogue.chat import ChatFormat
from smalt.policy.adapters import merge_adapters
from smalt.policy.loading import Policy
from smalt.rollouts.tree import Node, Tree
from smalt.training.settings import VerifierSettings
from smalt.training.turn_value import attach_value_head
from smalt.training.verifier import Verifier, save_verifier

_GRADIENT_CLIP = 1.0
Pair = tuple[Node, Node]
"""A correct and an incorrect program of one problem."""


class VerifierTrainer:
    """A verifier that learns while a run goes on; it is saved beside each checkpoint."""

    def __init__(self, policy: Policy, chat: ChatFormat, settings: VerifierSettings, folder: Path) -> None:
        """`policy` becomes the verifier: give a copy, with adapters if only they shall learn.

        States are saved in `folder`.
        """
        attach_value_head(policy.model)
        self.verifier = Verifier(policy, chat)
        self.settings = settings
        self.folder = folder
        self.fits = 0
        self.optimizer = torch.optim.AdamW(policy.trained_parameters, lr=settings.learning_rate, weight_decay=0.0)

    def scores(self, nodes: Sequence[Node]) -> list[float]:
        """A score for each node's program; see `Verifier.scores`."""
        return self.verifier.scores(nodes)

    def fit(self, trees: Sequence[Tree]) -> dict[str, float]:
        """Learn from the trees' programs; loss and share of pairs in the right order, as they were met first."""
        rng = random.Random(f"verifier/{self.fits}")
        self.fits += 1
        pairs = [drawn for tree in trees if (drawn := draw_pairs(tree, self.settings.pairs, rng))]
        totals = _Totals()
        for number in range(self.settings.passes):
            rng.shuffle(pairs)
            for start in range(0, len(pairs), self.settings.problems_per_update):
                found = self._update(pairs[start : start + self.settings.problems_per_update])
                if number == 0:
                    totals.add(found)
        return totals.means()

    def export(self, folder: Path) -> None:
        """Write the verifier as a folder that `load_verifier` reads; it ends the training of adapters."""
        merge_adapters(self.verifier.policy)
        save_verifier(folder, self.verifier.policy)

    def save(self, step: int) -> None:
        """Write the state after `step` steps, atomically."""
        self.folder.mkdir(parents=True, exist_ok=True)
        temporary = self._path(step).with_suffix(".tmp")
        torch.save({"model": self._trained(), "optimizer": self.optimizer.state_dict(), "fits": self.fits}, temporary)
        temporary.replace(self._path(step))

    def load(self, step: int) -> None:
        """Go back to the state after `step` steps."""
        state = torch.load(self._path(step), map_location=self.verifier.policy.device, weights_only=True)
        for name, weight in self._trained().items():
            weight.copy_(state["model"][name])
        self.optimizer.load_state_dict(state["optimizer"])
        self.fits = state["fits"]

    def forget_before(self, keep: int) -> None:
        """Delete all but the newest `keep` states."""
        for path in sorted(self.folder.glob("step-*.pt"))[:-keep]:
            path.unlink()

    def _trained(self) -> dict[str, torch.Tensor]:
        """The weights that learn, by name."""
        named = self.verifier.policy.model.named_parameters()
        return {name: weight.detach() for name, weight in named if weight.requires_grad}

    def _path(self, step: int) -> Path:
        return self.folder / f"step-{step:06d}.pt"

    def _update(self, problems: Sequence[Sequence[Pair]]) -> _Totals:
        """One optimiser step on the pairs of some problems, a problem at a time in memory."""
        self.verifier.policy.model.train()
        count = sum(map(len, problems))
        totals = _Totals()
        for pairs in problems:
            margins = self._margins(pairs)
            losses = -torch.nn.functional.logsigmoid(margins)
            torch.autograd.backward(losses.sum() / count)
            totals.add(_Totals(len(pairs), losses.sum().item(), int((margins > 0).sum().item())))
        torch.nn.utils.clip_grad_norm_(self.verifier.policy.trained_parameters, _GRADIENT_CLIP)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.verifier.policy.model.eval()
        return totals

    def _margins(self, pairs: Sequence[Pair]) -> torch.Tensor:
        """Score of the correct minus that of the incorrect program, `[pairs]`; equal programs are scored once."""
        programs = {node.program: node for pair in pairs for node in pair}
        places = {program: place for place, program in enumerate(programs)}
        scores = self.verifier.score_rows([self.verifier.ids_of(node) for node in programs.values()])
        correct = [places[node.program] for node, _ in pairs]
        incorrect = [places[node.program] for _, node in pairs]
        return scores[correct] - scores[incorrect]


def draw_pairs(tree: Tree, count: int, rng: random.Random) -> list[Pair]:
    """`count` pairs of a correct and an incorrect program, drawn with replacement; none where one kind is missing.

    Replies without a program, and programs on which the grader failed, are neither.
    """
    judged = [node for node in tree.nodes() if node.program is not None and not node.is_infra_error]
    correct = [node for node in judged if node.passes_all]
    incorrect = [node for node in judged if not node.passes_all]
    if not correct or not incorrect:
        return []
    return [(rng.choice(correct), rng.choice(incorrect)) for _ in range(count)]


@dataclass
class _Totals:
    """Sums over pairs."""

    pairs: int = 0
    loss: float = 0.0
    in_order: int = 0

    def add(self, other: _Totals) -> None:
        self.pairs += other.pairs
        self.loss += other.loss
        self.in_order += other.in_order

    def means(self) -> dict[str, float]:
        """For the log; nothing without a pair."""
        if not self.pairs:
            return {}
        return {"verifier_loss": self.loss / self.pairs, "verifier_accuracy": self.in_order / self.pairs}
