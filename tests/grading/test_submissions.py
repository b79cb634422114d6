import gzip
import json
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smalt.grading.submissions import NO_PROGRAM, SubmissionError, SubmissionFile
from smalt.grading.verdicts import Grade, HiddenResult, PublicResult, Status
from smalt.problems.problem import CallTest
from smalt.problems.reading import read_problems
from tests.conftest import drop_first
from tests.problems.real_data import data_file

PROBLEMS = [
    drop_first("drop-first", starter_code="def f(x):\n"),
    drop_first("mbpp/2"),
    drop_first("A"),
    drop_first("a"),
]
REPLY = "So:\n```python\ndef f(x):\n    return x[1:]\n```\n```python\nprint(f([1]))\n```"


def submissions_in(folder, *lines, problems=PROBLEMS, name="s.jsonl"):
    path = folder / name
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return SubmissionFile(path, problems)


def one(folder, **fields):
    [submission] = submissions_in(folder, {"problem_id": "drop-first", **fields})
    return submission


def grade_of(*statuses):
    public = PublicResult(CallTest(args=(), expected=None), statuses[0], "", cpu_seconds=0.25, wall_seconds=0.5)
    return Grade((public,), tuple(HiddenResult(status) for status in statuses[1:]), is_low_trust=True)


@pytest.mark.parametrize(
    ("fields", "program"),
    [
        ({"program": "x = 1"}, "x = 1"),
        ({"program": ""}, ""),
        ({"program": "x", "response": None}, "x"),
        ({"response": REPLY}, "def f(x):\n    return x[1:]\n"),
        ({"response": "I do not know."}, None),
        ({"completion": "    return x[1:]\n"}, "def f(x):\n    return x[1:]\n"),
        ({"solution": "x = 1\n", "_identifier": "drop-first (line 1)", "is_solved": True}, "x = 1\n"),
    ],
)
def test_program_of_each_layout(tmp_path, fields, program):
    assert one(tmp_path, **fields).program() == program


def test_a_completion_of_a_problem_without_starter_code_is_the_program(tmp_path):
    [submission] = submissions_in(tmp_path, {"task_id": "A", "completion": "x = 1"})
    assert submission.program() == "x = 1"


def test_ids_count_per_problem_where_they_are_left_out(tmp_path):
    lines = [{"task_id": name, "solution": ""} for name in ("A", "drop-first", "A", "A")]
    lines.append({"problem_id": "A", "program_id": "mine", "program": ""})
    found = submissions_in(tmp_path, *lines)
    assert found.check() == 5
    assert [item.program_id for item in found] == [0, 0, 1, 2, "mine"]
    assert [item.place.rpartition(":")[2] for item in found] == list("12345")


def test_case_of_an_id_matters_only_between_problems(tmp_path):
    found = submissions_in(tmp_path, *({"task_id": name, "solution": ""} for name in ("Mbpp/2", "A", "a")))
    assert [item.problem.id for item in found] == ["mbpp/2", "A", "a"]


def test_blank_lines_byte_order_mark_and_compression(tmp_path):
    text = '\ufeff{"problem_id": "A", "program": "\u2028"}\r\n\n{"problem_id": "A", "program": "2"}'
    path = tmp_path / "s.jsonl.gz"
    path.write_bytes(gzip.compress(text.encode()))
    found = [(item.place, item.text) for item in SubmissionFile(path, PROBLEMS)]
    assert found == [(f"{path}:1", "\u2028"), (f"{path}:3", "2")]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"problem_id": "A", "pro', "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[1]", "is a list; expected a JSON object"),
        ({"program": ""}, "problem_id: missing; expected a problem's id, such as 'drop-first'"),
        ({"task_id": 2, "solution": ""}, "task_id: is a number; expected"),
        (
            {"problem_id": "drop-frist", "program": ""},
            "problem_id: 'drop-frist' is the id of no problem given; ids are",
        ),
        ({"problem_id": "A"}, "program: missing; expected one of the fields program, response, completion, solution"),
        ({"problem_id": "A", "program": "", "response": ""}, "program and response: only one can be graded"),
        ({"problem_id": "A", "program": ["x"]}, "program: is a list; expected a string"),
        ({"problem_id": "A", "program": "", "program_id": ""}, "program_id: is empty; expected a string or"),
        ({"problem_id": "A", "program": "", "program_id": 0.5}, "program_id: is a number; expected a string or"),
        ({"problem_id": "A", "program": "", "program_id": True}, "program_id: is a boolean; expected a string or"),
    ],
)
def test_an_error_names_file_line_field_and_fix(tmp_path, line, told):
    found = submissions_in(tmp_path, {"problem_id": "A", "program": ""}, line)
    with pytest.raises(SubmissionError) as caught:
        found.check()
    assert str(caught.value).startswith(f"{found.path}:2: ")
    assert told in str(caught.value)


def test_an_unknown_id_is_told_its_neighbours(tmp_path):
    with pytest.raises(SubmissionError, match=r"ids are like 'drop-first'$"):
        submissions_in(tmp_path, {"problem_id": "drop-frist", "program": ""}).check()


@pytest.mark.parametrize(("first", "second"), [("x", "x"), (7, "7"), (1, None)])
def test_a_repeated_id_names_both_lines(tmp_path, first, second):
    lines = [{"problem_id": "A", "program_id": name, "program": ""} for name in (first, second)]
    found = submissions_in(tmp_path, {"problem_id": "a", "program_id": first, "program": ""}, *lines)
    with pytest.raises(SubmissionError, match=r"s.jsonl:3: program_id: .* repeats the one at .*s.jsonl:2; give"):
        found.check()


def test_files_that_are_none(tmp_path):
    for text in ("", "\n \n"):
        (tmp_path / "s.jsonl").write_text(text)
        with pytest.raises(SubmissionError, match=r"s.jsonl: is empty; expected"):
            SubmissionFile(tmp_path / "s.jsonl", PROBLEMS).check()
    with pytest.raises(SubmissionError, match="absent: cannot be read: No such file"):
        SubmissionFile(tmp_path / "absent", PROBLEMS).check()
    with pytest.raises(SubmissionError, match="is no file"):
        SubmissionFile(tmp_path, PROBLEMS).check()
    (tmp_path / "s.jsonl").write_bytes(b'{"program": "\xff"}\n')
    with pytest.raises(SubmissionError, match=r"s.jsonl:1: is not UTF-8"):
        SubmissionFile(tmp_path / "s.jsonl", PROBLEMS).check()
    for data in (gzip.compress(b"{}" * 1000)[:-12], b"plain", gzip.compress(b"{}")[:12] + b"\xff" * 9):
        (tmp_path / "s.gz").write_bytes(data)
        with pytest.raises(SubmissionError, match=r"s.gz: cannot be read"):
            SubmissionFile(tmp_path / "s.gz", PROBLEMS).check()


@given(st.binary(max_size=80))
@settings(deadline=None)
def test_no_bytes_crash_the_reader(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    path.write_bytes(data)
    with pytest.raises(SubmissionError):
        SubmissionFile(path, PROBLEMS).check()


@given(st.lists(st.tuples(st.sampled_from(["A", "a"]), st.text(), st.sampled_from(["program", "response"]))))
@settings(deadline=None)
def test_any_text_comes_back(tmp_path_factory, entries):
    folder = tmp_path_factory.getbasetemp()
    lines = [{"problem_id": name, source: text} for name, text, source in entries] + [{"task_id": "a", "solution": ""}]
    found = list(submissions_in(folder, *lines, name="texts.jsonl"))
    assert [(item.problem.id, item.text, item.source) for item in found[:-1]] == entries


def test_a_digest_says_whether_a_grade_is_of_the_same_thing(tmp_path):
    def digest(problem, **fields):
        [submission] = submissions_in(tmp_path, {"problem_id": problem.id, **fields}, problems=[problem])
        return submission.digest

    first = digest(drop_first(), program="\ud800")
    assert digest(drop_first(statement="Other words.", solutions=()), program="\ud800") == first
    others = [digest(drop_first(), program=""), digest(drop_first(), response="\ud800")]
    others += [digest(drop_first(preamble="import math"), program="\ud800"), digest(drop_first("b"), program="\ud800")]
    others.append(digest(drop_first(hidden_tests=(CallTest(args=([4, 5],), expected=(5,)),)), program="\ud800"))
    others.append(digest(drop_first(compare={"rule": "value"}), program="\ud800"))
    assert len({first, *others}) == 7


def test_a_digest_is_the_same_in_every_process(tmp_path):
    code = (
        "import sys; from pathlib import Path; from tests.grading.test_submissions import submissions_in, drop_first;"
        "from smalt.problems.problem import CallTest;"
        "tests = (CallTest(args=({'a', 'b', 'c', 'd'},), expected={1: (2, float('inf'))}),);"
        "[one] = submissions_in(Path(sys.argv[1]), {'problem_id': 'p', 'program': ''},"
        " problems=[drop_first('p', public_tests=tests)]); print(one.digest)"
    )
    arguments = [sys.executable, "-c", code, str(tmp_path)]
    runs = [subprocess.run(arguments, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert runs[0] == runs[1]


@pytest.mark.parametrize(
    "name", ["humaneval/HumanEval.jsonl.gz", "mbpp/mbpp.jsonl", "codecontests_cf/problems.jsonl.gz"]
)
def test_problems_of_the_real_files_have_digests(tmp_path, name):
    problems = read_problems(data_file(name))
    lines = ({"problem_id": problem.id, "program": ""} for problem in problems)
    found = submissions_in(tmp_path, *lines, problems=problems)
    assert found.check() == len(problems)
    assert len({item.digest for item in found}) == len(problems)


@pytest.mark.parametrize(
    ("statuses", "status", "passed", "rate"),
    [
        ("passed passed", "passed", True, 1.0),
        ("passed timeout wrong_answer passed", "timeout", False, 0.5),
        ("wrong_answer passed", "wrong_answer", False, 0.5),
        ("wrong_answer infra_error", "infra_error", False, 0.0),
    ],
)
def test_a_line_tells_the_grade(tmp_path, statuses, status, passed, rate):
    submission = one(tmp_path, program="x", program_id="p")
    line = submission.grade_line(grade_of(*map(Status, statuses.split())))
    assert list(line.items()) == [
        ("problem_id", "drop-first"),
        ("program_id", "p"),
        ("passed", passed),
        ("pass_rate", rate),
        ("verdicts", statuses.split()),
        ("status", status),
        ("cpu_seconds", 0.25),
        ("wall_seconds", 0.5),
        ("is_low_trust", True),
        ("digest", submission.digest),
    ]


def test_no_program_is_no_verdict(tmp_path):
    line = one(tmp_path, response="no").grade_line(None)
    assert (line["status"], line["passed"], line["pass_rate"], line["verdicts"]) == (NO_PROGRAM, False, 0.0, [])
