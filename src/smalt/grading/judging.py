"""From executions to statuses: by the problem's comparison rule, or by its checker program."""

from __future__ import annotations

import marshal
from collections.abc import Sequence
from typing import Any

from smalt.grading.compare import outputs_match, values_match
from smalt.grading.running import run_with_retry
from smalt.grading.verdicts import Status
from smalt.problems.problem import CallTest, CheckerRule, CodeTest, Limits, Problem, StdinTest, TestCase
from smalt.sandbox.execution import CallInput, Execution, Job, Outcome, Sandbox

_CHECK = "check"


class Judge:
    """Gives statuses for one problem."""

    def __init__(self, sandbox: Sandbox, problem: Problem, limits: Limits) -> None:
        """Judge by `problem.compare`; a checker program runs on `sandbox`, under its own limits or these."""
        self._sandbox = sandbox
        self._rule = problem.compare
        self._limits = limits
        self.infra_retries = 0
        """Runs of a checker made again because the sandbox failed."""

    def statuses(self, tests: Sequence[TestCase], executions: Sequence[Execution]) -> list[Status]:
        """Return the status of each test, given its execution."""
        statuses = [self._status(test, execution) for test, execution in zip(tests, executions, strict=True)]
        if isinstance(self._rule, CheckerRule):
            waiting = [place for place, status in enumerate(statuses) if status is None]
            answers = [_answer(tests[place], executions[place]) for place in waiting]
            for place, status in zip(waiting, self._checked(self._rule, answers), strict=True):
                statuses[place] = status
        return [status or Status.INFRA_ERROR for status in statuses]

    def _status(self, test: TestCase, execution: Execution) -> Status | None:
        """Return the status, None when it is the checker's to give."""
        if execution.outcome is not Outcome.OK:
            # A test's code speaks through assertions: that one fails means a wrong answer, not a crash.
            if isinstance(test, CodeTest) and execution.error_type == "AssertionError":
                return Status.WRONG_ANSWER
            return Status(execution.outcome.value)
        match test:
            case CodeTest():
                return Status.PASSED
            case _ if isinstance(self._rule, CheckerRule):
                return None if _is_plain(_answer(test, execution)) else Status.WRONG_ANSWER
            case StdinTest(expected=expected):
                return _as_status(outputs_match(execution.stdout, expected, self._rule))
            case CallTest(expected=expected):
                return _as_status(values_match(execution.value, expected, self._rule))

    def _checked(self, rule: CheckerRule, answers: Sequence[tuple[Any, Any, Any]]) -> list[Status]:
        """Return the checker's verdict on each (input, output, expected)."""
        statuses = []
        for answer, execution in zip(answers, self._run_checker(rule, answers), strict=True):
            status = _verdict(execution)
            if status is None:
                status = self._blamed(rule, answer)
            statuses.append(status)
        return statuses

    def _blamed(self, rule: CheckerRule, answer: tuple[Any, Any, Any]) -> Status:
        """Return whose fault it is that a checker crashed: the output's, if it accepts the expected one."""
        given, _, expected = answer
        [execution] = self._run_checker(rule, [(given, expected, expected)])
        return Status.WRONG_ANSWER if _verdict(execution) is Status.PASSED else Status.INFRA_ERROR

    def _run_checker(self, rule: CheckerRule, answers: Sequence[tuple[Any, Any, Any]]) -> list[Execution]:
        if not answers:
            return []
        inputs = tuple(CallInput(_CHECK, answer) for answer in answers)
        executions, retries = run_with_retry(self._sandbox, Job(rule.program, inputs, rule.limits or self._limits))
        self.infra_retries += retries
        return executions


def _verdict(execution: Execution) -> Status | None:
    """Return what a call of check says; None when it crashed."""
    if execution.outcome is Outcome.OK:
        # Anything but a bool is no verdict: the checker is broken.
        return _as_status(execution.value) if isinstance(execution.value, bool) else Status.INFRA_ERROR
    return Status.INFRA_ERROR if execution.outcome is Outcome.INFRA_ERROR else None


def _as_status(is_right: bool) -> Status:
    return Status.PASSED if is_right else Status.WRONG_ANSWER


def _answer(test: TestCase, execution: Execution) -> tuple[Any, Any, Any]:
    """Return input, output and expected output, as check gets them."""
    if isinstance(test, CallTest):
        return list(test.args), execution.value, test.expected
    assert isinstance(test, StdinTest)
    return test.stdin, execution.stdout, test.expected


def _is_plain(answer: Any) -> bool:
    """Whether an answer can be handed to a checker; one that holds an object of a class of its own cannot."""
    try:
        marshal.dumps(answer)
    except ValueError:
        return False
    return True
