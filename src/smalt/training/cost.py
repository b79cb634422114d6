"""What a step costs: seconds and tokens of sampling, grading and training, and how many tokens sharing spares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from smalt.policy.sampling import Sampler
from smalt.policy.trie import distinct_tokens
from smalt.policy.work import CountingSampler
from smalt.rollouts.tree import Tree


def sampling_tokens(trees: Sequence[Tree]) -> dict[str, float]:
    """Tokens of the samples of a step: prompt + completion of each node, and the distinct ones among them.

    A sampler that shares every prefix would compute the distinct ones; one that shares none, all.
    """
    rows = [(*node.prompt.ids, *node.completion.ids) for tree in trees for node in [*tree.nodes()][tree.kept :]]
    return {
        "sampling_tokens_total": float(sum(map(len, rows))),
        "sampling_tokens_distinct": float(distinct_tokens(rows)),
    }


def sampling_work(sampler: Sampler) -> dict[str, float]:
    """What the sampler has done since this was last asked; nothing if it does not count."""
    if not isinstance(sampler, CountingSampler):
        return {}
    work = sampler.work.take()
    return {
        "sampling_tokens_prefilled": float(work.prefilled_tokens),
        "sampling_tokens_remembered": float(work.remembered_tokens),
        "sampling_histories_cut": float(work.cut_histories),
        "sampling_rows_put_back": float(work.rows_put_back),
    }


def total_work(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The sum of several `sampling_work`, count by count."""
    return {count: sum(part.get(count, 0.0) for part in parts) for count in dict.fromkeys(chain(*parts))}


def time_shares(seconds: Mapping[str, float]) -> dict[str, float]:
    """`seconds_X` and `share_X` for each stage X; the shares are of the stages' sum."""
    total = sum(seconds.values()) or 1.0
    shares = {f"share_{stage}": value / total for stage, value in seconds.items()}
    return {f"seconds_{stage}": value for stage, value in seconds.items()} | shares
