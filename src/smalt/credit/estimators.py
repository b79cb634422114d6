"""Advantages in a group by other formulas than GRPO's, and what chooses among them.

All functions take the rewards of samples that are present, at least two that differ, and keep their order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from smalt.credit.advantage_settings import AdvantageSettings, OverlongSettings
from smalt.credit.advantages import group_advantages, has_signal
from smalt.credit.selection import max_variance_subset

_EPS = 1e-6


@dataclass(frozen=True)
class Estimator:
    """Rewards of one group in, advantages out, by the formula that the settings name."""

    settings: AdvantageSettings = field(default_factory=AdvantageSettings)
    oapl_beta: float = 1.0
    """Temperature of OAPL's soft value, in units of reward; the loss has the same."""

    def __call__(
        self,
        rewards: Sequence[float | None],
        parts: Sequence[Sequence[float]] = (),
        forgotten: Sequence[float] = (),
    ) -> list[float | None]:
        """Advantages in the order of `rewards`; None where a member does not train.

        A member does not train when its reward is None (the grader failed), when down-sampling left it out, or when
        nobody in the group differs. `parts` are each member's several rewards (GDPO), `forgotten` the rewards of
        earlier completions of the prompt that are no longer kept (NGU).
        """
        advantages: list[float | None] = [None] * len(rewards)
        present = [(place, reward) for place, reward in enumerate(rewards) if reward is not None]
        chosen = max_variance_subset([r for _, r in present], self.settings.keep_members or len(present))
        kept = [present[index] for index in chosen]
        values = [reward for _, reward in kept]
        several = [parts[place] for place, _ in kept] if parts else []
        found = self._advantages(values, several, forgotten)
        for (place, _), advantage in zip(kept, found, strict=False):
            advantages[place] = advantage
        return advantages

    @property
    def whitens_batch(self) -> bool:
        """Whether advantages are normalised once more over the whole batch."""
        return self.settings.estimator in ("reinforce_plus_plus", "gdpo")

    def _advantages(
        self, rewards: Sequence[float], parts: Sequence[Sequence[float]], forgotten: Sequence[float]
    ) -> list[float]:
        """Advantages of the kept members; none when they do not differ."""
        name = self.settings.estimator
        if name == "gdpo" and parts:
            by_part = list(zip(*parts, strict=True))
            return decoupled_advantages(by_part) if any(map(has_signal, by_part)) else []
        if not has_signal(rewards):
            return []
        if name == "oapl":
            return soft_value_advantages(rewards, self.oapl_beta)
        if name == "ngu":
            return persistent_advantages(rewards, forgotten)
        plain = {"dr_grpo": centred_advantages, "reinforce_plus_plus": centred_advantages, "rloo": leave_one_out}
        return plain[name](rewards) if name in plain else group_advantages(rewards)


def centred_advantages(rewards: Sequence[float]) -> list[float]:
    """A_i = r_i - mean, not divided by the deviation: Dr.GRPO (arXiv 2503.20783).

    REINFORCE++ with a group baseline (arXiv 2501.03262) begins so too, and whitens over the batch afterwards.
    """
    mean = math.fsum(rewards) / len(rewards)
    return [reward - mean for reward in rewards]


def leave_one_out(rewards: Sequence[float]) -> list[float]:
    """A_i = r_i - mean of the OTHER rewards: RLOO (arXiv 2402.14740)."""
    total, others = math.fsum(rewards), len(rewards) - 1
    return [reward - (total - reward) / others for reward in rewards]


def decoupled_advantages(parts: Sequence[Sequence[float]]) -> list[float]:
    """Sum over rewards of each one's GRPO advantage: GDPO before its batch step (arXiv 2601.05242).

    `parts` holds one sequence per kind of reward, each over the members of the group.
    """
    normalised = [group_advantages(part) for part in parts]
    return [math.fsum(member) for member in zip(*normalised, strict=True)]


def soft_value_advantages(rewards: Sequence[float], beta: float) -> list[float]:
    """A_i = r_i - V with V = beta log mean exp(r / beta): OAPL (METHODS 4)."""
    highest = max(rewards)
    mean = math.fsum(math.exp((reward - highest) / beta) for reward in rewards) / len(rewards)
    value = highest + beta * math.log(mean)
    return [reward - value for reward in rewards]


def persistent_advantages(rewards: Sequence[float], forgotten: Sequence[float] = ()) -> list[float]:
    """NGU's advantages for a prompt that was tried several times (METHODS 4).

    The baseline is the mean over everything ever sampled for the prompt, `forgotten` included. Members above it keep
    r - baseline; those below are rescaled so that the advantages of `rewards` sum to 0 though some are forgotten.
    """
    everything = (*rewards, *forgotten)
    baseline = math.fsum(everything) / len(everything)
    raw = [reward - baseline for reward in rewards]
    gain = math.fsum(advantage for advantage in raw if advantage > 0)
    loss = -math.fsum(advantage for advantage in raw if advantage < 0)
    scale = gain / loss if loss > 0 else 0.0
    return [advantage if advantage > 0 else advantage * scale for advantage in raw]


def whitened(advantages: Sequence[float]) -> list[float]:
    """(A - mean) / (std + eps) over a batch: REINFORCE++ (arXiv 2501.03262) and GDPO (arXiv 2601.05242).

    One value a completion, however long it is. A batch of one, or of equals, gives zeros.
    """
    if len(advantages) < 2:
        return [0.0] * len(advantages)
    mean = math.fsum(advantages) / len(advantages)
    std = math.sqrt(math.fsum((value - mean) ** 2 for value in advantages) / (len(advantages) - 1))
    return [(value - mean) / (std + _EPS) for value in advantages]


def overlong_penalty(tokens: int, settings: OverlongSettings) -> float:
    """DAPO's soft overlong penalty of a completion of `tokens` tokens, in [-1, 0] (arXiv 2503.14476, eq. 13)."""
    free = settings.max_tokens - settings.cache_tokens
    return -min(1.0, max(0, tokens - free) / settings.cache_tokens)
