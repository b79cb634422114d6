import pytest
import torch

from smalt.policy.local_sampler import LocalSampler
from smalt.policy.packed_linears import packed_linears
from smalt.policy.sampling import SampleRequest, SamplingSettings
from tests.policy.models import tiny_policy

IDS = torch.randint(5, 90, (3, 7), generator=torch.Generator().manual_seed(0))

needs_bfloat16 = pytest.mark.skipif(
    not torch.ops.mkldnn._is_mkldnn_bf16_supported(), reason="this processor has no products in bfloat16"
)


@pytest.fixture(params=["llama", "qwen2"])  # qwen2 has biases
def model(request):
    return tiny_policy(request.param).model.bfloat16()


def logits_of(model):
    with torch.inference_mode():
        return model(input_ids=IDS, use_cache=False).logits


def packed_layers(model):
    return [name for name, module in model.named_modules() if "forward" in module.__dict__]


@needs_bfloat16
def test_results_are_those_of_the_plain_layers(model):
    expected = logits_of(model)
    with packed_linears(model, 100):
        assert len(packed_layers(model)) == 2 * 7 + 1
        found = logits_of(model)
    torch.testing.assert_close(found, expected, rtol=2e-2, atol=2e-2)


@needs_bfloat16
def test_layers_are_plain_again_and_see_new_weights(model):
    with packed_linears(model, 100), pytest.raises(ZeroDivisionError):
        logits_of(model)
        raise ZeroDivisionError
    with torch.no_grad():
        model.lm_head.weight.mul_(2)
    doubled = logits_of(model)
    with packed_linears(model, 100):
        torch.testing.assert_close(logits_of(model), doubled, rtol=2e-2, atol=2e-2)
    assert not packed_layers(model)


@pytest.mark.parametrize("products, dtype", [(10, torch.bfloat16), (100, torch.float32)])
def test_nothing_is_packed_where_it_does_not_pay(model, products, dtype):
    model.to(dtype)
    with packed_linears(model, products):
        assert not packed_layers(model)


def test_a_model_too_large_to_copy_stays_as_it_is(model, monkeypatch):
    monkeypatch.setattr("smalt.policy.packed_linears._MOST_BYTES", 1000)
    with packed_linears(model, 100):
        assert not packed_layers(model)


@needs_bfloat16
def test_the_sampler_decodes_with_packed_layers():
    policy, seen = tiny_policy("llama"), set()
    policy.model.bfloat16().register_forward_pre_hook(lambda module, inputs: seen.add(len(packed_layers(module))))
    LocalSampler(policy).sample([SampleRequest((5, 9, 31, 77), 4)], SamplingSettings(max_new_tokens=40), 3)
    assert seen == {15}
