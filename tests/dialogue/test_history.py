import pytest

from smalt.dialogue.history import history_text


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("plain\n", "plain\n"),
        ("<think>hm</think>\n\nanswer\n", "answer"),
        ("hm</think>answer", "answer"),
        ("<think>a</think>b<think>c</think>d", "d"),
        ("<think>never closed", ""),
        ("<think>a</think>b<think>open", ""),
        ("", ""),
    ],
)
def test_thinking_is_removed(reply, expected):
    assert history_text(reply) == expected


def test_the_head_is_kept():
    assert history_text("<think>x</think>" + "a" * 6000 + "b") == "a" * 6000
    assert history_text("abcdef", limit=3) == "abc"


def test_thinking_that_the_template_opened():
    assert history_text("<think>\nstill thinking") == ""
    assert history_text("<think>\nthought</think>answer") == "answer"


def test_the_limit_counts_the_answer_only():
    assert history_text("<think>" + "t" * 100 + "</think>answer", limit=6) == "answer"
