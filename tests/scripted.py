"""A sampler that says what it is told, and a grader that runs trusted test programs in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from smalt.grading.compare import values_match
from smalt.grading.verdicts import Grade, HiddenResult, PublicResult, Status
from smalt.policy.sampling import Completion, SampleRequest

RIGHT = "```python\ndef f(x):\n    return x[1:]\n```"
WRONG = "```python\ndef f(x):\n    return x[:-1]\n```"
NO_CODE = "I do not know."


@dataclass
class ScriptedSampler:
    """Replies in the order given, one list per level; longest prompt it accepts is `context` tokens."""

    tokenizer: object
    replies: Sequence[Sequence[str]]
    context: int = 10_000
    requests: list[list[SampleRequest]] = field(default_factory=list)

    def fits(self, prompt_ids, settings):
        return len(prompt_ids) <= self.context

    def sample(self, requests, settings, seed):
        replies = iter(self.replies[len(self.requests)])
        self.requests.append(list(requests))
        return [[self._completion(next(replies)) for _ in range(request.count)] for request in requests]

    def _completion(self, text):
        ids = (*self.tokenizer.encode(text, add_special_tokens=False), self.tokenizer.eos_token_id)
        return Completion(ids, tuple(-0.5 for _ in ids), True)


class TrustedGrader:
    """Runs the scripted programs above; `broken` programs come back as infra errors."""

    def __init__(self, broken: str | None = None):
        self.broken = broken

    def grade_many(self, pairs):
        return [self._grade(problem, program) for problem, program in pairs]

    def _grade(self, problem, program):
        namespace: dict = {}
        exec(program, namespace)
        statuses, outputs = [], []
        for test in (*problem.public_tests, *problem.hidden_tests):
            output = namespace["f"](*test.args)
            outputs.append(repr(output))
            right = values_match(output, test.expected)
            statuses.append(Status.PASSED if right else Status.WRONG_ANSWER)
        if self.broken is not None and self.broken in program:
            statuses = [Status.INFRA_ERROR] * len(statuses)
        count = len(problem.public_tests)
        public = tuple(
            PublicResult(test, status, output)
            for test, status, output in zip(problem.public_tests, statuses, outputs, strict=False)
        )
        return Grade(public, tuple(HiddenResult(status) for status in statuses[count:]))
