"""The user message after a program has run: what failed, or an invitation to think again.

It is written from `PublicResult`s alone; anything else is refused. What is shown of a program is untrusted
text: it is cut, fenced, and its control tokens are broken up.
"""

from __future__ import annotations

from collections.abc import Sequence

from smalt.dialogue.control_tokens import neutralise
from smalt.dialogue.wording import DEFAULT_WORDING, Wording, call_text, fenced, fill
from smalt.grading.verdicts import PublicResult, Status
from smalt.problems.problem import CallTest, CodeTest
from smalt.problems.values import value_text

MAX_SHOWN = 400
"""Characters shown of one text (Cobalt, arXiv 2602.03806: the first 200 and the last 200)."""

_CRASHES = (Status.RUNTIME_ERROR, Status.COMPILE_ERROR)


def feedback_message(
    results: Sequence[PublicResult],
    wording: Wording = DEFAULT_WORDING,
    max_failing_tests: int = 1,
    max_shown: int = MAX_SHOWN,
    entry_point: str | None = None,
    control_tokens: Sequence[str] = (),
) -> str:
    """The next user message: the first failing public tests, or a look at edge cases when none failed.

    Args:
        results: the verdicts on the public tests, in the order of the tests.
        wording: the templates.
        max_failing_tests: how many failing tests are shown.
        max_shown: characters shown of each input, output, expected output and error.
        entry_point: the function's name, for the calls of call tests.
        control_tokens: the tokenizer's control tokens, broken up in everything that is shown.

    Raises:
        TypeError: a result that is no `PublicResult`; hidden results never reach the policy.
        ValueError: a result that is an `infra_error`; a failure of the grader says nothing of the program.
    """
    _check(results)
    failing = [result for result in results if not result.passed][:max_failing_tests]
    if not failing:
        return fill(wording.reconsider, {"answer_rule": wording.answer_rule})
    show = _Shown(max_shown, control_tokens, entry_point)
    feedback = "\n\n".join(show.result(result) for result in failing)
    return fill(wording.fix, {"feedback": feedback, "answer_rule": wording.answer_rule})


def clip(text: str, limit: int = MAX_SHOWN) -> str:
    """The first and last characters of a text, `limit` together, and between them how much was cut."""
    if len(text) <= limit:
        return text
    head, tail = limit - limit // 2, limit // 2
    cut = len(text) - limit
    return f"{text[:head]}\n[... {cut} characters cut ...]\n{text[len(text) - tail :]}"


def _check(results: Sequence[PublicResult]) -> None:
    for result in results:
        if not isinstance(result, PublicResult):
            raise TypeError(f"feedback is written from PublicResult only, not from {type(result).__name__}")
        if result.status is Status.INFRA_ERROR:
            raise ValueError("an infra_error is never fed back: drop the sample instead")


class _Shown:
    """How one message shows its texts: cut to a length, without control tokens, several lines in a fence."""

    def __init__(self, limit: int, control_tokens: Sequence[str], entry_point: str | None) -> None:
        self._limit = limit
        self._control_tokens = control_tokens
        self._entry_point = entry_point

    def result(self, result: PublicResult) -> str:
        """One failing test: its input, what the program did, and what was expected."""
        return "\n".join([*self._given(result), *self._outcome(result)])

    def _block(self, title: str, text: str) -> str:
        # Cut first: the cut could otherwise fall inside what was inserted to break up a control token.
        shown = neutralise(clip(text, self._limit), self._control_tokens)
        if not shown.strip():
            return f"{title} (empty)"
        line = shown.removesuffix("\n")
        is_plain_line = line == line.strip() and len(line.splitlines()) == 1
        return f"{title} {line}" if is_plain_line else f"{title}\n{fenced(shown)}"

    def _given(self, result: PublicResult) -> list[str]:
        test = result.test
        if isinstance(test, CodeTest):
            return [self._block("Test:", test.code)]
        if isinstance(test, CallTest):
            return [self._block("Call:", call_text(test, self._entry_point))]
        return [self._block("Input:", test.stdin)]

    def _outcome(self, result: PublicResult) -> list[str]:
        output = self._block("Output of your program:", result.output)
        if result.status in _CRASHES:
            return [*([output] if result.output.strip() else []), self._block("Error:", result.error)]
        if result.status is Status.TIMEOUT:
            limit = f" of {result.time_limit:g} seconds" if result.time_limit else ""
            return [f"Your program did not finish within the time limit{limit}."]
        if result.status is Status.MEMORY_LIMIT:
            return ["Your program used more memory than it may."]
        if result.status is Status.OUTPUT_LIMIT:
            return [output, "Your program wrote more output than it may."]
        return self._wrong_answer(result, output)

    def _wrong_answer(self, result: PublicResult, output: str) -> list[str]:
        test = result.test
        if isinstance(test, CodeTest):
            printed = [output] if result.output.strip() else []
            return [*printed, self._block("Error:", result.error or "the test failed")]
        if isinstance(test, CallTest):
            returned = self._block("Your function returned:", result.output)
            return [returned, self._block("Expected:", value_text(test.expected))]
        return [output, self._block("Expected output:", test.expected)]
