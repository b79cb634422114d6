import gzip
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smalt.problems.native import read_native, write_native
from smalt.problems.problem import (
    CallTest,
    CheckerRule,
    CodeTest,
    ExactRule,
    Limits,
    Problem,
    StdinTest,
)
from smalt.problems.records import ProblemFileError

GOOD = {"id": "a", "statement": "Add.", "public_tests": [{"stdin": "1 2", "expected": "3"}]}


def write_lines(path, *lines):
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return path


def error_of(path, *lines):
    with pytest.raises(ProblemFileError) as caught:
        read_native(write_lines(path, *lines))
    return str(caught.value)


def test_reads_each_kind_of_test(tmp_path):
    line = {
        **GOOD,
        "entry_point": "f",
        "preamble": "import math",
        "limits": {"cpu_seconds": 1},
        "hidden_tests": [{"args": [1, [2]], "expected": {"$tuple": [3]}}, {"code": "assert f(1, [2])"}],
    }
    (problem,) = read_native(write_lines(tmp_path / "p.jsonl", "", line, "  "))
    assert problem.public_tests == (StdinTest(stdin="1 2", expected="3"),)
    assert problem.hidden_tests == (CallTest(args=(1, [2]), expected=(3,)), CodeTest(code="assert f(1, [2])"))
    assert problem.preamble == "import math"
    assert problem.limits == Limits(cpu_seconds=1)


def test_reads_gz(tmp_path):
    path = tmp_path / "p.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(GOOD).encode()))
    assert read_native(path)[0].id == "a"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"hidden_tests": [{"stdin": ""}]}, "hidden_tests[0].expected: missing; expected a string"),
        ({"hidden_tests": [{"args": [1]}]}, "hidden_tests[0].expected: missing; expected the value"),
        (
            {"hidden_tests": [{"args": 1, "expected": 1}]},
            "hidden_tests[0].args: is a number; expected a list",
        ),
        ({"hidden_tests": [{}]}, "hidden_tests[0]: has none of stdin, args, code; expected"),
        ({"hidden_tests": [3]}, "hidden_tests[0]: is a number; expected"),
        ({"hidden_tests": {}}, "hidden_tests: is an object; expected a list of tests"),
        ({"hidden_tests": [{"code": "x", "expected": 1}]}, "hidden_tests[0].expected: unknown beside 'code'"),
        ({"hidden_tests": [{"args": [], "expected": 1}]}, "tests with 'args' need 'entry_point'"),
        ({"public_tests": []}, "needs at least one test"),
        ({"statement": 3}, "statement: is a number; expected a string"),
        ({"statement": " "}, "statement: is empty"),
        ({"id": None}, "id: is null; expected a string"),
        ({"hidden_test": []}, "hidden_test: unknown field; known are id, statement, public_tests"),
        ({"compare": "fuzzy"}, "compare: Input should be 'tokens', 'exact' or 'value'"),
        ({"compare": {"rule": "checker", "program": "1"}}, "compare: program: must define check(input, output"),
        ({"limits": {"cpu": 1}}, "limits.cpu: Extra inputs are not permitted; known limits are cpu_seconds"),
        ({"limits": {"cpu_seconds": -1}}, "limits.cpu_seconds: Input should be greater than 0"),
        ({"limits": []}, "limits: is a list; expected an object"),
        ({"solutions": "x"}, "solutions: is a string; expected a list of strings"),
        ({"solutions": [1]}, "solutions[0]: is a number; expected a string"),
        ({"metadata": []}, "metadata: is a list; expected an object"),
        (
            {"entry_point": "f", "hidden_tests": [{"args": [{"$tupel": []}], "expected": 1}]},
            "hidden_tests[0].args: $tupel is no known tag",
        ),
    ],
)
def test_errors_name_place_field_and_fix(tmp_path, change, expected):
    path = tmp_path / "p.jsonl"
    message = error_of(path, {**GOOD, "id": "first"}, "", {**GOOD, **change})
    assert message.startswith(f"{path}:3: ")
    assert expected in message


def test_errors_of_whole_lines(tmp_path):
    path = tmp_path / "p.jsonl"
    assert error_of(path, "").endswith("is empty; expected one JSON object a line, a problem each")
    assert f"{path}:2: is not JSON: " in error_of(path, GOOD, '{"id": ')
    assert f"{path}:1: is a list; expected a JSON object" in error_of(path, "[1]")
    assert f"'a' repeats the id at {path}:1" in error_of(path, GOOD, GOOD)


def test_unreadable_files_are_problem_file_errors(tmp_path):
    with pytest.raises(ProblemFileError, match="No such file"):
        read_native(tmp_path / "absent.jsonl")
    (tmp_path / "p.jsonl").write_bytes(b"\xff\xfe{}")
    with pytest.raises(ProblemFileError, match="not UTF-8"):
        read_native(tmp_path / "p.jsonl")
    (tmp_path / "p.jsonl.gz").write_bytes(b"no gzip")
    with pytest.raises(ProblemFileError, match="cannot be read"):
        read_native(tmp_path / "p.jsonl.gz")


def test_deep_nesting_is_a_problem_file_error(tmp_path):
    deep = "[" * 100_000 + "]" * 100_000
    assert "p.jsonl:1" in error_of(tmp_path / "p.jsonl", deep)


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(alphabet=st.characters(codec="utf-8"))
)
hashable = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=5)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.sets(hashable, max_size=3)
        | st.dictionaries(hashable, inner, max_size=3)
        | st.dictionaries(st.sampled_from(["$tuple", "$x", "a"]), inner)
    ),
    max_leaves=8,
)
texts = st.text(alphabet=st.characters(codec="utf-8"), min_size=1).filter(str.strip)
tests = st.one_of(
    st.builds(StdinTest, stdin=st.just("1\n\u2028 2"), expected=texts),
    st.builds(CallTest, args=st.lists(values, max_size=3).map(tuple), expected=values),
    st.builds(CodeTest, code=texts),
)
problems = st.builds(
    Problem,
    id=texts,
    statement=texts,
    public_tests=st.lists(tests, min_size=1, max_size=3).map(tuple),
    hidden_tests=st.lists(tests, max_size=2).map(tuple),
    entry_point=st.just("f"),
    starter_code=st.none() | texts,
    preamble=st.just("") | texts,
    compare=st.sampled_from([None, "tokens", "exact", "value"]),
    limits=st.none() | st.builds(Limits, cpu_seconds=st.floats(0.1, 9), memory_mb=st.integers(1, 99)),
    solutions=st.lists(texts, max_size=2).map(tuple),
    metadata=st.dictionaries(texts, st.integers() | texts, max_size=2),
)


@pytest.mark.parametrize(
    "rule",
    [
        ExactRule(rule="exact"),
        CheckerRule(rule="checker", program="def check(input, output, expected):\n    return True\n"),
    ],
    ids=["exact", "checker"],
)
def test_a_rule_with_settings_comes_back(tmp_path, rule):
    written = Problem(id="a", statement="b", public_tests=(StdinTest(stdin="", expected="1"),), compare=rule)
    write_native(tmp_path / "p.jsonl", [written])
    assert read_native(tmp_path / "p.jsonl") == [written]


def is_ordered(test):
    # Sets have no order, so that their repr() may change.
    return isinstance(test, CallTest) and "{" not in repr(test.args)


@given(st.lists(problems, min_size=1, max_size=3, unique_by=lambda problem: problem.id), st.booleans())
@settings(deadline=None, max_examples=60)
def test_round_trip(tmp_path_factory, written, compressed):
    path = tmp_path_factory.mktemp("native") / ("p.jsonl.gz" if compressed else "p.jsonl")
    write_native(path, written)
    assert read_native(path) == written
    # Equality does not see 1 and 1.0 and True apart.
    shown = [repr(test.args) for problem in written for test in problem.public_tests if is_ordered(test)]
    back = [repr(test.args) for p in read_native(path) for test in p.public_tests if is_ordered(test)]
    assert shown == back


def test_nan_round_trips(tmp_path):
    call = CallTest(args=(math.nan,), expected=-math.inf)
    write_native(tmp_path / "p.jsonl", [Problem(id="a", statement="s", entry_point="f", public_tests=(call,))])
    (problem,) = read_native(tmp_path / "p.jsonl")
    assert math.isnan(problem.public_tests[0].args[0])
    assert problem.public_tests[0].expected == -math.inf


def test_a_failing_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "p.jsonl"
    good = Problem(id="a", statement="s", public_tests=(CodeTest(code="f()"),))
    write_native(path, [good])
    bad = Problem(id="b", statement="s", entry_point="f", public_tests=(CallTest(args=(b"x",), expected=1),))
    with pytest.raises(ProblemFileError, match=r"b: public_tests\[0\]: a bytes cannot be written"):
        write_native(path, [good, bad])
    with pytest.raises(ProblemFileError, match="'a' repeats"):
        write_native(path, [good, good])
    assert read_native(path) == [good]
    assert [entry.name for entry in tmp_path.iterdir()] == ["p.jsonl"]
