import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from smalt.policy import drawing
from smalt.policy.drawing import cut_to_nucleus, draw
from smalt.policy.sampling import SamplingSettings

# The chi-square statistic of 9 degrees of freedom passes this once in ten thousand.
RARE = 33.7


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def some_logits(rows, words, scale=1.0, seed=0):
    return torch.randn(rows, words, generator=generator(seed)) * scale


def definition(logits, settings):
    """The distribution to draw from, the slow way: one row, float64."""
    probabilities = (logits.double() / settings.temperature).softmax(-1)
    mass, kept = 0.0, torch.zeros_like(probabilities)
    for word in probabilities.argsort(descending=True).tolist():
        if mass >= settings.top_p:
            break
        mass += probabilities[word].item()
        kept[word] = probabilities[word]
    return kept / kept.sum()


SETTINGS = [
    SamplingSettings(),
    SamplingSettings(temperature=0.6),
    SamplingSettings(temperature=1.7, top_p=0.9),
    SamplingSettings(temperature=0.5, top_p=0.2),
]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("words", [12, 1500])  # among all words the nucleus is wider than what is looked at first
def test_words_come_as_often_as_the_definition_says(settings, words):
    logits = some_logits(1, words)
    probabilities = definition(logits[0], settings)
    tokens, _ = draw(logits.expand(5000, -1), settings, generator(1))
    counts = torch.bincount(tokens, minlength=words).double()
    assert counts[probabilities == 0].sum() == 0
    order = probabilities.argsort(descending=True)[: int((probabilities > 0).sum())]
    bins = torch.tensor_split(order, 10 if len(order) >= 10 else len(order))
    expected = torch.tensor([5000 * probabilities[part].sum() for part in bins])
    found = torch.tensor([counts[part].sum() for part in bins])
    assert ((found - expected) ** 2 / expected).sum() < RARE


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("words", [12, 1500])
def test_log_probabilities_are_the_definitions(settings, words):
    logits = some_logits(6, words, scale=2.0)
    tokens, logprobs = draw(logits, settings, generator())
    for row, token, logprob in zip(logits, tokens.tolist(), logprobs.tolist(), strict=True):
        assert logprob == pytest.approx(definition(row, settings)[token].log().item(), abs=1e-4)


def test_at_temperature_zero_the_likeliest_comes_with_its_probability_in_the_plain_softmax():
    logits = some_logits(5, 40)
    tokens, logprobs = draw(logits, SamplingSettings(temperature=0), generator())
    assert torch.equal(tokens, logits.argmax(-1))
    assert torch.allclose(logprobs, logits.log_softmax(-1).amax(-1))


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_word_that_is_ruled_out_never_comes(settings):
    logits = some_logits(2000, 30)
    logits[:, [0, 7, 29]] = -torch.inf
    tokens, logprobs = draw(logits, settings, generator())
    assert not {0, 7, 29} & set(tokens.tolist())
    assert logprobs.isfinite().all()


def test_rare_words_of_a_large_vocabulary_come_too():
    """A hundred thousand words share a hundredth: each is ten million times rarer than the first one."""
    words = 100_001
    logits = torch.full((1, words), torch.log(torch.tensor(0.01 / (words - 1))).item())
    logits[0, 0] = torch.log(torch.tensor(0.99)).item()
    rare = draw(logits.expand(500, -1), SamplingSettings(), generator())[0]
    rare = rare[rare > 0]
    assert 1 <= len(rare) <= 16
    assert len(rare.unique()) == len(rare)


def test_half_precision_logits_are_drawn_from_in_full_precision():
    logits = some_logits(4, 300).bfloat16()
    exact, half = (draw(x, SamplingSettings(), generator()) for x in (logits.float(), logits))
    assert torch.equal(exact[0], half[0])
    assert torch.equal(exact[1], half[1])
    assert half[1].dtype == torch.float32


def test_blocks_of_rows_change_nothing(monkeypatch):
    logits = some_logits(7, 50)
    whole = draw(logits, SETTINGS[2], generator())
    monkeypatch.setattr(drawing, "_BLOCK_NUMBERS", 100)
    split = draw(logits, SETTINGS[2], generator())
    assert torch.equal(whole[0], split[0])
    assert torch.equal(whole[1], split[1])


def test_the_nucleus_is_the_smallest_set_that_reaches_the_mass():
    ordered = torch.tensor([[0.5, 0.25, 0.15, 0.1], [0.97, 0.01, 0.01, 0.01]]).log()
    assert (cut_to_nucleus(ordered, 0.7) > -torch.inf).tolist() == [[True, True, False, False], [True] + [False] * 3]
    assert (cut_to_nucleus(ordered, 0.01) > -torch.inf).sum(1).tolist() == [1, 1]


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=8), st.floats(0.01, 0.99))
def test_no_word_of_a_nucleus_can_be_spared(logits, top_p):
    probabilities = torch.tensor([logits], dtype=torch.float64).softmax(-1).sort(descending=True).values
    kept = cut_to_nucleus(probabilities.log(), top_p)[0] > -torch.inf
    mass = probabilities[0][kept]
    assert mass.sum() >= top_p - 1e-9
    assert mass.sum() - mass.min() < top_p + 1e-9
    if not kept.all():
        assert probabilities[0][~kept].max() <= mass.min() + 1e-12
