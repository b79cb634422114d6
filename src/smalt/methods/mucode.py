"""muCode: expert iteration, in which the best program of a problem is what to write from any state (arXiv 2502.20380).

Dialogues of a problem are rolled out; a verifier learns to score correct programs above incorrect ones; every state
that was visited, from the bare problem to the feedback on a last failure, is labelled with the best program that was
found for the problem, and the policy imitates it. Code generation is one-step recoverable: the best program can be
written next whatever came before, so that no credit has to flow between turns.

Marks: "code" is the authors' (github portal-cornell/muCode). Ours: a step of the loop is an iteration on its batch of
problems and goes on from the policy as it is, where their code fine-tunes the base model anew on all iterations' data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field

from smalt.methods.method import Method, MethodSettings
from smalt.rollouts.best_of import no_scores
from smalt.rollouts.growth import Shape, stop_at_public_pass
from smalt.rollouts.tree import Node, Tree
from smalt.training.groups import TrainingGroup
from smalt.training.settings import VerifierSettings


class MuCodeSettings(MethodSettings):
    """muCode's own choices."""

    group_size: int = Field(15, gt=0, description="Dialogues a problem (code: 15).")
    turns: int = Field(3, gt=1, description="Most turns of a dialogue; it ends when the public tests pass (code: 3).")
    best_of: int = Field(
        1,
        gt=0,
        description="Programs drawn at each turn of a dialogue, of which the best by public tests, then verifier goes "
        "on: multi-turn best-of-N in training (code: 1; at test time 5).",
    )
    verifier: VerifierSettings = Field(default_factory=VerifierSettings, description="Training of the verifier.")


class MuCode(Method[MuCodeSettings]):
    """The method."""

    settings_class = MuCodeSettings
    has_own_advantages = True
    imitates = True
    learns_verifier = True
    # A problem's opening state is visited by every dialogue, and is one state of many: turns count alike (ours).
    defaults: ClassVar[Mapping[str, Any]] = {
        "training.loss.objective": "likelihood",
        "training.loss.aggregation": "turns",
        "training.loss.kl_coefficient": 0.0,
    }

    @property
    def shape(self) -> Shape:
        """Chains that end at the first public pass; each turn the best of some draws."""
        settings = self.settings
        return Shape.chains(settings.group_size, settings.turns, stop_at_public_pass, settings.best_of)

    def learn_from(self, trees: Sequence[Tree]) -> dict[str, float]:
        """Train the verifier on the step's programs."""
        return self.tools.verifier.fit(trees) if self.tools.verifier else {}

    def credit(self, tree: Tree) -> list[TrainingGroup]:
        """Every visited state of the problem with its best program; none when no program was written."""
        for node in tree.nodes():
            if not node.is_infra_error:
                node.reward = node.credit = float(node.passes_all)
        best = self._best([node for node in tree.nodes() if node.program is not None and node.credit is not None])
        if best is None:
            return []
        states = [siblings[0] for siblings in tree.groups()]
        return [TrainingGroup(state.prompt.ids, (best.completion,), (1.0,), state.turn) for state in states]

    def _best(self, nodes: Sequence[Node]) -> Node | None:
        """The local search expert: correct ones first, then by the verifier's score, then who was drawn first (code).

        A problem that nobody solved is labelled too, with what the verifier takes for the best.
        """
        scores = self.tools.verifier.scores(nodes) if self.tools.verifier else no_scores(nodes)
        places = range(len(nodes))
        best = max(places, key=lambda place: (nodes[place].passes_all, scores[place], -place), default=None)
        return None if best is None else nodes[best]
