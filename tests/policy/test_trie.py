"""The prefix trie: each distinct token once, every row found again, and cut within a budget at the least cost."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from smalt.policy.trie import PrefixTrie, cut, distinct_tokens

# Few different tokens, so that rows share prefixes, contain each other and repeat.
rows_of_few_tokens = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=7), min_size=1, max_size=8)


def prefixes(rows):
    return {tuple(row[: end + 1]) for row in rows for end in range(len(row))}


@given(rows_of_few_tokens)
def test_each_distinct_token_is_there_once_and_each_row_is_found_along_its_path(rows):
    trie = PrefixTrie.of(rows)
    assert len(trie.ids) == len(trie.depths) == len(prefixes(rows)) == distinct_tokens(rows)
    for row, path in zip(rows, trie.paths, strict=True):
        assert trie.ids[path].tolist() == row
        assert trie.depths[path].tolist() == list(range(len(row)))
        assert (np.diff(path) > 0).all()  # ancestors first


@given(rows_of_few_tokens)
def test_rows_with_a_common_prefix_share_its_places(rows):
    trie = PrefixTrie.of(rows)
    for left, right in itertools.combinations(range(len(rows)), 2):
        common = len(list(itertools.takewhile(lambda ab: ab[0] == ab[1], zip(rows[left], rows[right], strict=False))))
        shared = min(len(rows[left]), len(rows[right]))
        same = trie.paths[left][:shared] == trie.paths[right][:shared]
        assert same.tolist() == [place < common for place in range(shared)]


def test_what_a_row_does_not_own_is_told():
    trie = PrefixTrie.of([[1, 2, 3], [1, 2], [1, 2, 3], [4]])
    assert trie.order == (1, 0, 2, 3)
    assert trie.shared == (2, 0, 3, 0)
    assert trie.ids.tolist() == [1, 2, 3, 4]


@given(rows_of_few_tokens, st.integers(1, 20))
def test_parts_hold_every_row_once_within_the_budget(rows, budget):
    parts = cut(rows, budget)
    assert sorted(itertools.chain.from_iterable(parts)) == list(range(len(rows)))
    for part in parts:
        assert len(part) == 1 or distinct_tokens([rows[row] for row in part]) <= budget


@given(rows_of_few_tokens, st.integers(4, 20))
def test_no_other_split_of_the_sorted_rows_computes_fewer_tokens(rows, budget):
    ordered = sorted(rows)

    def cost(cuts):
        parts = [ordered[a:b] for a, b in itertools.pairwise((0, *cuts, len(ordered)))]
        if any(len(part) > 1 and distinct_tokens(part) > budget for part in parts):
            return None
        return sum(map(distinct_tokens, parts))

    splits = (c for n in range(len(rows)) for c in itertools.combinations(range(1, len(rows)), n))
    least = min(filter(None, map(cost, splits)))
    assert sum(distinct_tokens([rows[row] for row in part]) for part in cut(rows, budget)) == least


def test_a_cut_falls_between_prompts_rather_than_between_completions():
    rows = [[1, 1, 1, 1, 5], [1, 1, 1, 1, 6], [2, 2, 2, 2, 5], [2, 2, 2, 2, 6]]
    assert cut(rows, 11) == [[0, 1], [2, 3]]
    assert cut(rows, 12) == [[0, 1, 2, 3]]


def test_a_row_longer_than_the_budget_goes_alone():
    assert cut([[1, 2, 3, 4], [1, 2, 3, 5], [9]], 2) == [[0], [1], [2]]
