import json

import pytest

from smalt.problems.apps import read_apps
from smalt.problems.problem import CallTest, StdinTest
from smalt.problems.records import ProblemFileError
from tests.problems.real_data import data_file


def read(tmp_path, public_count=4, **fields):
    path = tmp_path / "apps.jsonl"
    path.write_text(json.dumps({"problem_id": 7, "question": "Do it.", **fields}))
    return read_apps(path, public_count)[0]


def test_programs(tmp_path):
    tests = {"inputs": ["333", "1", ["2", "2"]], "outputs": ["a", "b", ["c"]]}
    problem = read(
        tmp_path,
        public_count=1,
        input_output=json.dumps(tests),
        solutions=json.dumps(["print()"]),
        difficulty="interview",
        source="codeforces",
    )
    assert problem.public_tests == (StdinTest(stdin="1", expected="b"),)
    assert problem.hidden_tests == (StdinTest(stdin="333", expected="a"), StdinTest(stdin="2\n2", expected="c"))
    assert (problem.id, problem.solutions) == ("7", ("print()",))
    assert problem.metadata == {"source": "apps", "difficulty": "interview", "original_source": "codeforces"}


def test_functions(tmp_path):
    tests = {"fn_name": "add", "inputs": [[1, 2], [[3], 4]], "outputs": [3, [7]]}
    problem = read(tmp_path, public_count=1, input_output=tests, starter_code="def add(a, b):")
    assert problem.public_tests == (CallTest(args=(1, 2), expected=3),)
    assert problem.hidden_tests == (CallTest(args=([3], 4), expected=[7]),)
    assert (problem.entry_point, problem.starter_code) == ("add", "def add(a, b):")


def test_results_that_are_all_wrapped_are_unwrapped(tmp_path):
    tests = {"fn_name": "even", "inputs": [[1], [2]], "outputs": [[False], [[2]]]}
    problem = read(tmp_path, input_output=tests)
    assert [test.expected for test in problem.public_tests] == [False, [2]]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "input_output: is null"),
        ({"input_output": "{"}, "input_output: is not JSON"),
        ({"input_output": {"inputs": ["1"], "outputs": []}}, "has 1 inputs and 0 outputs"),
        ({"input_output": {"inputs": [], "outputs": []}}, "has 0 inputs and 0 outputs"),
        ({"input_output": {"inputs": "1", "outputs": []}}, "input_output.inputs: is a string; expected a list"),
        ({"input_output": {"fn_name": "f", "inputs": [1], "outputs": [1]}}, "input_output.inputs: is a number"),
        ({"input_output": {"inputs": ["1"], "outputs": ["1"]}, "problem_id": None}, "id: missing"),
    ],
)
def test_errors(tmp_path, fields, expected):
    with pytest.raises(ProblemFileError, match=r"apps\.jsonl:1: ") as caught:
        read(tmp_path, **fields)
    assert expected in str(caught.value)


def test_real_file():
    problems = read_apps(data_file("apps_coderl/apps_train_5.jsonl"))
    assert [problem.entry_point for problem in problems] == [None, None, None, "findKthPositive", "is_prime"]
    assert [len(problem.solutions) for problem in problems] == [24, 1, 10, 58, 8]
