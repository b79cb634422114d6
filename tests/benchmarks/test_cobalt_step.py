"""The benchmark of whole Cobalt steps: its prompts, its fixed lengths, and a small run that makes a page."""

import sys

import pytest
from click.testing import CliRunner

from benchmarks.cobalt_step.__main__ import main
from benchmarks.cobalt_step.full_signal import CobaltWithSignal
from benchmarks.cobalt_step.ours import Ours
from benchmarks.cobalt_step.page import page
from benchmarks.cobalt_step.plan import make_contexts, prompt_text, settings_of
from benchmarks.cobalt_step.step_cost import StepCost
from benchmarks.peer_process import PeerProcess
from smalt.assembly import open_grader
from smalt.methods.cobalt import CobaltSettings
from smalt.methods.method import MethodTools
from smalt.problems.native import read_native, write_native
from smalt.rollouts.records import Context
from tests.conftest import drop_first
from tests.scripted import NO_CODE, scripted_growth


@pytest.fixture(scope="module")
def problem_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("problems") / "problems.jsonl"
    write_native(path, [*(drop_first(name) for name in "abcdefgh"), drop_first("unsolved", solutions=())])
    return path


@pytest.fixture(scope="module")
def options(model_folder, problem_file):
    sizes = {"contexts": 3, "group": 2, "completion": 6}
    return {"base": None, "model": str(model_folder), "problems": str(problem_file), "dtype": "float32"} | {
        "device": "cpu",
        **sizes,
    }


@pytest.fixture(scope="module")
def ours(options, tmp_path_factory):
    settings = settings_of(options)
    with open_grader(settings.grader) as grader:
        yield Ours(settings, read_native(options["problems"]), grader, tmp_path_factory.mktemp("ours"))


@pytest.fixture(scope="module")
def contexts(ours, problem_file):
    return make_contexts(read_native(problem_file), ours.growth, 6)


def test_contexts_hold_up_to_two_failing_programs_and_their_feedback(contexts, ours):
    assert [context.attempts for context in contexts] == [0, 1, 2, 0, 1, 2]
    assert {context.previous_best for context in contexts} == {0.0}
    bare, once, twice = (prompt_text(context, ours.growth.chat.tokenizer) for context in contexts[:3])
    assert "return None and x[1:]" in once and "return None and x[1:]" not in bare
    assert "return not x[1:]" in twice and "return not x[1:]" not in once
    assert once.count("That is wrong.") == 1 and twice.count("That is wrong.") == 2


def test_too_few_problems_with_solutions_are_refused(ours, problem_file):
    with pytest.raises(ValueError, match="9 contexts are needed and only 8 of 9 problems make one"):
        make_contexts(read_native(problem_file), ours.growth, 9)


def test_a_step_of_fixed_length_samples_as_many_tokens_as_it_may(ours, contexts):
    fixed = ours.step(contexts[:3], 0, has_fixed_length=True)
    assert fixed.tokens == 3 * 2 * 6
    assert min(fixed.sampling, fixed.training) > 0
    assert ours.step(contexts[3:], 1, has_fixed_length=False).tokens <= fixed.tokens


def test_every_group_carries_a_signal(chat, problem):
    growth = scripted_growth(chat, [NO_CODE] * 3)
    method = CobaltWithSignal(CobaltSettings(group_size=3), MethodTools(tokenizer=chat.tokenizer))
    tree = growth.seed_of(problem)
    growth.grow([tree], method.shape, seed=0)
    [group] = method.credit(tree)
    assert group.advantages[0] < group.advantages[1] < group.advantages[2]
    assert [node.reward for node in tree.children] == pytest.approx([-1, -0.999, -0.998])


def test_ratios_are_round_by_round_and_by_tokens():
    own = [StepCost(1, 0, 1, 1000, 3), StepCost(2, 0, 2, 1000, 3), StepCost(1, 0, 1, 1000, 3)]
    theirs = [StepCost(2, 1, 3, 2000, 4), StepCost(4, 1, 5, 1000, 4), StepCost(1, 1, 3, 1000, 4)]
    context = Context("a", 0, 0, 0.0, (1, 2, 3))
    text = page({"free": {"Smalt": own, "TRL": theirs}}, [context], {"group": 2}, {"trl": "1"})
    # Seconds: 3, 2.5, 2.5 times; the first round's tokens are twice ours.
    assert "| TRL / Smalt | 2.00 | nan | 3.00 | 2.50 |  | 2.50 |  |" in text
    assert "measured 2.50: reached" in text


def test_a_small_run_makes_a_page(options, tmp_path):
    names = ("model", "problems", "contexts", "group", "completion")
    flags = [text for name in names for text in (f"--{name}", str(options[name]))]
    ran = CliRunner().invoke(main, [*flags, "--contexts", "2", "--rounds", "1", "--out", str(tmp_path)])
    assert ran.exit_code == 0, ran.output
    assert (tmp_path / "cobalt-step.md").read_text().count("| Smalt |") == 2


def test_unknown_lengths_are_refused(options):
    ran = CliRunner().invoke(main, ["--model", "m", "--problems", "p", "--lengths", "fixed,long"])
    assert ran.exit_code == 2
    assert "'long' is none of fixed, free" in ran.output


def test_a_peer_answers_between_its_chatter_and_its_end_is_told(tmp_path):
    script = tmp_path / "host.py"
    script.write_text(
        "import json\n"
        "print('loading', input())\n"
        'print(\'ready {"peer": "1.0"}\', flush=True)\n'
        "number = json.loads(input())['number']\n"
        "print('result', number + 1, flush=True)\n"
    )
    with PeerProcess(sys.executable, script, {}) as peer:
        assert peer.versions == {"peer": "1.0"}
        assert peer.ask({"number": 4}) == 5
        with pytest.raises(RuntimeError, match=r"host\.py ended"):
            peer.ask({"number": 5})
