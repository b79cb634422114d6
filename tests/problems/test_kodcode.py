import json

import pytest

from smalt.problems.kodcode import read_kodcode
from smalt.problems.problem import CallTest, CodeTest
from smalt.problems.reading import detect_format, read_problems
from smalt.problems.records import ProblemFileError
from tests.problems.real_data import data_file

TESTS = """\
import pytest
import random
from solution import add

LIMIT = 3

def test_small():
    assert add([1], 2) == [3]
    assert add([], 2) == []
    assert add([1], 2) == [3]

def test_random():
    numbers = [random.randint(0, LIMIT)]
    assert add(numbers, 1) == [numbers[0] + 1]

def test_raises():
    with pytest.raises(TypeError):
        add(None, 1)
"""


def record(**fields):
    return {
        "question_id": "Prefill_1_I",
        "question": "Add to each.",
        "solution": "def add(x, n):\n    return [i + n for i in x]\n",
        "test_code": TESTS,
        "test_info": [{"function_name": "add", "function_declaration": "def add(x, n):"}],
        "subset": "Prefill",
        "gpt_difficulty": "easy",
        **fields,
    }


def read(tmp_path, **fields):
    path = tmp_path / "kodcode.json"
    path.write_text(json.dumps([record(**fields)]))
    return read_kodcode(path)[0]


def test_plain_asserts_become_calls_and_the_rest_stays_code(tmp_path):
    problem = read(tmp_path)
    assert problem.id == "kodcode/Prefill_1_I"
    assert problem.public_tests == (CallTest(args=([1], 2), expected=[3]), CallTest(args=([], 2), expected=[]))
    assert [type(test) for test in problem.hidden_tests] == [CodeTest, CodeTest]
    assert problem.entry_point == "add"
    assert problem.metadata == {"source": "kodcode", "subset": "Prefill", "difficulty": "easy"}


def test_code_brings_what_it_needs_and_nothing_of_the_solution(tmp_path):
    drawn, raising = (test.code for test in read(tmp_path).hidden_tests)
    assert drawn.startswith("import random\n\nLIMIT = 3\n\ndef test_random():")
    assert drawn.endswith("\n\ntest_random()")
    assert "pytest" not in drawn
    assert raising.startswith("import pytest\n")
    assert "from solution" not in drawn + raising


def test_the_field_of_the_hub_is_known_too(tmp_path):
    fields = record()
    fields["test"] = fields.pop("test_code")
    path = tmp_path / "hub.jsonl"
    path.write_text(json.dumps(fields))
    assert read_problems(path) == [read(tmp_path)]


def test_the_declaration_is_part_of_the_statement(tmp_path):
    assert read(tmp_path).statement == "Add to each.\n\nDeclared as:\ndef add(x, n):"


def test_without_information_the_import_names_the_function(tmp_path):
    problem = read(tmp_path, test_info=None)
    assert (problem.entry_point, problem.statement) == ("add", "Add to each.")
    several = read(tmp_path, test_info=None, test_code=TESTS.replace("import add", "import add, Node"))
    assert several.entry_point is None
    assert all(isinstance(test, CodeTest) for test in (*several.public_tests, *several.hidden_tests))


def test_without_an_import_the_call_names_it(tmp_path):
    test = "def test_add():\n    assert add([1], 2) == [3]\n    n = 1"
    runs = "test_add()\nif __name__ == '__main__':\n    test_add()\n"
    problem = read(tmp_path, test_info=None, test_code=f"{test}\n\n{runs}")
    assert problem.entry_point == "add"
    assert problem.public_tests[0].code == f"{test}\n\ntest_add()"


def test_a_class_is_no_entry_point(tmp_path):
    queue = "class Queue:\n    def size(self):\n        return 0\n"
    tests = "from solution import Queue\n\ndef test_size():\n    assert Queue().size() == 0\n"
    problem = read(tmp_path, test_info=None, solution=queue, test_code=tests)
    assert problem.entry_point is None


def test_a_decorated_helper_keeps_its_decorator(tmp_path):
    helper = "import functools\n\n@functools.cache\ndef three():\n    return 3\n\n"
    test = "def test_three():\n    assert add([1], 2) == [three()]\n"
    assert "@functools.cache\ndef three()" in read(tmp_path, test_code=helper + test).public_tests[0].code


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"test_code": "def broken("}, "test_code: is not Python"),
        ({"test_code": "import random\n"}, "test_code: has no test"),
        ({"test_code": "def test_a(tmp_path):\n    pass\n"}, "test_a wants fixtures"),
        ({"test_info": "add"}, "test_info: expected a list"),
        ({"question": None}, "question: is null"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, fields, message):
    with pytest.raises(ProblemFileError, match=message):
        read(tmp_path, **fields)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("KodCode_algorithm_100_1741212598.json", 31),
        ("KodCode_leetcode_100_1741214688.json", 29),
        ("KodCode_prefill_200_1741214325.json", 172),
    ],
)
def test_the_demo_files_are_read_as_a_whole(name, count):
    path = data_file(f"kodcode_demo/{name}")
    assert detect_format(path).name == "kodcode"
    problems = read_problems(path)
    assert len(problems) == count
    assert all(problem.public_tests and problem.solutions for problem in problems)
