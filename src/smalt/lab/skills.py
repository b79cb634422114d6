"""What a policy does after one failing program, and what it could: the lab's two abilities behind every curve.

The first program of each dialogue is written here, wrong in one chosen way, and the policy writes the next one:
freely, or *told*, with the remark that names the wrong step begun for it. A base model that repairs when told and
seldom otherwise is one from which reinforcement learning can bring something out.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from rich.table import Table

from smalt.dialogue.chat import Prompt
from smalt.dialogue.feedback import feedback_message
from smalt.grading.extraction import extract_program
from smalt.lab.corpus import LAB_WORDING, public_results, remark_opening, reply_of
from smalt.lab.generator import LabProblem
from smalt.policy.sampling import Completion, SampleRequest
from smalt.rollouts.growth import Growth

FIRST_TURN = "first program"
AFTER_PASS = "after a program that passed"


@dataclass
class Skill:
    """Next programs in one situation."""

    passed: int = 0
    """Programs that pass every test."""
    repeated: int = 0
    """Programs equal to the one before."""
    programs: int = 0
    """Replies, with a program or without."""


@dataclass(frozen=True)
class _Situation:
    """A prompt the policy is put before; `told` is the beginning of its reply."""

    name: str
    made: LabProblem
    prompt: Prompt
    last: str = ""
    told: tuple[int, ...] = ()


@dataclass
class SkillTest:
    """Puts a policy before the same situations as any other."""

    growth: Growth
    """With the policy's sampler and the grader; its wording must be the lab's."""
    seed: int = 0

    def run(self, problems: Sequence[LabProblem]) -> dict[str, Skill]:
        """The policy's skills by situation, over `problems`, one reply a situation."""
        if self.growth.wording != LAB_WORDING:
            raise ValueError("the lab's base model reads the lab's wording only: take the demo's dialogue settings")
        rng = random.Random(f"smalt-lab-skills/{self.seed}")
        situations = list(chain.from_iterable(self._situations(made, rng) for made in problems))
        requests = [SampleRequest((*s.prompt.ids, *s.told), 1) for s in situations]
        sampled = self.growth.sampler.sample(requests, self.growth.sampling, seed=self.seed)
        programs = [self._program(s, completions[0]) for s, completions in zip(situations, sampled, strict=True)]
        written = [(s.made.problem, program) for s, program in zip(situations, programs, strict=True) if program]
        grades = iter(self.growth.grader.grade_many(written))
        skills: dict[str, Skill] = defaultdict(Skill)
        for situation, program in zip(situations, programs, strict=True):
            skill = skills[situation.name]
            skill.programs += 1
            if program:
                skill.passed += next(grades).passes_all
                skill.repeated += program == situation.last
        return dict(sorted(skills.items()))

    def _program(self, situation: _Situation, completion: Completion) -> str | None:
        reply = self.growth.chat.reply_text((*situation.told, *completion.ids))
        return extract_program(reply, situation.made.problem.entry_point).program

    def _situations(self, made: LabProblem, rng: random.Random) -> Iterator[_Situation]:
        opening = self.growth.seed_of(made.problem).root
        yield _Situation(FIRST_TURN, made, opening)
        yield self._after(AFTER_PASS, made, opening, made.intended)
        for step, idea in enumerate(made.ideas):
            others = [line for line in idea.meanings + idea.slips if line != made.intended[step]]
            program = (*made.intended[:step], rng.choice(others), *made.intended[step + 1 :])
            if all(result.passed for result in public_results(made, program)):
                continue  # nothing would be said of it
            kind = f"after one of {len(idea.meanings)} meanings" if idea.is_ambiguous else "after a slip"
            yield self._after(kind, made, opening, program)
            told = tuple(self.growth.chat.tokenizer.encode(remark_opening(made.wordings, step)))
            yield self._after(f"{kind}, told the step", made, opening, program, told)

    def _after(
        self, name: str, made: LabProblem, opening: Prompt, program: tuple[str, ...], told: tuple[int, ...] = ()
    ) -> _Situation:
        """The situation after `program` was written and run."""
        chat, results = self.growth.chat, public_results(made, program)
        text = made.program(program)
        reply = [*chat.tokenizer.encode(reply_of(text)), chat.tokenizer.eos_token_id]
        feedback = feedback_message(results, LAB_WORDING, entry_point=made.problem.entry_point)
        return _Situation(name, made, chat.next_turn(opening, reply, feedback), text, told)


def skill_table(skills: Mapping[str, Skill]) -> Table:
    """Skills as a table, shares in percent."""
    table = Table(title="The next program, %", title_justify="left")
    table.add_column("Situation")
    for name in ("Passes all tests", "Repeats the last", "Programs"):
        table.add_column(name, justify="right")
    for name, skill in skills.items():
        shares = (f"{100 * count / skill.programs:.0f}" for count in (skill.passed, skill.repeated))
        table.add_row(name, *shares, str(skill.programs))
    return table
