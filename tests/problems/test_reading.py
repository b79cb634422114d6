import json

import pytest

from smalt.problems.native import read_native, write_native
from smalt.problems.reading import detect_format, read_problems
from smalt.problems.records import ProblemFileError
from tests.problems.real_data import data_file

NATIVE = {"id": "a", "statement": "s", "public_tests": [{"code": "f()"}]}


def write(path, *records):
    path.write_text("\n".join(json.dumps(record) for record in records))
    return path


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (("id", "statement", "public_tests"), "native"),
        (("task_id", "prompt", "entry_point", "canonical_solution", "test", "example_test"), "humaneval"),
        (("task_id", "text", "code", "test_list"), "mbpp"),
        (("task_id", "prompt", "code", "test_list", "test_imports"), "mbpp"),
        (("name", "description", "tests"), "codecontests"),
        (("name", "description", "private_tests"), "codecontests"),
    ],
)
def test_detection_by_fields(tmp_path, fields, expected):
    assert detect_format(write(tmp_path / "p.jsonl", dict.fromkeys(fields))).name == expected


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("humanevalplus/HumanEvalPlus-OriginFmt.jsonl.gz", "evalplus"),
        ("mbppplus/MbppPlus-OriginFmt.jsonl.gz", "evalplus"),
        ("humaneval/HumanEval.jsonl.gz", "humaneval"),
    ],
)
def test_detection_of_real_files(file, expected):
    assert detect_format(data_file(file)).name == expected


def test_what_humaneval_plus_and_humaneval_share_is_told_apart_by_the_test(tmp_path):
    record = {"task_id": "H/0", "prompt": "def f(x):\n", "entry_point": "f", "canonical_solution": "    return x\n"}
    plain, listed = "def check(candidate):\n    ", "inputs = [[1], [2]]\n    results = [1, 2]\n"
    for test, expected in (("assert candidate(1) == 1", "humaneval"), (listed, "evalplus")):
        path = write(tmp_path / "p.jsonl", {**record, "test": plain + test})
        assert detect_format(path).name == expected


def test_an_unknown_format_lists_the_known_ones(tmp_path):
    with pytest.raises(ProblemFileError) as caught:
        read_problems(write(tmp_path / "p.jsonl", {"question": 1}))
    for expected in (
        "question",
        "native: id, statement",
        "mbpp: task_id, text or prompt",
        "codecontests: name",
    ):
        assert expected in str(caught.value)


def test_format_can_be_named(tmp_path):
    path = write(tmp_path / "p.jsonl", NATIVE)
    assert read_problems(path, format="native")[0].id == "a"
    with pytest.raises(ProblemFileError, match="prompt: missing"):
        read_problems(path, format="humaneval")
    with pytest.raises(ProblemFileError, match="'tako' is unknown; known are auto, native"):
        read_problems(path, format="tako")


def test_splits(tmp_path):
    other = {**NATIVE, "id": "b", "metadata": {"split": "dev"}}
    path = write(tmp_path / "p.jsonl", NATIVE, other)
    assert [problem.id for problem in read_problems(path, split="dev")] == ["b"]
    with pytest.raises(ProblemFileError, match="no problem of split 'test'; its splits are dev"):
        read_problems(path, split="test")


def test_json_array(tmp_path):
    path = tmp_path / "p.json"
    path.write_text(json.dumps([NATIVE, {**NATIVE, "id": "b"}], indent=1))
    assert [problem.id for problem in read_problems(path)] == ["a", "b"]
    path.write_text(json.dumps([NATIVE, {**NATIVE, "id": 3}]))
    with pytest.raises(ProblemFileError, match=r"p.json\[1\]: id: is a number"):
        read_problems(path)


@pytest.mark.parametrize("split", ["train", "validation", "test", "prompt"])
def test_real_mbpp_survives_conversion_to_native(tmp_path, split):
    problems = read_problems(data_file("mbpp/mbpp.jsonl"), split=split)
    write_native(tmp_path / "m.jsonl", problems)
    assert read_native(tmp_path / "m.jsonl") == problems
