import torch
from hypothesis import given
from hypothesis import strategies as st

from smalt.policy.grouped_heads import grouped, ungrouped

few = st.integers(1, 4)


@given(rows=few, queries=few, shared_heads=few, groups=few)
def test_a_group_of_heads_stands_beside_its_keys_and_comes_back(rows, queries, shared_heads, groups):
    states = torch.randn(rows, queries, shared_heads * groups, 2)
    found = grouped(states, shared_heads)
    assert found.shape == (rows, shared_heads, groups * queries, 2)
    assert torch.equal(found[0, 0, :queries], states[0, :, 0])  # heads in the order of repeated keys
    assert torch.equal(found[-1, -1, -queries:], states[-1, :, -1])
    assert torch.equal(ungrouped(found, queries), states)
