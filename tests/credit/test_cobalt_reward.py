"""Cobalt's reward: worked examples of every part, and properties of the whole."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from smalt.credit.cobalt_reward import (
    CobaltRewardSettings,
    Improvement,
    ScoredReply,
    cobalt_reward,
    correctness_reward,
    format_reward,
    improvement_reward,
    is_malformed,
    reflection_bonus,
    validation_score,
)
from smalt.credit.cobalt_settings import REFLECTION_WORDS

GOOD = ScoredReply(pass_rate=1.0, is_thinking_model=True)
FAILED = ScoredReply(pass_rate=0.0, is_thinking_model=True)
LOOP = "the same forty characters once again ... " * 8


@pytest.mark.parametrize(
    ("pass_rate", "expected"),
    [(0.0, -0.1), (0.001, 0.0), (0.499, 0.0), (0.5, 0.2), (0.999, 0.2), (1.0, 1.0)],
)
def test_correctness(pass_rate, expected):
    assert correctness_reward(pass_rate) == expected


@pytest.mark.parametrize(
    ("pass_rate", "previous_best", "value", "replaces"),
    [
        (0.0, 0.0, 0.0, False),
        (0.7, 0.0, 0.0, False),
        (1.0, 0.5, 0.0, False),
        (1.0, 1.0, 0.0, False),
        (0.75, 0.5, 0.05, False),
        (0.999, 0.5, 0.0998, False),
        (0.5, 0.5, -0.1, True),
        (0.25, 0.5, -0.15, True),
        (0.0, 0.5, -0.2, True),
        (0.9, 1.0, -0.11, True),
    ],
)
def test_improvement(pass_rate, previous_best, value, replaces):
    improvement = improvement_reward(pass_rate, previous_best)
    assert improvement == Improvement(pytest.approx(value), replaces)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, False),
        ({"text": LOOP}, True),
        ({"thinking_closed_once": False}, True),
        ({"thinking_closed_once": False, "is_thinking_model": False}, False),
        ({"has_exactly_one_block": False}, True),
        ({"has_exactly_one_block": False, "is_thinking_model": False}, True),
        ({"has_backtick_inside": True}, True),
    ],
)
def test_malformed(change, expected):
    reply = replace(GOOD, **change)
    assert is_malformed(reply) is expected
    assert (format_reward(reply, 1.0) == -0.9) is expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, 0.0),
        ({"thinking_tokens": 4096, "answer_tokens": 2048, "trailing_tokens": 512}, 0.0),
        ({"thinking_tokens": 4097}, -0.01),
        ({"answer_tokens": 2049}, -0.01),
        ({"trailing_tokens": 513}, -0.01),
        ({"thinking_tokens": 9999, "answer_tokens": 9999, "trailing_tokens": 9999}, -0.01),
        ({"thinking_tokens": 4097, "is_thinking_model": False}, 0.0),
        ({"thinking": "wait, but"}, 0.0),
    ],
)
@pytest.mark.parametrize("reward_so_far", [0.0, 1.0])
def test_format_when_not_negative(change, expected, reward_so_far):
    assert format_reward(replace(GOOD, **change), reward_so_far) == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, 0.0),
        ({"thinking_tokens": 1024}, math.tanh(1) * 0.075),
        ({"thinking_tokens": 4096}, math.tanh(4) * 0.075),
        ({"thinking_tokens": 4097, "thinking": "wait"}, -0.1),
        ({"thinking": "Wait, that is wrong."}, 0.01),
        ({"thinking_tokens": 1024, "thinking": "but"}, math.tanh(1) * 0.075 + 0.005),
        ({"answer_tokens": 2048, "trailing_tokens": 512}, 0.0),
        ({"answer_tokens": 2049}, -0.1),
        ({"trailing_tokens": 513}, -0.1),
        ({"thinking_tokens": 4097, "answer_tokens": 2049, "trailing_tokens": 513}, -0.3),
        ({"is_thinking_model": False, "thinking_tokens": 9999, "thinking": "but"}, 0.0),
        ({"is_thinking_model": False, "answer_tokens": 2049}, -0.1),
    ],
)
def test_format_when_negative(change, expected):
    assert format_reward(replace(FAILED, **change), -0.1) == pytest.approx(expected)


@pytest.mark.parametrize("word", REFLECTION_WORDS)
def test_each_reflection_word(word):
    assert reflection_bonus(f"Hm. {word.upper()}, so be it") == 0.005
    assert reflection_bonus(f"{word} " * 4) == 0.005
    assert reflection_bonus(f"{word} " * 5) == 0.0
    assert reflection_bonus(f"un{word} {word}ly") == 0.0


def test_reflection_words_are_capped():
    assert len(REFLECTION_WORDS) == 9
    assert reflection_bonus(" ".join(REFLECTION_WORDS)) == 0.025
    assert reflection_bonus(" ".join(REFLECTION_WORDS[:4])) == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("reply", "parts"),
    [
        (ScoredReply(None), (-1.0, 0.0, 0.0, -1.0)),
        (ScoredReply(None, previous_best=1.0, text=LOOP), (-1.0, 0.0, 0.0, -1.0)),
        (GOOD, (1.0, 0.0, 0.0, 1.0)),
        (replace(GOOD, thinking_tokens=5000), (1.0, 0.0, -0.01, 0.99)),
        (replace(GOOD, text=LOOP), (1.0, 0.0, -0.9, 0.1)),
        (ScoredReply(0.75, previous_best=0.5), (0.2, 0.05, 0.0, 0.25)),
        (ScoredReply(0.2, previous_best=0.1), (0.0, 0.1 / 9, 0.0, 0.1 / 9)),
        (ScoredReply(0.5, previous_best=0.5), (0.0, -0.1, 0.0, -0.1)),
        (ScoredReply(0.25, previous_best=0.5, answer_tokens=3000), (0.0, -0.15, -0.1, -0.25)),
        # Only 0.0 so far: not a failure, so length costs 0.01 and not 0.1.
        (ScoredReply(0.25, answer_tokens=3000), (0.0, 0.0, -0.01, -0.01)),
        (ScoredReply(0.0, has_exactly_one_block=False), (-0.1, 0.0, -0.9, -1.0)),
        # -0.2 - 0.9 is below the floor.
        (ScoredReply(0.0, previous_best=0.5, has_backtick_inside=True), (0.0, -0.2, -0.9, -1.0)),
    ],
)
def test_whole_reward(reply, parts):
    reward = cobalt_reward(reply)
    got = (reward.correctness, reward.improvement, reward.format, reward.total)
    assert got == pytest.approx(parts)


def test_validation_score():
    assert [validation_score(rate) for rate in (None, 0.0, 0.999, 1.0)] == [0.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize(
    "wrong",
    [{"pass_rate": 1.1}, {"pass_rate": math.nan}, {"previous_best": -0.1}, {"answer_tokens": -1}],
)
def test_impossible_replies_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ScoredReply(**{"pass_rate": 0.5, **wrong})


def test_settings_are_documented_frozen_and_closed():
    assert all(field.description for field in CobaltRewardSettings.model_fields.values())
    with pytest.raises(ValidationError):
        CobaltRewardSettings(improvement_scal=0.2)
    with pytest.raises(ValidationError):
        CobaltRewardSettings().improvement_scale = 0.2


def test_settings_are_used():
    settings = CobaltRewardSettings(some_pass_reward=0.05, most_pass_share=0.9, improvement_scale=0.2)
    parts = cobalt_reward(ScoredReply(0.75, previous_best=0.5), settings)
    assert parts.total == pytest.approx(0.05 + 0.1)


shares = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.integers(0, 20).map(lambda passed: passed / 20))
any_rate = st.one_of(st.none(), shares)
tokens = st.integers(0, 8000)


@st.composite
def replies(draw, pass_rate=any_rate):
    return ScoredReply(
        pass_rate=draw(pass_rate),
        previous_best=draw(shares),
        text=draw(st.sampled_from(["", LOOP])),
        thinking=" ".join(draw(st.lists(st.sampled_from(REFLECTION_WORDS), max_size=20))),
        thinking_tokens=draw(tokens),
        answer_tokens=draw(tokens),
        trailing_tokens=draw(tokens),
        is_thinking_model=draw(st.booleans()),
        thinking_closed_once=draw(st.booleans()),
        has_exactly_one_block=draw(st.booleans()),
        has_backtick_inside=draw(st.booleans()),
    )


@given(replies())
def test_total_is_the_clipped_sum_of_the_parts(reply):
    parts = cobalt_reward(reply)
    assert -1.0 <= parts.total <= 1.0
    unclipped = parts.correctness + parts.improvement + parts.format
    assert parts.total == max(-1.0, min(1.0, unclipped))


@given(replies(), shares.filter(lambda share: share < 1))
def test_solving_beats_anything_less_in_the_same_form(reply, pass_rate):
    solved = cobalt_reward(replace(reply, pass_rate=1.0)).total
    assert solved > cobalt_reward(replace(reply, pass_rate=pass_rate)).total
    assert solved > cobalt_reward(replace(reply, pass_rate=None)).total


@given(replies(shares))
def test_a_broken_form_never_pays(reply):
    good = replace(reply, text="", thinking_closed_once=True, has_exactly_one_block=True)
    broken = replace(good, has_exactly_one_block=False)
    assert cobalt_reward(replace(good, has_backtick_inside=False)).total >= cobalt_reward(broken).total


@given(shares, shares, shares)
def test_more_passing_tests_never_pay_less(low, high, previous_best):
    low, high = min(low, high), max(low, high)
    worse = cobalt_reward(ScoredReply(low, previous_best)).total
    assert cobalt_reward(ScoredReply(high, previous_best)).total >= worse - 1e-12


@given(replies(), st.text(max_size=30), tokens)
def test_thinking_does_not_matter_to_a_model_that_does_not_think(reply, thinking, count):
    plain = replace(reply, is_thinking_model=False)
    other = replace(plain, thinking=thinking, thinking_tokens=count, thinking_closed_once=False)
    assert cobalt_reward(plain) == cobalt_reward(other)
