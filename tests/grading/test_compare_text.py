import random
import time
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smalt.grading.compare import outputs_match
from smalt.problems.problem import LinesRule, TokensRule


def tokens(**changes: Any) -> TokensRule:
    return TokensRule(rule="tokens", **changes)


def lines(**changes: Any) -> LinesRule:
    return LinesRule(rule="lines", **changes)


CASES: list[tuple[TokensRule | LinesRule, str, str, bool]] = [
    # Tolerances are stated, and both are used.
    (tokens(absolute_tolerance=0.01), "0.105", "0.1", True),
    (tokens(absolute_tolerance=0.01), "0.12", "0.1", False),
    (tokens(relative_tolerance=1e-2, absolute_tolerance=0), "1005.5", "1000.5", True),
    (tokens(relative_tolerance=0, absolute_tolerance=0), "0.30000000000000004", "0.3", False),
    (tokens(relative_tolerance=0, absolute_tolerance=0), "1e1", "10.0", True),
    # Integers stay exact at any size and under any tolerance.
    (tokens(absolute_tolerance=5), "12", "10", False),
    (tokens(relative_tolerance=0.5), "1000000000", "1000000001", False),
    (tokens(), "9" * 999_999 + "8", "9" * 1_000_000, False),
    # A float may stand for an integer, as far as it rounds to it.
    (tokens(), "2.0000001", "2", True),
    (tokens(), "999999999.5", "1000000000", False),
    (tokens(), "1000000000.4", "1000000000", True),
    (tokens(), "5e16", "50000000000000001", False),
    (tokens(), "5e16", "50000000000000000", True),
    (tokens(), "50000000000000001.00", "50000000000000001", True),
    (tokens(), "1" + "0" * 400, "1" + "0" * 400 + ".0", True),
    (tokens(), "0" * 5000 + "1", "1.0", True),
    (tokens(absolute_tolerance=2), "101.5", "100", True),
    (tokens(), "-0.0", "0", True),
    (tokens(), "inf", "1e999", False),
    # Case.
    (tokens(ignores_case=True), "yes\nNO", "Yes No", True),
    (tokens(), "yes", "YES", False),
    (tokens(ignores_case=True), "1E3", "1000.0", True),
    (tokens(ignores_case=True), "no", "yes", False),
    (lines(ignores_case=True), "Yes \nNo", "YES\nno\n", True),
    # Order.
    (tokens(ignores_order=True), "3 1 2", "1 2\n3", True),
    (tokens(ignores_order=True), "1 1 2", "1 2 2", False),
    (tokens(ignores_order=True), "1 2", "1 2 2", False),
    (tokens(ignores_order=True), "b 0.30000000001 a 10", "10.0 a b 0.3", True),
    (tokens(ignores_order=True), "1.0000001 1", "1.0 1", True),
    (tokens(ignores_order=True), "10 9", "9 10", True),
    (tokens(ignores_order=True, ignores_case=True), "B a", "A b", True),
    (lines(ignores_order=True), "b c\na\n", "a\nb c", True),
    (lines(ignores_order=True), "c b\na\n", "a\nb c", False),
    # Lines: white space counts inside a line, not at its end.
    (lines(), "  *\n ***  \n\n", "  *\n ***", True),
    (lines(), "*\n***", "  *\n ***", False),
    (lines(), "a  b", "a b", False),
    (lines(), "a\nb", "a b", False),
    (lines(), "a\r\nb\r\n", "a\nb", True),
    (lines(), "a\n\nb", "a\nb", False),
    (lines(), "\na", "a", False),
    (lines(), "1.0", "1", False),
    (lines(), "a\x0cb", "a\nb", False),
]


@pytest.mark.parametrize(("rule", "output", "expected", "is_right"), CASES, ids=count())
def test_rules(rule: TokensRule | LinesRule, output: str, expected: str, is_right: bool) -> None:
    assert outputs_match(output, expected, rule) is is_right
    assert outputs_match(expected, output, rule) is is_right


HOSTILE = [
    "1" * 200_000,
    "1" * 200_000 + "x",
    "1" * 100_000 + "." + "1" * 100_000 + "x",
    "0." + "3" * 200_000,
    "-" * 200_000,
    "1e" + "9" * 200_000,
    "1e-" + "9" * 200_000,
    "0" * 200_000 + "1",
    "." * 200_000,
    "\0\ud800\udfff" * 60_000,
    "a " * 100_000,
    "1.5\n" * 50_000,
    " \n\t\r\x0b\x0c\x1c\x85\u2028" * 20_000,
    "İ\u0130ß" * 60_000,
]
RULES = [tokens(), tokens(ignores_case=True, ignores_order=True), lines(), lines(ignores_case=True, ignores_order=True)]


@pytest.mark.parametrize("text", HOSTILE, ids=count())
def test_hostile_text_takes_linear_time(text: str) -> None:
    others = ["1.0", "1", text[:-1] + "1", text + " 1.0", text.replace("1", "2", 1)]
    started = time.process_time()
    for rule in RULES:
        assert outputs_match(text, text, rule)
        for other in others:
            outputs_match(text, other, rule)
            outputs_match(other, text, rule)
    # 40 comparisons of 200 kB; one that took quadratic time would take minutes.
    assert time.process_time() - started < 10


words = st.text(alphabet="ab1.-e \n", max_size=12)


@given(words, words, st.sampled_from(RULES))
@settings(max_examples=60, deadline=None)
def test_every_rule_is_reflexive_and_symmetric(left: str, right: str, rule: TokensRule | LinesRule) -> None:
    assert outputs_match(left, left, rule)
    assert outputs_match(left + " \n\n", left, rule)
    assert outputs_match(left, right, rule) == outputs_match(right, left, rule)


@given(st.lists(st.integers() | st.floats(-1e6, 1e6), max_size=8), st.randoms())
@settings(max_examples=60, deadline=None)
def test_any_order_with_noise_below_the_tolerance_is_accepted(numbers: list[float], chance: random.Random) -> None:
    noisy = [number * (1 + 1e-8) if isinstance(number, float) else number for number in numbers]
    chance.shuffle(noisy)
    assert outputs_match(" ".join(map(repr, noisy)), " ".join(map(repr, numbers)), tokens(ignores_order=True))
