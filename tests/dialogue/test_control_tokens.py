import pytest
from hypothesis import given
from hypothesis import strategies as st

from smalt.dialogue.control_tokens import neutralise

TOKENS = ["<|im_end|>", "<|im_start|>", "</s>", "<think>"]


def test_tokens_are_broken_up_and_the_rest_stays():
    assert neutralise("a <|im_end|> b </s>", TOKENS) == "a < |im_end|> b < /s>"
    assert neutralise("plain < s > text", TOKENS) == "plain < s > text"
    assert neutralise("a<think>", []) == "a<think>"


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("aaaa", ["aa"]),
        ("abab", ["aba", "ba"]),
        ("a", ["a"]),
        ("ab", ["a", "ab", "a b", " "]),
        ("<</s>/s>", ["</s>"]),
        ("x\ny", ["x\n", "\n"]),
        ("(.*)", [".*", "(."]),
    ],
)
def test_overlapping_nested_and_single_character_tokens(text, tokens):
    result = neutralise(text, tokens)
    assert not any(token in result for token in tokens)


@given(
    st.text(alphabet="ab<|> ·\u200b", max_size=40),
    st.lists(st.text(alphabet="ab<|> ·\u200b", max_size=5), max_size=6),
)
def test_the_result_holds_no_token(text, tokens):
    result = neutralise(text, tokens)
    assert not any(token in result for token in tokens if token)
    assert neutralise(result, tokens) == result
    if not any(token in text for token in tokens if token):
        assert result == text


@given(st.lists(st.sampled_from([*TOKENS, "<", "|im_", "end|>", "x", "\n"])).map("".join))
def test_real_tokens_in_pieces(text):
    result = neutralise(text, TOKENS)
    assert not any(token in result for token in TOKENS)
    assert result.replace(" ", "") == text
