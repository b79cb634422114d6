import json

import pytest

from benchmarks.agreement.cases import Case, empty_answers, problem_of_tests, references
from benchmarks.agreement.comparison import compare_cases, read_outcomes
from benchmarks.agreement.data_sets import DATA_SETS
from benchmarks.agreement.page import render_page
from benchmarks.agreement.reasons import Reason, Reasons, load_reasons
from smalt.grading.grader import Grader
from smalt.problems.problem import CallTest
from smalt.sandbox.forkserver import ForkServerSandbox
from tests.problems.real_data import data_file

RIGHT = "def double(x):\n    return 2 * x\n"
DOUBLE = problem_of_tests("double", [CallTest(args=(2,), expected=4), CallTest(args=(3,), expected=6)], "double")
CASES = [
    Case("right", "reference", DOUBLE, RIGHT, passes=True),
    Case("wrong", "buggy", DOUBLE, "def double(x):\n    return 4\n", passes=False),
    Case("wrongly recorded", "generated", DOUBLE, RIGHT, passes=False, recorded_as="timeout"),
]


@pytest.fixture(scope="module")
def grader():
    with ForkServerSandbox(workers=1) as sandbox:
        yield Grader(sandbox, workers=1)


def test_cases_of_a_problem():
    solved = DOUBLE.model_copy(update={"solutions": (RIGHT, RIGHT)})
    assert [case.program_id for case in references([solved])] == ["double", "double#1"]
    [control] = empty_answers([solved])
    assert not control.passes
    assert "return None" in control.program


def test_outcomes_say_whether_the_verdicts_agree(grader, tmp_path):
    outcomes = list(compare_cases(CASES, grader, tmp_path / "made/double.jsonl"))
    assert [(outcome.ours, outcome.agrees) for outcome in outcomes] == [
        ("passed", True),
        ("wrong_answer", True),
        ("passed", False),
    ]
    assert outcomes[1].tests == 2
    assert outcomes[1].detail == "on (3,) returned 4, expected 6"
    assert read_outcomes(tmp_path / "made/double.jsonl") == outcomes


def test_a_stopped_run_goes_on(grader, tmp_path):
    path = tmp_path / "double.jsonl"
    [first] = compare_cases(CASES[:1], grader, path)
    changed = json.dumps({**json.loads(path.read_text()), "detail": "of before"})
    path.write_text(f'{changed}\n{{"program_id": "wro')
    outcomes = list(compare_cases(CASES, grader, path))
    assert outcomes[0].detail == "of before"
    assert (outcomes[0].ours, outcomes[0].known) == (first.ours, first.known)
    assert read_outcomes(path) == outcomes


def test_the_page_lists_every_difference(grader, tmp_path):
    outcomes = list(compare_cases(CASES, grader, tmp_path / "double.jsonl"))
    bare = render_page({"doubles": outcomes, "absent": []}, {"doubles": 9}, Reasons(()))
    assert "| doubles | 9 | 3 | 1 | 2 | 2 | 1 | 6 |" in bare
    assert "**1** without a known reason.\n\n- known failed, ours passed: wrongly recorded\n" in bare
    reason = Reason("doubles", "The source is wrong.", frozenset({"wrongly recorded"}))
    assert "**1**: The source is wrong.\n\n- known failed, ours passed" in render_page(
        {"doubles": outcomes}, {"doubles": 3}, Reasons((reason,))
    )


def test_reasons_are_of_known_data_sets():
    assert {reason.data_set for reason in load_reasons().reasons} <= set(DATA_SETS)


def test_an_incomplete_reason_is_refused(tmp_path):
    path = tmp_path / "reasons.yaml"
    path.write_text("humaneval:\n- reason: Because.\n")
    with pytest.raises(ValueError, match=r"reasons\.yaml: humaneval: each entry needs 'reason' and 'programs'"):
        load_reasons(path)


@pytest.mark.parametrize(
    ("name", "programs", "passing"),
    [
        ("humaneval", 328, 164),
        ("humanevalpack", 328, 164),
        ("mbpp", 1948, 974),
        ("quixbugs", 62, 31),
        ("cruxeval", 1597, 800),
        ("exercism", 280, 140),
        ("codecontests_cf", 300, 132),
        ("codet", 3280, 722),
    ],
)
def test_the_cases_of_a_data_set(name, programs, passing):
    data = data_file("humaneval").parent
    cases = list(DATA_SETS[name](data))
    assert len({case.program_id for case in cases}) == len(cases) == programs
    assert sum(case.passes for case in cases) == passing
