import pytest
from hypothesis import given
from hypothesis import strategies as st

from smalt.grading.thinking import ReplyParts, split_thinking


@pytest.mark.parametrize(
    ("reply", "thinking", "answer", "is_closed_once"),
    [
        ("<think>a\n</think>\n\nb\n", "a", "b", True),
        ("a</think>b", "a", "b", True),
        ("<think>\n</think>b", "", "b", True),
        ("just an answer\n", "", "just an answer", False),
        ("<think>never closed", "never closed", "", False),
        ("before<think>never closed", "never closed", "", False),
        ("<think>a</think>b</think>c", "a</think>b", "c", False),
        ("<think>a</think>b<think>c</think>d", "a</think>b<think>c", "d", False),
        ("<think>a</think>b<think>open again", "<think>ab<think>open again", "", False),
        ("", "", "", False),
    ],
)
def test_a_reply_is_taken_apart(reply, thinking, answer, is_closed_once):
    assert split_thinking(reply) == ReplyParts(thinking, answer, is_closed_once)


@given(st.lists(st.sampled_from(["<think>", "</think>", "a", "\n"]), max_size=12).map("".join))
def test_no_tag_is_left_in_the_answer(reply):
    parts = split_thinking(reply)
    assert "<think>" not in parts.answer
    assert "</think>" not in parts.answer
    assert parts.answer in reply
    assert not parts.is_closed_once or reply.count("</think>") == 1


@given(st.text("ab \n", max_size=20), st.text("ab \n", max_size=20))
def test_one_closed_thought_and_its_answer_come_back(thinking, answer):
    parts = split_thinking(f"<think>{thinking}</think>{answer}")
    assert parts == ReplyParts(thinking.strip(), answer.strip(), is_closed_once=True)
