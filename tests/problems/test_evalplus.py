import json
import math

import pytest

from smalt.problems.asserts import ASSERTED_EQUALITY
from smalt.problems.evalplus import read_evalplus
from smalt.problems.problem import CallTest, CodeTest, Limits, ValueRule
from smalt.problems.records import ProblemFileError
from tests.problems.real_data import data_file

HELPERS = """
import numpy as np
from math import inf

def is_floats(x) -> bool:
    return isinstance(x, float)


def assertion(out, exp, atol):
    if atol == 0 and is_floats(exp):
        atol = 1e-6
    if out != exp and atol != 0:
        assert np.allclose(out, exp, rtol=1e-07, atol=atol)
    else:
        assert out == exp, f"out: {out}, exp: {exp}"

"""


def plus_test(inputs, results, loop="assertion(double(*inp), exp, 0)", helpers=HELPERS):
    return (
        f"{helpers}\ninputs = {inputs}\nresults = {results}\n"
        f"for i, (inp, exp) in enumerate(zip(inputs, results)):\n    {loop}\n"
    )


def mbpp_record(test):
    return {
        "task_id": 3,
        "prompt": "Double it.",
        "code": "def double(x):\n    return 2 * x\n",
        "test_list": ["assert double(1) == 2", "assert double(2) == 4"],
        "test_imports": [],
        "test": test,
    }


def humaneval_record(examples, inputs, results):
    lines = "".join(f"    {line}\n" for line in examples)
    loop = "    for i, (inp, exp) in enumerate(zip(inputs, results)):\n        assertion(candidate(*inp), exp, 0)\n"
    return {
        "task_id": "HumanEval/0",
        "prompt": f'def double(x):\n    """ Double it.\n{lines}    """\n',
        "entry_point": "double",
        "canonical_solution": "    return 2 * x\n",
        "test": f"{HELPERS}\ndef check(candidate):\n    inputs = {inputs}\n    results = {results}\n{loop}",
    }


def read(tmp_path, record):
    path = tmp_path / "plus.jsonl"
    path.write_text(json.dumps(record))
    return read_evalplus(path)[0]


def test_a_plain_loop_becomes_call_tests(tmp_path):
    problem = read(tmp_path, mbpp_record(plus_test("[[1], [2], [(3,)]]", "[2, 4, (3, 3)]")))
    assert problem.public_tests == (CallTest(args=(1,), expected=2),)
    assert problem.hidden_tests == (CallTest(args=(2,), expected=4), CallTest(args=((3,),), expected=(3, 3)))
    assert problem.compare == ASSERTED_EQUALITY
    assert (problem.id, problem.metadata["source"], problem.metadata["split"]) == ("mbpp/3", "evalplus", "prompt")


def test_the_loop_of_humaneval_stands_in_check(tmp_path):
    problem = read(tmp_path, humaneval_record([">>> double(1)", "2"], "[[1], [5]]", "[2, 10]"))
    assert problem.public_tests == (CallTest(args=(1,), expected=2),)
    assert problem.hidden_tests == (CallTest(args=(5,), expected=10),)


def test_examples_that_a_hidden_test_contradicts_are_dropped(tmp_path):
    problem = read(tmp_path, humaneval_record([">>> double(1)", "3", ">>> double(2)", "4"], "[[1]]", "[2]"))
    assert problem.public_tests == (CallTest(args=(2,), expected=4),)


def test_examples_of_numbers_and_lists_are_in_doubt(tmp_path):
    problem = read(tmp_path, humaneval_record([">>> double(1)", "2", ">>> double(2)", "[2, 4]"], "[[5]]", "[10]"))
    assert problem.public_tests == ()


def test_infinity_is_read(tmp_path):
    problem = read(tmp_path, mbpp_record(plus_test("[[inf]]", "[-inf]")))
    assert problem.hidden_tests == (CallTest(args=(math.inf,), expected=-math.inf),)


@pytest.mark.parametrize(
    ("results", "atol", "tolerance"),
    [("[2.0]", "0", 1e-6), ("[[2.0, 4.0]]", "0", 1e-6), ("[2]", "0.0001", 1e-4), ("[[2.0, 1]]", "0", None)],
)
def test_tolerances(tmp_path, results, atol, tolerance):
    loop = f"assertion(double(*inp), exp, {atol})"
    compare = read(tmp_path, mbpp_record(plus_test("[[1]]", results, loop))).compare
    if tolerance is None:
        assert compare == ASSERTED_EQUALITY
    else:
        assert compare == ValueRule(rule="value", relative_tolerance=1e-7, absolute_tolerance=tolerance)


@pytest.mark.parametrize(
    "test",
    [
        plus_test("[[1]]", "[2]", loop="assertion(double(*inp), ref_func(*inp), 0)"),
        plus_test("[[1]]", "[2]", helpers="def assertion(out, exp, atol):\n    assert set(out) == set(exp)\n"),
        plus_test("[[1]]", "[1 + 2j]"),
    ],
)
def test_any_other_test_stays_code(tmp_path, test):
    problem = read(tmp_path, mbpp_record(test))
    assert problem.hidden_tests == (CodeTest(code=test),)
    assert problem.limits.cpu_seconds > Limits().cpu_seconds


def test_a_comparison_that_nothing_asserts_is_asserted(tmp_path):
    helpers = "def assertion(out, exp, atol):\n    exact_match = exp == (out is not None)\n"
    [test] = read(tmp_path, mbpp_record(plus_test("[[1]]", "[True]", helpers=helpers))).hidden_tests
    exec(test.code, {"double": lambda x: 2 * x})
    with pytest.raises(AssertionError):
        exec(test.code, {"double": lambda x: None})


def test_a_check_that_stays_code_is_called(tmp_path):
    record = humaneval_record([], "[[1]]", "[2]")
    record["test"] = "def check(candidate):\n    assert candidate(1) == 2\n"
    [test] = read(tmp_path, record).hidden_tests
    assert test.code.endswith("check(double)\n")


def test_files_without_results_are_refused(tmp_path):
    record = mbpp_record("") | {"plus_input": [[1]]}
    with pytest.raises(ProblemFileError, match=r"plus\.jsonl:1: plus_input: .* take the release named OriginFmt"):
        read(tmp_path, record)


def test_code_that_does_not_parse_is_an_error(tmp_path):
    with pytest.raises(ProblemFileError, match=r"plus\.jsonl:1: test: is not Python code"):
        read(tmp_path, mbpp_record("for for"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "problems", "calls", "codes"),
    [
        ("humanevalplus/HumanEvalPlus-OriginFmt.jsonl.gz", 164, 157, 7),
        ("mbppplus/MbppPlus-OriginFmt.jsonl.gz", 378, 362, 16),
    ],
)
def test_real_files(name, problems, calls, codes):
    found = read_evalplus(data_file(name))
    kinds = [type(problem.hidden_tests[0]) for problem in found]
    assert (len(found), kinds.count(CallTest), kinds.count(CodeTest)) == (problems, calls, codes)
