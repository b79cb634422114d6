from smalt.policy.caching import cache_argument


class NewerModel:
    def forward(self, input_ids, cache=None, use_cache=None): ...


class OlderModel:
    def forward(self, input_ids, past_key_values=None, use_cache=None): ...


class WrappedModel:
    def forward(self, *args, **kwargs): ...


def test_the_cache_goes_by_the_name_that_the_release_knows():
    assert cache_argument(NewerModel(), "kept") == {"cache": "kept", "use_cache": True}
    assert cache_argument(OlderModel(), "kept") == {"past_key_values": "kept", "use_cache": True}
    assert cache_argument(WrappedModel(), "kept") == {"past_key_values": "kept", "use_cache": True}


def test_the_installed_release_fills_the_cache(policy):
    import torch
    from transformers import DynamicCache

    cache = DynamicCache(config=policy.model.config)
    with torch.no_grad():
        policy.model(input_ids=torch.tensor([[1, 2, 3]]), **cache_argument(policy.model, cache))
    assert cache.get_seq_length() == 3
