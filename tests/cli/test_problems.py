import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from smalt.cli.problems import problems

LINES = [
    {
        "id": "add",
        "statement": "Add [bold]two[/bold] numbers.",
        "entry_point": "add",
        "starter_code": "def add(a, b):\n    pass",
        "preamble": "import math",
        "public_tests": [{"args": [1, 2], "expected": 3}],
        "hidden_tests": [{"code": "assert add(2, 2) == 4"}],
        "metadata": {"split": "dev"},
    },
    {
        "id": "echo",
        "statement": "Echo.",
        "hidden_tests": [{"stdin": "hi", "expected": "hi"}],
        "solutions": ["x"],
    },
    {"id": "echo2", "statement": "Echo.", "hidden_tests": [{"stdin": "ho", "expected": "ho"}]},
]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "p.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in LINES))
    return str(path)


def run(*arguments):
    return CliRunner().invoke(problems, arguments)


def test_show_marks_public_and_hidden_tests(file):
    result = run("show", file, "--id", "add")
    assert result.exit_code == 0
    for expected in (
        "Add [bold]two[/bold] numbers.",
        "def add(a, b):",
        "import math",
        "Entry point: add",
        "[public] test 1\nadd(1, 2) == 3",
        "[hidden] test 1\nassert add(2, 2) == 4",
    ):
        assert expected in result.output
    assert "Echo" not in result.output


def test_show_limit_and_split(file):
    result = run("show", file, "--limit", "2")
    assert "echo" in result.output
    assert "1 more problems" in result.output
    assert "Echo." not in run("show", file, "--split", "dev").output


def test_stats(file):
    result = run("stats", file)
    assert result.exit_code == 0
    rows = {
        cells[0].strip(): cells[1].strip()
        for line in result.output.splitlines()
        if len(cells := line.strip("│").split("│")) == 2
    }
    assert rows["problems"] == "3"
    assert rows["public tests"] == "1 (call 1)"
    assert rows["hidden tests"] == "3 (code 1, stdin 2)"
    assert rows["that repeat another's statement"] == "1"
    assert rows["with a reference solution"] == "1"
    assert rows["splits"] == "dev 1"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--id", "nope"), "no problem with id 'nope'"),
        (("--split", "nope"), "no problem of split 'nope'"),
        (("--format", "nope"), "format 'nope' is unknown"),
        (("--format", "mbpp"), "p.jsonl:1: "),
    ],
)
def test_errors_are_one_message_and_exit_code_2(file, arguments, expected):
    result = run("show", file, *arguments)
    assert result.exit_code == 2
    assert expected in result.stderr
    assert isinstance(result.exception, SystemExit)


def test_a_missing_file_is_a_message(tmp_path):
    result = run("stats", str(tmp_path / "absent"))
    assert result.exit_code == 2
    assert "No such file" in result.stderr


def test_import_is_light():
    heavy = "('torch', 'pydantic', 'rich')"
    code = f"import sys, smalt.cli.problems; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
