import base64
import json
import os
import pickle
import zlib

import pytest

from smalt.problems.livecodebench import read_livecodebench
from smalt.problems.problem import CallTest, StdinTest
from smalt.problems.records import ProblemFileError
from tests.problems.real_data import data_file

STDIN = [{"input": "1\n", "output": "2\n", "testtype": "stdin"}]
FUNCTIONAL = [{"input": '[1, 2]\n"a"', "output": "true", "testtype": "functional"}]


def packed(value):
    return base64.b64encode(zlib.compress(pickle.dumps(value))).decode()


def read(tmp_path, **fields):
    path = tmp_path / "lcb.jsonl"
    record = {"question_id": "1_A", "question_content": "Do.", "public_test_cases": json.dumps(STDIN), **fields}
    path.write_text(json.dumps(record))
    return read_livecodebench(path)[0]


def test_programs(tmp_path):
    problem = read(tmp_path, private_test_cases=json.dumps(STDIN * 2), starter_code="", contest_date="2023-08-21")
    assert problem.public_tests == (StdinTest(stdin="1\n", expected="2\n"),)
    assert len(problem.hidden_tests) == 2
    assert problem.entry_point is None
    assert problem.metadata == {"source": "livecodebench", "contest_date": "2023-08-21"}


def test_functions(tmp_path):
    problem = read(
        tmp_path,
        public_test_cases=json.dumps(FUNCTIONAL),
        metadata=json.dumps({"func_name": "f"}),
        starter_code="class Solution:\n    def f(self, a: List[int], b: str) -> bool:\n        ",
    )
    assert problem.public_tests == (CallTest(args=([1, 2], "a"), expected=True),)
    assert problem.entry_point == "f"
    assert "typing" in problem.preamble


def test_packed_private_tests(tmp_path):
    problem = read(tmp_path, private_test_cases=packed(json.dumps(STDIN)))
    assert problem.hidden_tests == (StdinTest(stdin="1\n", expected="2\n"),)


class Hostile:
    def __init__(self, place):
        self.place = place

    def __reduce__(self):
        return os.mkdir, (self.place,)


def test_a_pickle_that_would_run_code_is_refused(tmp_path):
    place = tmp_path / "made"
    with pytest.raises(ProblemFileError, match=r"private_test_cases: cannot be unpacked \(it names posix.mkdir\)"):
        read(tmp_path, private_test_cases=packed(Hostile(str(place))))
    assert not place.exists()


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"public_test_cases": "[3]"}, "public_test_cases[0]: is a number; expected an object"),
        ({"public_test_cases": "["}, "public_test_cases: is not JSON"),
        ({"public_test_cases": json.dumps(FUNCTIONAL)}, "metadata: names no func_name"),
        ({"private_test_cases": "%%%"}, "private_test_cases: cannot be unpacked"),
        ({"private_test_cases": packed(3)}, "private_test_cases: holds int; expected a JSON text"),
        ({"question_content": None}, "question_content: is null"),
    ],
)
def test_errors(tmp_path, fields, expected):
    with pytest.raises(ProblemFileError, match=r"lcb\.jsonl:1: ") as caught:
        read(tmp_path, **fields)
    assert expected in str(caught.value)


def test_real_tests(tmp_path):
    path = tmp_path / "lcb.jsonl"
    rows = [json.loads(line) for line in data_file("livecodebench_o1/public_tests_400.jsonl").open()]
    path.write_text("".join(json.dumps({**row, "question_content": "Do."}) + "\n" for row in rows))
    problems = read_livecodebench(path)
    assert sum(len(problem.public_tests) for problem in problems) == 1043
    assert sum(problem.entry_point is not None for problem in problems) == 181
