"""Attention to a prefix and to rows' own tokens against the plain one over both, values and gradients."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention

from smalt.policy.prefix_attention import attend_to_prefix_and_rest, has_operator

pytestmark = pytest.mark.skipif(not has_operator(), reason="this torch has no such operator")

few = st.integers(1, 5)


def states_of(rows, queries, shared_heads, groups, prefix, seed, dtype=torch.float32):
    """Queries, and prefix and rest, each keys and values, of rows that own all their tokens behind the prefix."""
    generator = torch.Generator().manual_seed(seed)
    shapes = [(rows, queries, shared_heads * groups, 8)]
    shapes += [(prefix, shared_heads, 8)] * 2 + [(rows, queries, shared_heads, 8)] * 2
    return [torch.randn(shape, generator=generator).to(dtype).requires_grad_() for shape in shapes]


def causal(queries, dtype):
    hidden = torch.ones(queries, queries, dtype=torch.bool).triu(1)
    return torch.zeros(1, 1, queries, queries, dtype=dtype).masked_fill(hidden, torch.finfo(dtype).min)


def merged(query, prefix_keys, prefix_values, keys, values, scaling):
    groups = query.shape[2] // keys.shape[2]
    mask = causal(query.shape[1], query.dtype).repeat(1, 1, groups, 1)
    return attend_to_prefix_and_rest(query, (prefix_keys, prefix_values), (keys, values), mask, scaling)


def plain(query, prefix_keys, prefix_values, keys, values, scaling):
    rows, queries, heads, _ = query.shape
    groups, mask = heads // keys.shape[2], causal(queries, query.dtype)
    mask = torch.cat([mask.new_zeros(1, 1, queries, len(prefix_keys)), mask], -1)
    whole = [
        torch.cat([prefix.expand(rows, *prefix.shape), own], 1).repeat_interleave(groups, 2).transpose(1, 2)
        for prefix, own in ((prefix_keys, keys), (prefix_values, values))
    ]
    return scaled_dot_product_attention(query.transpose(1, 2), *whole, attn_mask=mask, scale=scaling).transpose(1, 2)


def with_gradients(attend, states, scaling):
    output = attend(*states, scaling)
    weights = torch.randn(output.shape, generator=torch.Generator().manual_seed(7)).to(output.dtype)
    return output, torch.autograd.grad((output * weights).sum(), states)


def all_numbers(attend, states):
    output, gradients = with_gradients(attend, states, None)
    return torch.cat([part.flatten() for part in (output, *gradients)]).float()


@settings(deadline=None)
@given(few, few, st.integers(1, 3), st.integers(1, 3), st.integers(1, 70), st.sampled_from([None, 0.1, 2.0]), few)
def test_it_is_the_attention_over_both(rows, queries, shared_heads, groups, prefix, scaling, seed):
    states = states_of(rows, queries, shared_heads, groups, prefix, seed)
    found, found_gradients = with_gradients(merged, states, scaling)
    expected, expected_gradients = with_gradients(plain, states, scaling)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found_gradients, expected_gradients, rtol=1e-4, atol=1e-5)


def test_half_precision_is_as_near_to_the_truth_as_the_plain_way():
    states = states_of(4, 6, 2, 3, 300, seed=0)
    halves = [state.detach().bfloat16().requires_grad_() for state in states]
    truth = all_numbers(plain, states)

    def distance(attend):
        return (all_numbers(attend, halves) - truth).norm() / truth.norm()

    assert distance(merged) < 1.5 * distance(plain) + 1e-3
