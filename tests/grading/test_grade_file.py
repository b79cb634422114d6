import fcntl
import json
import os

import pytest

from smalt.grading.grade_file import GradeFile
from smalt.grading.submissions import SubmissionError, SubmissionFile
from smalt.grading.verdicts import Grade, HiddenResult, PublicResult, Status
from smalt.problems.problem import CallTest
from tests.conftest import drop_first

PROBLEMS = [
    drop_first("drop-first", starter_code="def f(x):\n"),
    drop_first("mbpp/2"),
    drop_first("A"),
    drop_first("a"),
]


def submissions_in(folder, *lines, problems=PROBLEMS, name="s.jsonl"):
    path = folder / name
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return SubmissionFile(path, problems)


def grade_of(*statuses):
    public = PublicResult(CallTest(args=(), expected=None), statuses[0], "", cpu_seconds=0.25, wall_seconds=0.5)
    return Grade((public,), tuple(HiddenResult(status) for status in statuses[1:]), is_low_trust=True)


def programs(folder, count, problem="A"):
    return list(submissions_in(folder, *({"problem_id": problem, "program": str(place)} for place in range(count))))


def write(file, submissions, status=Status.PASSED, order=1):
    """Give every submission without a grade this one; return the programs that needed it, in the order written."""
    known = list(file.known(submissions))[::order]
    for submission, line, is_written in known:
        if not is_written:
            file.append(submission, line or submission.grade_line(grade_of(status, status)))
    return [submission.text for submission, line, _ in known if line is None]


def statuses_by_id(path):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [(line["program_id"], line["status"]) for line in lines]


def test_the_file_appears_when_it_is_complete_in_the_order_of_the_programs(tmp_path):
    path = tmp_path / "new" / "r.jsonl"
    with GradeFile(path, 3) as file:
        assert write(file, programs(tmp_path, 3), order=-1) == ["2", "1", "0"]
        assert not path.exists()
        file.complete()
    assert statuses_by_id(path) == [(0, "passed"), (1, "passed"), (2, "passed")]
    assert [item.name for item in path.parent.iterdir()] == ["r.jsonl"]


def test_finished_lines_stay_and_a_torn_one_goes(tmp_path):
    path = tmp_path / "r.jsonl"
    with GradeFile(path, 3) as file:
        write(file, programs(tmp_path, 3), order=-1)
    whole = file.partial.read_bytes()
    for cut in range(len(whole) + 1):
        file.partial.write_bytes(whole[:cut])
        with GradeFile(path, 3) as again:
            assert write(again, programs(tmp_path, 3), order=-1) == ["2", "1", "0"][whole[:cut].count(b"\n") :]
        assert again.partial.read_bytes() == whole


def test_a_kill_between_the_last_two_steps_does_no_harm(tmp_path):
    with GradeFile(tmp_path / "r.jsonl", 2) as file:
        write(file, programs(tmp_path, 2))
        partial = file.partial.read_bytes()
        file.complete()
    file.partial.write_bytes(partial)
    before = file.path.read_bytes()
    with GradeFile(tmp_path / "r.jsonl", 2) as file:
        assert write(file, programs(tmp_path, 2)) == []
        file.complete()
    assert file.path.read_bytes() == before
    assert not file.partial.exists()


def test_a_failure_at_the_end_loses_nothing(tmp_path, monkeypatch):
    def fail(descriptor):
        raise OSError(28, "No space left on device")

    with GradeFile(tmp_path / "r.jsonl", 1) as file:
        write(file, programs(tmp_path, 1))
        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="No space"):
            file.complete()
    assert sorted(item.name for item in tmp_path.iterdir()) == ["r.jsonl.partial", "s.jsonl"]
    with GradeFile(tmp_path / "r.jsonl", 1) as file:
        assert write(file, programs(tmp_path, 1)) == []


def test_a_complete_file_is_taken_over_but_for_infra_errors(tmp_path):
    path = tmp_path / "r.jsonl"
    with GradeFile(path, 2) as file:
        first = programs(tmp_path, 2)[0]
        file.append(first, first.grade_line(grade_of(Status.INFRA_ERROR, Status.PASSED)))
        assert write(file, programs(tmp_path, 2)) == ["1"]
        file.complete()
    assert statuses_by_id(path) == [(0, "infra_error"), (1, "passed")]
    with GradeFile(path, 4) as file:
        assert write(file, programs(tmp_path, 4)) == ["0", "2", "3"]
        file.complete()
    assert statuses_by_id(path) == [(place, "passed") for place in range(4)]


@pytest.mark.parametrize("name", ["r.jsonl", "r.jsonl.partial"])
def test_grades_of_something_else_are_refused_and_kept(tmp_path, name):
    with GradeFile(tmp_path / "r.jsonl", 2) as file:
        write(file, programs(tmp_path, 2))
        if name == "r.jsonl":
            file.complete()
    before = (tmp_path / name).read_bytes()
    swapped = list(submissions_in(tmp_path, *({"problem_id": "A", "program": text} for text in "10")))
    for others in (programs(tmp_path, 2, problem="a"), swapped, programs(tmp_path, 1)):
        told = f"{name}: holds a line that is not the grade of .*choose another --out"
        with pytest.raises(SubmissionError, match=told), GradeFile(tmp_path / "r.jsonl", len(others)) as file:
            write(file, others)
        assert (tmp_path / name).read_bytes() == before


@pytest.mark.parametrize("text", ['{"problem_id": "A", "program": "0"}\n', "notes\n", "torn"])
def test_a_file_that_holds_no_grades_is_refused_and_kept(tmp_path, text):
    path = tmp_path / "notes.txt"
    path.write_text(text)
    told = r"notes.txt(:1: is not JSON|: holds a line that is not the grade of)"
    with pytest.raises(SubmissionError, match=told), GradeFile(path, 1) as file:
        write(file, programs(tmp_path, 1))
    assert path.read_text() == text
    assert not path.with_name("notes.txt.partial").exists()


@pytest.mark.parametrize("text", ["5\t{}\n", "notes\n", "0\tnotes\n", "0\t{}\n", "0\n"])
def test_a_partial_file_that_holds_no_grades_is_refused_and_kept(tmp_path, text):
    partial = tmp_path / "r.jsonl.partial"
    partial.write_text(text)
    told = r"r.jsonl.partial: (is not JSON|holds a line)"
    with pytest.raises(SubmissionError, match=told), GradeFile(tmp_path / "r.jsonl", 1) as file:
        write(file, programs(tmp_path, 1))
    assert partial.read_text() == text


def test_a_second_writer_is_refused(tmp_path):
    with GradeFile(tmp_path / "r.jsonl", 1) as file:
        write(file, programs(tmp_path, 1))
        with pytest.raises(SubmissionError, match=r"r.jsonl.partial: another process is writing it"):
            GradeFile(tmp_path / "r.jsonl", 1).__enter__()
        file.complete()
    assert (tmp_path / "r.jsonl").exists()


def test_a_lock_on_a_file_that_was_just_removed_counts_for_nothing(tmp_path, monkeypatch):
    file = GradeFile(tmp_path / "r.jsonl", 1)
    monkeypatch.setattr(fcntl, "flock", lambda *arguments: file.partial.unlink())
    with pytest.raises(SubmissionError, match="another process"):
        file.__enter__()
