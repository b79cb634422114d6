import re
from dataclasses import dataclass

import pytest

from smalt.lab.corpus import LAB_WORDING, reply_of
from smalt.lab.generator import generate
from smalt.lab.skills import AFTER_PASS, FIRST_TURN, SkillTest, skill_table
from smalt.policy.sampling import Completion, SamplingSettings
from smalt.rollouts.growth import Growth
from tests.scripted import WORDING, TrustedGrader


@dataclass
class Rule:
    """A policy that is a rule on the text of its prompt."""

    tokenizer: object
    answer: object

    def fits(self, prompt_ids, settings):
        return True

    def sample(self, requests, settings, seed):
        texts = [self.answer(self.tokenizer.decode(request.prompt_ids)) for request in requests]
        replies = [(*self.tokenizer.encode(text), self.tokenizer.eos_token_id) for text in texts]
        return [[Completion(ids, tuple(0.0 for _ in ids), True)] for ids in replies]


def skills_of(chat, answer, problems, wording=LAB_WORDING):
    growth = Growth(chat, wording, Rule(chat.tokenizer, answer), TrustedGrader(), SamplingSettings(max_new_tokens=128))
    return SkillTest(growth).run(problems)


@pytest.fixture(scope="module")
def made():
    return generate("test", 60, seed=0)


def last_program(prompt):
    """The program that a prompt shows, or one that does nothing."""
    found = re.findall(r"```python\n(.*?)```", prompt, re.DOTALL)
    return found[-1] if found else "def f(x):\n    return None\n"


def test_a_policy_that_repeats_keeps_what_passes_and_repairs_nothing(chat, made):
    skills = skills_of(chat, lambda prompt: reply_of(last_program(prompt)), made)
    assert skills.pop(AFTER_PASS).passed == len(made)
    assert skills.pop(FIRST_TURN).passed == 0
    assert {name.removesuffix(", told the step") for name in skills} == {
        "after a slip",
        "after one of 2 meanings",
        "after one of 3 meanings",
    }
    for skill in skills.values():
        assert skill.passed == 0
        assert skill.repeated == skill.programs > 0


def test_a_policy_told_the_step_meets_the_beginning_of_the_remark(chat, made):
    told = []
    skills = skills_of(
        chat, lambda prompt: told.append(prompt.rpartition("<|assistant|>")[2]) or "I do not know.", made
    )
    begun = [text for text in told if text]
    assert len(begun) == sum(skill.programs for name, skill in skills.items() if name.endswith("told the step"))
    assert all(re.fullmatch(r"Not\n    # [ABC]\) .+\n", text) for text in begun)
    assert all(skill.passed == skill.repeated == 0 for skill in skills.values())


def test_the_right_program_passes_everywhere(chat, made):
    right = {m.problem.statement: m.program(m.intended) for m in made if not any(i.is_ambiguous for i in m.ideas)}
    clear = [m for m in made if m.problem.statement in right]
    assert len(clear) > 5

    def answer(prompt):
        return reply_of(next(program for statement, program in right.items() if f"<|user|>{statement}<|" in prompt))

    for skill in skills_of(chat, answer, clear).values():
        assert skill.passed == skill.programs


def test_other_wordings_are_refused(chat, made):
    with pytest.raises(ValueError, match="the lab's wording only"):
        skills_of(chat, lambda prompt: "", made, wording=WORDING)


def test_the_table_has_a_row_for_each_situation(chat, made):
    skills = skills_of(chat, lambda prompt: "", made)
    assert skill_table(skills).row_count == len(skills)
