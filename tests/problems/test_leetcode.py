import json
import math

import pytest

from smalt.problems.asserts import ASSERTED_EQUALITY
from smalt.problems.leetcode import read_leetcode
from smalt.problems.problem import CallTest, CodeTest
from smalt.problems.records import ProblemFileError
from tests.problems.real_data import data_file

ASSERTS = [
    "candidate(a = 1, b = [2]) == 3",
    "candidate(b = [5], a = 4) == -inf",
    "is_same_list(candidate(a = list_node([1]), b = []), list_node([1]))",
    "candidate(6, [True]) == 7",
]


def read(tmp_path, asserts=ASSERTS, **fields):
    record = {
        "task_id": "two-sum",
        "prompt": "from typing import *\n",
        "completion": "class Solution:\n    def add(self, a: int, b: List[int]) -> int:\n        return a + sum(b)\n",
        "entry_point": "Solution().add",
        "test": "def check(candidate):\n" + "".join(f"    assert {text}\n" for text in asserts),
        "query": "Add them.\n```python\nclass Solution:\n    def add(self, a: int, b: List[int]) -> int:\n```",
        "meta": {"difficulty": "Easy"},
        **fields,
    }
    path = tmp_path / "leetcode.jsonl"
    path.write_text(json.dumps(record))
    return read_leetcode(path)[0]


def test_asserts_become_calls_with_arguments_in_order(tmp_path):
    problem = read(tmp_path)
    assert problem.public_tests == (CallTest(args=(1, [2]), expected=3),)
    assert problem.hidden_tests[0] == CallTest(args=(4, [5]), expected=-math.inf)
    assert problem.hidden_tests[2] == CallTest(args=(6, [True]), expected=7)
    assert problem.entry_point == "add"
    assert problem.compare == ASSERTED_EQUALITY
    assert problem.preamble == "from typing import *\n"
    assert problem.metadata == {"source": "leetcode", "difficulty": "Easy"}


def test_asserts_on_lists_and_trees_stay_code(tmp_path):
    code = "candidate = Solution().add\nassert is_same_list(candidate(a=list_node([1]), b=[]), list_node([1]))"
    assert read(tmp_path).hidden_tests[1] == CodeTest(code=code)


def test_tests_that_the_statement_shows_are_public(tmp_path):
    statement = "Add.\n\nExample 1:\n\nInput: a = 6, b = [true]\nOutput: 7\n\nInput: none of the tests\n"
    problem = read(tmp_path, problem_description=statement, starter_code="class Solution: ...", difficulty="Hard")
    assert problem.public_tests == (CallTest(args=(6, [True]), expected=7),)
    assert len(problem.hidden_tests) == 3
    assert problem.starter_code == "class Solution: ..."
    assert problem.metadata["difficulty"] == "Hard"


def test_starter_code_comes_from_the_query(tmp_path):
    starter = "class Solution:\n    def add(self, a: int, b: List[int]) -> int:\n"
    assert read(tmp_path).starter_code == starter


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"entry_point": "Solution().sub"}, "entry_point: the completion defines no method 'sub'"),
        ({"completion": "class class"}, "completion: is not Python code"),
        ({"test": "def check(candidate"}, "test: is not Python code"),
        ({"test": "assert True"}, "test: expected one function"),
        ({"prompt": None}, "prompt: is null"),
    ],
)
def test_errors(tmp_path, fields, expected):
    with pytest.raises(ProblemFileError, match=r"leetcode\.jsonl:1: ") as caught:
        read(tmp_path, **fields)
    assert expected in str(caught.value)


def test_real_file():
    problems = read_leetcode(data_file("leetcodedataset/v0.2.0-train-every8th.jsonl.gz"))
    assert len(problems) == 237
    assert all(problem.starter_code for problem in problems)
