"""Stand-ins: a sampler that says what it is told, graders without a sandbox, growth that uses them."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from smalt.dialogue.wording import Wording
from smalt.grading.compare import values_match
from smalt.grading.verdicts import Grade, HiddenResult, PublicResult, Status
from smalt.policy.sampling import Completion, SampleRequest, SamplingSettings
from smalt.rollouts.growth import Growth
from smalt.rollouts.records import PublicOutcome, Trajectory, TurnRecord

RIGHT = "```python\ndef f(x):\n    return x[1:]\n```"
WRONG = "```python\ndef f(x):\n    return x[:-1]\n```"
NO_CODE = "I do not know."
WORDING = Wording(system="", task="{statement}", fix="{feedback}", reconsider="Check it again.", no_code="No program.")


@dataclass
class ScriptedSampler:
    """Replies in the order given, one list per level; longest prompt it accepts is `context` tokens."""

    tokenizer: object
    replies: Sequence[Sequence[str]]
    context: int = 10_000
    requests: list[list[SampleRequest]] = field(default_factory=list)
    seeds: list[int] = field(default_factory=list)

    def fits(self, prompt_ids, settings):
        return len(prompt_ids) <= self.context

    def sample(self, requests, settings, seed):
        replies = iter(self.replies[len(self.requests)])
        self.requests.append(list(requests))
        self.seeds.append(seed)
        return [[self._completion(next(replies)) for _ in range(request.count)] for request in requests]

    def _completion(self, text):
        ids = (*self.tokenizer.encode(text, add_special_tokens=False), self.tokenizer.eos_token_id)
        return Completion(ids, tuple(-0.5 for _ in ids), True)


@dataclass
class TellingSampler(ScriptedSampler):
    """As above, but tells of each reply as it ends, last ones first; each takes `seconds`."""

    seconds: float = 0.0

    def sample_and_tell(self, requests, settings, seed, on_finished):
        results = self.sample(requests, settings, seed)
        for place, completions in reversed(list(enumerate(results))):
            for number, completion in reversed(list(enumerate(completions))):
                time.sleep(self.seconds)
                on_finished(place, number, completion)
        return results


@dataclass
class SeededSampler:
    """Draws each reply from `replies` by the seed, the request's place and the sample's number."""

    tokenizer: object
    replies: Sequence[str] = (RIGHT, WRONG, NO_CODE)
    context: int = 10_000

    def fits(self, prompt_ids, settings):
        return len(prompt_ids) <= self.context

    def sample(self, requests, settings, seed):
        return [
            [self._completion(f"{seed}/{place}/{number}/{request.prompt_ids}") for number in range(request.count)]
            for place, request in enumerate(requests)
        ]

    def _completion(self, key):
        text = self.replies[zlib.crc32(key.encode()) % len(self.replies)]
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
        return grade_of(problem, statuses, outputs)


@dataclass
class TextGrader:
    """Judges by the text alone, so that nothing a model wrote is run: does the program pass the test at this place?"""

    judge: Callable[[str, int], bool] = lambda program, place: zlib.crc32(f"{program}{place % 2}".encode()) % 2 == 0

    def grade_many(self, pairs):
        return [self._grade(problem, program) for problem, program in pairs]

    def _grade(self, problem, program):
        tests = (*problem.public_tests, *problem.hidden_tests)
        passed = [self.judge(program, place) for place in range(len(tests))]
        statuses = [Status.PASSED if is_right else Status.WRONG_ANSWER for is_right in passed]
        return grade_of(problem, statuses, ["?"] * len(tests))


@dataclass
class StreamingGrader(TextGrader):
    """As above, but takes programs one by one, on one thread; each takes `seconds`."""

    seconds: float = 0.0
    graded: list[str] = field(default_factory=list)

    @contextmanager
    def stream(self):
        with ThreadPoolExecutor(1) as pool:
            yield lambda problem, program: pool.submit(self._take_time, problem, program)

    def _take_time(self, problem, program):
        time.sleep(self.seconds)
        self.graded.append(program)
        return self._grade(problem, program)


def grade_of(problem, statuses, outputs):
    count = len(problem.public_tests)
    public = tuple(
        PublicResult(test, status, output)
        for test, status, output in zip(problem.public_tests, statuses, outputs, strict=False)
    )
    return Grade(public, tuple(HiddenResult(status) for status in statuses[count:]))


def scripted_growth(chat, *levels, grader=None, context=10_000, **options) -> Growth:
    """Growth whose levels say what the lists of replies say."""
    return growth_with(chat, ScriptedSampler(chat.tokenizer, levels, context), grader=grader, **options)


def growth_with(chat, sampler, grader=None, max_new_tokens=32, **options) -> Growth:
    sampling = SamplingSettings(max_new_tokens=max_new_tokens)
    return Growth(chat, WORDING, sampler, grader or TrustedGrader(), sampling, **options)


def turn(rate, public=None, infra=False, ids=(7, 8), feedback="Expected: [2]", program="def f(x): pass\n"):
    """A turn that passes the share `rate` of its tests."""
    return TurnRecord(
        completion_ids=tuple(ids),
        logprobs=tuple(-0.5 for _ in ids),
        is_finished=True,
        reply="reply",
        program=program,
        public=(PublicOutcome("passed" if rate == 1 else "wrong_answer", "[1]", ""),),
        hidden=("passed",) if rate == 1 else ("wrong_answer",),
        pass_rate=rate,
        passes_public=(rate == 1) if public is None else public,
        passes_hidden=rate == 1,
        is_infra_error=infra,
        feedback=feedback,
    )


def trajectory(*rates, problem_id="drop-first", sample=0):
    """A dialogue from the pass rates of its turns, or from turns."""
    turns = tuple(item if isinstance(item, TurnRecord) else turn(item) for item in rates)
    return Trajectory(problem_id, sample, turns)
