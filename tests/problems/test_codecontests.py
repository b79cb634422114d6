import json

import pytest

from smalt.problems.codecontests import read_codecontests
from smalt.problems.records import ProblemFileError
from tests.problems.real_data import data_file


def row(given, expected, **more):
    return {"input": given, "output": expected, **more}


def read(tmp_path, public_count=4, **fields):
    path = tmp_path / "c.jsonl"
    path.write_text(json.dumps({"name": "p", "description": "Do.", **fields}))
    return read_codecontests(path, public_count=public_count)[0]


def inputs(tests):
    return [test.stdin for test in tests]


def test_the_shortest_inputs_are_public(tmp_path):
    rows = [row("333", "a"), row("1", "b"), row("4444", "c"), row("22", "d")]
    problem = read(tmp_path, public_count=2, tests=rows, solution="print()")
    assert inputs(problem.public_tests) == ["1", "22"]
    assert inputs(problem.hidden_tests) == ["333", "4444"]
    assert problem.solutions == ("print()",)


def test_a_test_that_the_statement_prints_is_public(tmp_path):
    statement = "Do.\n\nInput\n\n3 4\n5\n\n\nOutput\n\n12\n\n## Testing\n\nRun the solution with:\n./run.sh"
    rows = [row("1", "1"), row("2", "2"), row("3 4\n5\n", "12\n")]
    problem = read(tmp_path, public_count=1, tests=rows, description=statement)
    assert inputs(problem.public_tests) == ["3 4\n5\n"]
    assert "run.sh" not in problem.statement
    assert problem.statement.startswith("Do.\n\nInput\n\n3 4\n5")


def test_flags_decide_where_there_are_any(tmp_path):
    rows = [row("1", "1", public=False), row("22", "2", public=True)]
    problem = read(tmp_path, tests=rows)
    assert inputs(problem.public_tests) == ["22"]
    assert inputs(problem.hidden_tests) == ["1"]


def test_original_layout(tmp_path):
    problem = read(
        tmp_path,
        public_tests={"input": ["1"], "output": ["a"]},
        private_tests={"input": ["2"], "output": ["b"]},
        generated_tests={"input": ["3", "4"], "output": ["c", "d"]},
        solutions={"language": [2, 3], "solution": ["int main", "print()"]},
    )
    assert inputs(problem.public_tests) == ["1"]
    assert inputs(problem.hidden_tests) == ["2", "3", "4"]
    assert problem.solutions == ("print()",)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"tests": [{"input": "1"}]}, "tests[0].output: missing; expected a string"),
        ({"tests": 3}, "tests: is a number; expected a list"),
        ({"tests": ["x"]}, "tests[0]: is a string; expected an object"),
        ({"tests": []}, "needs at least one test"),
        ({"public_tests": {"input": ["1"], "output": []}}, "public_tests: has 1 inputs and 0 outputs"),
        ({"public_tests": []}, "public_tests: is a list; expected an object"),
        ({"tests": [row("1", "1")], "description": ""}, "description: is empty"),
    ],
)
def test_errors(tmp_path, fields, expected):
    with pytest.raises(ProblemFileError, match=r"c\.jsonl:1: ") as caught:
        read(tmp_path, **fields)
    assert expected in str(caught.value)


def test_real_codecontests():
    problems = read_codecontests(data_file("codecontests_cf/problems.jsonl.gz"))
    assert len(problems) == 150
    assert sum(len(p.public_tests) + len(p.hidden_tests) for p in problems) == 1500
    assert sum(len(problem.public_tests) == 4 for problem in problems) == 146
    assert all(4 <= len(problem.public_tests) <= 5 and problem.hidden_tests for problem in problems)
    assert all(problem.solutions for problem in problems)
