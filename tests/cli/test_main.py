import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from smalt.cli.main import main
from smalt.problems.native import write_native


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_help_imports_no_heavy_library():
    code = (
        "import sys, smalt.cli.main; "
        "print([n for n in ('torch', 'transformers', 'pyarrow', 'matplotlib', 'pydantic') if n in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


@pytest.mark.parametrize("command", ["demo", "train", "eval", "compare", "sft", "problems", "models", "lab", "report"])
def test_every_command_has_help(command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert len(result.output.splitlines()) > 4


def test_eval_leaves_the_summary_others_read(model_folder, problem, tmp_path):
    write_native(tmp_path / "problems.jsonl", [problem])
    out = tmp_path / "eval"
    arguments = ["eval", "--model", model_folder, "--problems", tmp_path / "problems.jsonl", "--turns", 2]
    arguments += ["--samples", 2, "--temperature", 0, "--max-new-tokens", 8, "--set", "model.device=cpu", "--out", out]
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    summary = json.loads((out / "summary.json").read_text())
    assert len(summary["pass_at_1"]) == len(summary["ci95"]) == 2
    assert summary["problems"] == 1
    assert summary["samples_per_problem"] == 2
    assert summary["seconds"] > 0


def test_eval_goes_on_with_the_best_of_several(model_folder, problem, tmp_path):
    write_native(tmp_path / "problems.jsonl", [problem])
    arguments = ["eval", "--model", model_folder, "--problems", tmp_path / "problems.jsonl", "--turns", 2]
    arguments += ["--best-of", 3, "--max-new-tokens", 8, "--set", "model.device=cpu", "--out", tmp_path / "eval"]
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    summary = json.loads((tmp_path / "eval/summary.json").read_text())
    assert (summary["best_of"], summary["samples_per_problem"]) == (3, 1)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--model", "lab", "--problems", "lab", "--verifier", "runs/x/verifier"], "set evaluation.best_of"),
        (["--model", "/no/such/folder", "--problems", "lab"], "'/no/such/folder' does not exist"),
        (["--model", "lab", "--problems", "/no/such/file.jsonl"], "/no/such/file.jsonl"),
        (["--model", "lab", "--problems", "lab", "--split", "dev"], "train, validation, test"),
        (["--model", "lab", "--problems", "lab", "--set", "model.dtype=int4"], "model.dtype"),
        (["--model", "lab", "--problems", "lab", "--set", "nonsense"], "section.field=value"),
    ],
)
def test_bad_input_is_a_sentence(arguments, told, tmp_path):
    result = run("eval", *arguments, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert told in result.output
    assert "Traceback" not in result.output


def test_an_empty_problem_file_is_named(tmp_path):
    (tmp_path / "empty.jsonl").write_text("")
    result = run("eval", "--model", "lab", "--problems", tmp_path / "empty.jsonl", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "empty.jsonl" in result.output


def test_a_folder_of_other_settings_is_refused(tmp_path):
    (tmp_path / "config.yaml").write_text("seed: 1\n")
    result = run("eval", "--model", "lab", "--problems", "lab", "--out", tmp_path)
    assert result.exit_code == 2
    assert "other settings" in result.output
    assert (tmp_path / "config.yaml").read_text() == "seed: 1\n"


def test_a_recipe_that_does_not_fit_together_is_refused(tmp_path):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        "model: {path: lab}\nproblems: {train: {path: lab}, evaluation: {path: lab}}\n"
        "training: {sampling: {top_p: 0.9}}\n"
    )
    result = run("train", recipe, "--out", tmp_path / "run")
    assert result.exit_code == 2
    assert "top_p" in result.output
    assert not (tmp_path / "run").exists()


def test_lab_problems_are_a_native_file(tmp_path):
    result = run("lab", "problems", "--count", 5, "--out", tmp_path / "lab.jsonl")
    assert result.exit_code == 0
    assert run("problems", "show", tmp_path / "lab.jsonl").exit_code == 0
    assert len((tmp_path / "lab.jsonl").read_text().splitlines()) == 5
