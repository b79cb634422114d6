import json
from collections import Counter

import pytest

from smalt.problems.asserts import ASSERTED_EQUALITY
from smalt.problems.mbpp import read_mbpp
from smalt.problems.problem import CallTest, CodeTest
from smalt.problems.records import ProblemFileError
from tests.problems.real_data import data_file

RECORD = {
    "text": "Write f.",
    "code": "def helper(x):\r\n  return x\r\ndef f(x, y):\r\n  return helper(x) + y",
    "task_id": 11,
    "test_setup_code": "",
    "test_list": ["assert f(1, (2,)) == 3", "assert f(1, float) == 2", "assert f(1, (2,)) == 3"],
    "challenge_test_list": ["assert f(0,\r\n 0) == 0"],
}


def read(tmp_path, **changes):
    path = tmp_path / "m.jsonl"
    path.write_text(json.dumps({**RECORD, **changes}))
    return read_mbpp(path)[0]


def test_first_assert_is_public_and_shown(tmp_path):
    problem = read(tmp_path)
    assert problem.id == "mbpp/11"
    assert problem.statement == "Write f.\nYour code should pass this test:\nassert f(1, (2,)) == 3"
    assert problem.public_tests == (CallTest(args=(1, (2,)), expected=3),)
    assert problem.hidden_tests == (
        CodeTest(code="assert f(1, float) == 2"),
        CallTest(args=(0, 0), expected=0),
    )
    assert "\r" not in problem.solutions[0]
    assert problem.metadata["split"] == "test"
    assert problem.compare == ASSERTED_EQUALITY


def test_setup_goes_before_code_tests(tmp_path):
    problem = read(tmp_path, test_setup_code="root = N(1) \r\nx = 2", test_list=["assert f(root) == 1"])
    assert problem.public_tests == (CodeTest(code="root = N(1) \nx = 2\nassert f(root) == 1"),)


def test_entry_point_inside_other_calls(tmp_path):
    tests = ["assert set(f((3, 4),(5,))) == set((4, 5))"]
    problem = read(tmp_path, test_list=tests, test_imports=["import math"])
    assert problem.entry_point == "f"
    assert problem.public_tests == (CodeTest(code=f"import math\n{tests[0]}"),)
    assert read(tmp_path, test_list=tests, challenge_test_list=[]).compare is None


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"test_list": []}, "test_list: is empty"),
        ({"test_list": ["assert x =="]}, "test_list: 'assert x ==' is not Python code"),
        ({"test_list": ["assert 1 == 1"]}, "test_list[0]: calls no function"),
        ({"task_id": "x"}, "task_id: 'x'; expected a number"),
        ({"code": None}, "code: is null"),
    ],
)
def test_errors(tmp_path, changes, expected):
    with pytest.raises(ProblemFileError, match=r"m\.jsonl:1: ") as caught:
        read(tmp_path, **changes)
    assert expected in str(caught.value)


def test_real_mbpp():
    problems = read_mbpp(data_file("mbpp/mbpp.jsonl"))
    splits = Counter(problem.metadata["split"] for problem in problems)
    assert splits == {"train": 374, "validation": 90, "test": 500, "prompt": 10}
    tests = [test for problem in problems for test in (*problem.public_tests, *problem.hidden_tests)]
    assert Counter(type(test) for test in tests) == {CallTest: 2905, CodeTest: 27}
    assert [problem.id for problem in problems if not problem.hidden_tests] == ["mbpp/37"]


def test_real_sanitized_mbpp():
    problems = read_mbpp(data_file("mbpp/sanitized-mbpp.json"))
    assert len(problems) == 427
    for problem in problems:
        assert f"def {problem.entry_point}" in problem.solutions[0]
