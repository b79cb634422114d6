import json
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from smalt.cli.main import main
from smalt.grading.grader import Grader
from smalt.grading.verdicts import Status
from smalt.problems.native import write_native
from smalt.problems.problem import Problem, StdinTest
from tests.conftest import drop_first
from tests.problems.real_data import data_file
from tests.scripted import NO_CODE, RIGHT, grade_of

GOOD = "def f(x):\n    return x[1:]\n"
BAD = "def f(x):\n    return x[:-1]\n"
ECHO = Problem(id="echo", statement="Echo.", hidden_tests=(StdinTest(stdin="hi", expected="hi"),))


@pytest.fixture
def folder(tmp_path):
    write_native(tmp_path / "p.jsonl", [drop_first(starter_code="def f(x):\n"), ECHO])
    return tmp_path


def put(folder, *lines):
    (folder / "s.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def arguments(folder, workers=2):
    names = {"problems": "p.jsonl", "programs": "s.jsonl", "out": "r.jsonl"}
    return ["grade", "--workers", str(workers), *(f"--{name}={folder / file}" for name, file in names.items())]


def run(folder, workers=2):
    return CliRunner().invoke(main, arguments(folder, workers))


def grades(folder):
    return [json.loads(line) for line in (folder / "r.jsonl").read_text().splitlines()]


def untimed(lines):
    return [{name: value for name, value in line.items() if not name.endswith("_seconds")} for line in lines]


def rows(output):
    """Rows of the summary table: name to value."""
    cells = (line.strip("│").split("│") for line in output.splitlines())
    return {row[0].strip(): row[1].strip() for row in cells if len(row) == 2}


def test_programs_of_every_layout_are_graded_in_order(folder):
    put(
        folder,
        {"problem_id": "drop-first", "program": BAD},
        {"problem_id": "drop-first", "response": f"Sure.\n{RIGHT}\n", "program_id": "reply"},
        {"problem_id": "drop-first", "response": NO_CODE},
        {"task_id": "drop-first", "completion": "    return x[1:]\n"},
        {"task_id": "echo", "solution": "print(input())"},
        {"problem_id": "echo", "program": "print('\ud800' * (1 / 0)"},
    )
    result = run(folder)
    assert result.exit_code == 0, result.output
    lines = grades(folder)
    assert [(line["problem_id"], line["program_id"], line["status"]) for line in lines] == [
        ("drop-first", 0, "wrong_answer"),
        ("drop-first", "reply", "passed"),
        ("drop-first", 2, "no_program"),
        ("drop-first", 3, "passed"),
        ("echo", 0, "passed"),
        ("echo", 1, "compile_error"),
    ]
    assert lines[0]["verdicts"] == ["wrong_answer", "wrong_answer", "passed"]
    assert lines[0]["pass_rate"] == pytest.approx(1 / 3)
    assert [line["passed"] for line in lines] == [False, True, False, True, True, False]
    assert lines[1]["verdicts"] == ["passed"] * 3
    assert lines[1]["wall_seconds"] >= lines[1]["cpu_seconds"] >= 0
    shown = rows(result.stdout)
    assert shown["programs"] == "6"
    assert shown["passed"] == "3 (50.0 %)"
    assert (shown["wrong_answer"], shown["no_program"], shown["compile_error"]) == ("1", "1", "1")
    assert shown["Pass@1 over 2 problems"] == "50.0 %"
    assert float(shown["programs/s"]) > 0
    assert result.stdout.endswith(f"Grades: {folder / 'r.jsonl'}\n")
    assert "grade 6/6" in result.stderr


def test_no_pass_at_1_when_each_problem_has_one_program(folder):
    put(folder, {"problem_id": "echo", "program": "print(input())"})
    assert "Pass@1" not in run(folder).output


def test_the_command_given_again_has_nothing_to_do(folder, monkeypatch):
    put(folder, {"problem_id": "echo", "program": "print(input())"})
    run(folder)
    before = (folder / "r.jsonl").read_bytes()
    monkeypatch.delattr(Grader, "grade")
    result = run(folder)
    assert result.exit_code == 0, result.output
    assert rows(result.stdout)["graded in an earlier run"] == "1"
    assert (folder / "r.jsonl").read_bytes() == before


def test_infra_errors_have_a_status_and_are_graded_again(folder, monkeypatch):
    def fail(grader, problem, program):
        return grade_of(problem, [Status.PASSED, Status.INFRA_ERROR, Status.PASSED], ["?"])

    put(folder, *({"problem_id": "drop-first", "program": program} for program in (GOOD, BAD)))
    with monkeypatch.context() as patch:
        patch.setattr(Grader, "grade", fail)
        result = run(folder)
    assert result.exit_code == 3
    assert "the same command grades those again" in result.stderr
    assert [line["status"] for line in grades(folder)] == ["infra_error"] * 2
    assert run(folder).exit_code == 0
    assert [line["status"] for line in grades(folder)] == ["passed", "wrong_answer"]


def test_a_test_that_cannot_be_run_is_named_and_what_was_graded_stays(folder, monkeypatch):
    def refuse(grader, problem, program):
        if program == BAD:
            raise ValueError("call arguments must be plain data")
        return grade_of(problem, [Status.PASSED] * 3, ["?"])

    monkeypatch.setattr(Grader, "grade", refuse)
    put(folder, *({"problem_id": "drop-first", "program": program} for program in (GOOD, BAD, GOOD)))
    result = run(folder)
    assert result.exit_code == 1
    assert "s.jsonl:2: problem 'drop-first': call arguments must be plain data" in result.stderr
    assert '"passed"' in (folder / "r.jsonl.partial").read_text()


def test_programs_in_flight_are_bounded_and_a_slow_one_keeps_the_order(folder, monkeypatch):
    from smalt.grading.submissions import SubmissionFile

    read = finished = most = 0
    whole = SubmissionFile.__iter__

    def counted(self):
        nonlocal read
        read = 0
        for submission in whole(self):
            read += 1
            yield submission

    def judge(grader, problem, program):
        nonlocal finished, most
        most = max(most, read - finished)
        time.sleep(0.1 if program == "0" else 0)
        finished += 1
        return grade_of(problem, [Status.PASSED] * 3, ["?"])

    monkeypatch.setattr(SubmissionFile, "__iter__", counted)
    monkeypatch.setattr(Grader, "grade", judge)
    put(folder, *({"problem_id": "drop-first", "program": str(number)} for number in range(300)))
    assert run(folder, workers=2).exit_code == 0
    assert most <= 2 * 8 + 1
    assert [line["program_id"] for line in grades(folder)] == list(range(300))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ({"problem_id": "nope", "program": ""}, "s.jsonl:2: problem_id: 'nope'"),
        ({"problem_id": "echo", "program": "", "response": ""}, "s.jsonl:2: program and response: only one"),
        ({"problem_id": "echo"}, "s.jsonl:2: program: missing"),
        ([], "s.jsonl:2: is a list"),
        ({"problem_id": "echo", "program": "", "program_id": 0}, "s.jsonl:2: program_id: 0 of problem 'echo' repeats"),
    ],
)
def test_bad_input_is_told_before_anything_runs(folder, line, told, monkeypatch):
    monkeypatch.delattr(Grader, "grade")
    put(folder, {"problem_id": "echo", "program": ""}, line)
    result = run(folder)
    assert result.exit_code == 1
    assert told in result.stderr
    assert "Traceback" not in result.output
    assert sorted(item.name for item in folder.iterdir()) == ["p.jsonl", "s.jsonl"]


@pytest.mark.parametrize(("file", "told"), [("p.jsonl", "cannot be read"), ("s.jsonl", "No such file")])
def test_a_missing_file_is_bad_input(folder, file, told):
    put(folder, {"problem_id": "echo", "program": ""})
    (folder / file).unlink()
    result = run(folder)
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"{folder / file}: " in result.stderr
    assert told in result.stderr


def test_no_input_file_is_ever_written_over(folder):
    put(folder, {"problem_id": "echo", "program": ""})
    before = (folder / "s.jsonl").read_bytes()
    result = CliRunner().invoke(main, [*arguments(folder), "--out", str(folder / "s.jsonl")])
    assert result.exit_code == 1
    assert "choose another --out" in result.stderr
    assert (folder / "s.jsonl").read_bytes() == before


def test_wrong_options_are_click_s(folder):
    assert CliRunner().invoke(main, ["grade"]).exit_code == 2
    assert run(folder, workers=0).exit_code == 2


def test_help_names_the_exit_statuses():
    result = CliRunner().invoke(main, ["grade", "--help"])
    assert result.exit_code == 0
    assert "3    the grader itself failed" in result.output


def start(folder):
    command = [sys.executable, "-m", "smalt", *arguments(folder)]

    def heed_interrupts():
        # A shell starts what it runs in the background with interrupts ignored, and children inherit that.
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed_interrupts
    )


def wait_for_lines(path, count):
    end = time.monotonic() + 60
    while not path.exists() or path.read_bytes().count(b"\n") < count:
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT])
def test_a_stopped_run_goes_on_where_it_was(folder, stop):
    slow = "import time\ntime.sleep(0.1)\n"
    put(folder, *({"problem_id": "drop-first", "program": f"{slow}{(GOOD, BAD)[n % 2]}# {n}\n"} for n in range(40)))
    process = start(folder)
    partial = folder / "r.jsonl.partial"
    wait_for_lines(partial, 5)
    process.send_signal(stop)
    _, told = process.communicate(timeout=60)
    assert process.returncode == (-stop if stop is signal.SIGKILL else 130)
    assert ("the same command goes on" in told) == (stop is signal.SIGINT)
    assert not (folder / "r.jsonl").exists()
    kept = dict(line.split("\t") for line in partial.read_text().splitlines())
    assert 5 <= len(kept) < 40
    with partial.open("a") as file:
        file.write('39\t{"problem_id": "dr')
    result = run(folder)
    assert result.exit_code == 0, result.output
    assert rows(result.stdout)["graded in an earlier run"] == str(len(kept))
    resumed = grades(folder)
    lines = (folder / "r.jsonl").read_text().splitlines()
    assert {number: lines[int(number)] for number in kept} == kept
    assert not partial.exists()
    (folder / "r.jsonl").unlink()
    run(folder)
    assert untimed(grades(folder)) == untimed(resumed)


def test_humaneval_samples_are_read_as_they_are(tmp_path):
    import gzip

    problems = data_file("humaneval/HumanEval.jsonl.gz")
    with gzip.open(problems, "rt") as file:
        records = [json.loads(line) for line in file][:40:4]
    results = []
    for layout in ("completion", "solution"):
        text = {"completion": "{canonical_solution}", "solution": "{prompt}{canonical_solution}"}[layout]
        put(tmp_path, *({"task_id": item["task_id"], layout: text.format(**item)} for item in records))
        assert CliRunner().invoke(main, [*arguments(tmp_path), "--problems", str(problems)]).exit_code == 0
        results.append([(line["problem_id"], line["status"]) for line in grades(tmp_path)])
        (tmp_path / "r.jsonl").unlink()
    assert results[0] == results[1] == [(item["task_id"], "passed") for item in records]
