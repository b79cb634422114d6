"""A whole run on a tiny model with the real sandbox: complete, resumable, and the same after kill -9."""

import io
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from smalt.assembly import claim_folder, make_chat
from smalt.files import read_json
from smalt.pipeline import Run, evaluate_model
from smalt.policy.loading import ModelSettings, load_policy
from smalt.problems.native import write_native
from smalt.problems.problem import CallTest
from smalt.reports.run_folder import read_run_folder
from smalt.rollouts.store import TrajectoryStore, read_contexts, write_contexts
from smalt.settings import DialogueSettings, load_evaluation, load_recipe
from smalt.yaml_settings import SettingsError
from tests.conftest import drop_first
from tests.scripted import RIGHT, WORDING

SHORT = {"temperature": 1.0, "max_new_tokens": 24}
STEPS = 6
TRAIN = "from smalt.cli.train import train; train()"


def problem_file(path, names):
    """Problems that differ in their tests only: every one wants the list without its first element."""
    problems = [
        drop_first(name, hidden_tests=(CallTest(args=([place, 4, 5],), expected=[4, 5]),))
        for place, name in enumerate(names)
    ]
    write_native(path, problems)
    return {"path": str(path)}


def write_recipe(folder, model) -> Path:
    """A recipe that has every stage, beside its problem files."""
    values = {
        "model": {"path": str(model), "device": "cpu"},
        "problems": {
            "train": problem_file(folder / "train.jsonl", "abcdef"),
            "validation": problem_file(folder / "validation.jsonl", "vw"),
            "evaluation": problem_file(folder / "evaluation.jsonl", "xyz"),
        },
        "dialogue": {"wording": WORDING.model_dump()},
        "grader": {"workers": 1},
        "warm_start": {"epochs": 0.5, "batch": 8},
        "collection": {"samples": 2, "turns": 2, "sampling": SHORT, "problems_per_shard": 2},
        "contexts": {"require_spread": False, "require_solved": False, "max_attempts": 2},
        "cobalt": {"group_size": 4},
        "training": {
            "max_steps": STEPS,
            "contexts_per_step": 3,
            "sampling": SHORT,
            "validation_sampling": SHORT,
            "optimiser": {"learning_rate": 1.0e-3, "groups_per_update": 3},
            "validate_every": 2,
            "checkpoint_every": 2,
        },
        "evaluation": {"samples": 2, "turns": 2, "sampling": SHORT, "problems_per_shard": 2},
    }
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump(values))
    return path


@pytest.fixture(scope="module")
def recipe(schooled_folder, tmp_path_factory) -> Path:
    return write_recipe(tmp_path_factory.mktemp("recipe"), schooled_folder)


def execute(recipe, folder, *overrides):
    """Run, and return what was printed."""
    out = Console(file=io.StringIO(), width=200)
    Run(load_recipe(recipe, overrides), folder, out).execute()
    return out.file.getvalue()


@pytest.fixture(scope="module")
def finished(recipe, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "undisturbed"
    said = execute(recipe, folder)
    (folder.parent / "said.txt").write_text(said)
    return folder


def metrics_of(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def contents(folder):
    """Modification times of all files."""
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_a_run_leaves_everything_that_it_promises(finished):
    for name in ("config.yaml", "contexts.parquet", "metrics.jsonl", "stages.json", "summary.json", "dialogues.json"):
        assert (finished / name).stat().st_size > 0, name
    for name in ("warm_start", "final", "checkpoints/step-000004", "checkpoints/step-000006"):
        assert (finished / name / "model.safetensors").exists(), name
        load_policy(ModelSettings(path=str(finished / name), device="cpu"))
    for name in ("before", "after"):
        assert (finished / "evaluation" / name / "summary.json").exists()
        assert TrajectoryStore(finished / "evaluation" / name / "trajectories").problem_ids() == set("xyz")
    assert len(list((finished / "trajectories").glob("part-*.parquet"))) == 3
    assert any((finished / "tensorboard").iterdir())
    assert "<html" in (finished / "report.html").read_text()
    assert not list(finished.rglob("*.tmp"))


def test_the_summary_has_the_fields_of_the_contract(finished):
    raw = read_json(finished / "summary.json")
    assert raw["method"] == "cobalt"
    assert raw["seed"] == 0
    assert raw["protocol"] == "each dialogue goes on to the last turn; temperature 1"
    summary = read_run_folder(finished).summary
    assert summary.training_turns == 2
    for evaluation in (summary.before, summary.after):
        assert len(evaluation.pass_at_1) == 2
        assert (evaluation.problems, evaluation.samples_per_problem) == (3, 2)
        assert evaluation.seconds > 0
    assert len(summary.paired_difference.difference) == 2
    stages = ["warm_start", "evaluate_before", "collect_trajectories", "contexts", "train", "evaluate_after"]
    assert set(stages) | {"collect_validation_trajectories"} == set(summary.stages)


def test_every_step_is_logged_and_some_train(finished):
    rows = metrics_of(finished)
    assert [row["step"] for row in rows] == list(range(STEPS))
    assert not all(row["is_skipped"] for row in rows)
    assert [row["step"] for row in rows if "validation_score" in row] == [1, 3, 5]
    assert not any(row["infra_errors"] for row in rows)
    start, end = (finished / name / "model.safetensors" for name in ("warm_start", "final"))
    assert start.read_bytes() != end.read_bytes()


def test_totals_begin_with_what_the_trajectories_cost(finished):
    first, stages = metrics_of(finished)[0], read_json(finished / "stages.json")
    collected = sum(len(u.completion_ids) for t in TrajectoryStore(finished / "trajectories").read() for u in t.turns)
    assert first["sampled_tokens_so_far"] == collected + first["sampled_tokens"]
    assert first["seconds_so_far"] > stages["collect_trajectories"]


def test_a_budget_may_leave_the_trajectories_out(finished, recipe, tmp_path):
    first = metrics_of(finished)[0]
    execute(recipe, tmp_path, "training.budget={sampled_tokens: 1, includes_collection: false}")
    [row] = metrics_of(tmp_path)
    assert row["sampled_tokens_so_far"] == row["sampled_tokens"] == first["sampled_tokens"]


def test_contexts_are_cut_from_the_trajectories(finished):
    contexts = read_contexts(finished / "contexts.parquet")
    stored = {(t.problem_id, t.sample) for t in TrajectoryStore(finished / "trajectories").read()}
    assert {context.problem_id for context in contexts} <= set("abcdef")
    assert {context.attempts for context in contexts} == {0, 1, 2}
    assert all((c.problem_id, c.sample) in stored for c in contexts if c.attempts)


def test_the_run_says_what_it_does(finished):
    said = (finished.parent / "said.txt").read_text()
    assert "contexts, " in said
    assert f"train {STEPS}/{STEPS} reward" in said
    assert "evaluate after 3/3" in said


def test_the_configuration_is_a_recipe_for_the_same_run(finished, recipe):
    assert load_recipe(finished / "config.yaml") == load_recipe(recipe)


def test_the_same_command_again_does_nothing_and_is_quick(finished, recipe):
    before = contents(finished)
    figures = read_json(finished / "summary.json")
    started = time.perf_counter()
    execute(recipe, finished)
    assert time.perf_counter() - started < 5
    assert read_json(finished / "summary.json") == figures
    rewritten = {name for name, changed in contents(finished).items() if before.get(name) != changed}
    assert rewritten <= {"config.yaml", "summary.json", "dialogues.json", "report.html"}


def test_other_settings_in_the_same_folder_are_refused_with_the_difference(finished, recipe):
    before = contents(finished)
    with pytest.raises(SettingsError) as caught:
        execute(recipe, finished, "training.optimiser.learning_rate=0.5", "seed=3")
    assert "-    learning_rate: 0.001\n+    learning_rate: 0.5" in str(caught.value)
    assert "-seed: 0\n+seed: 3" in str(caught.value)
    assert "another --out" in str(caught.value)
    assert contents(finished) == before


def test_a_folder_is_claimed_once(tmp_path, recipe):
    claim_folder(tmp_path / "new", load_recipe(recipe))
    claim_folder(tmp_path / "new", load_recipe(recipe))
    with pytest.raises(SettingsError, match="holds other settings"):
        claim_folder(tmp_path / "new", load_recipe(recipe, ["seed=1"]))


def test_a_folder_from_before_a_setting_existed_has_its_default(tmp_path, recipe):
    settings = load_recipe(recipe)
    claim_folder(tmp_path, settings)
    config = tmp_path / "config.yaml"
    whole = config.read_text()
    older = {name: section for name, section in yaml.safe_load(whole).items() if name != "sampler"}
    config.write_text(yaml.safe_dump(older))
    claim_folder(tmp_path, settings)
    assert config.read_text() == whole
    config.write_text(yaml.safe_dump(older))
    with pytest.raises(SettingsError, match="holds other settings"):
        claim_folder(tmp_path, load_recipe(recipe, ["sampler.batch_tokens=1234"]))


class StopError(Exception):
    pass


@pytest.mark.parametrize("stage", ["collect", "cut_contexts", "train"])
def test_a_run_stopped_between_stages_goes_on_to_the_same_end(finished, recipe, tmp_path, monkeypatch, stage):
    def stop(self, *args):
        raise StopError

    monkeypatch.setattr(Run, stage, stop)
    with pytest.raises(StopError):
        execute(recipe, tmp_path)
    monkeypatch.undo()
    execute(recipe, tmp_path)
    assert (tmp_path / "final/model.safetensors").read_bytes() == (finished / "final/model.safetensors").read_bytes()


def start(recipe, folder):
    command = [sys.executable, "-c", TRAIN, str(recipe), "--out", str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def kill_in_training_and_start_again(recipe, folder):
    log = folder / "metrics.jsonl"
    process = start(recipe, folder)
    deadline = time.monotonic() + 300
    while not (log.exists() and '{"step": 1,' in log.read_text()):
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not (folder / "final").exists()
    again = start(recipe, folder)
    said = again.communicate(timeout=60)[0]
    assert again.returncode == 0, said


def test_kill_9_during_training_and_the_same_command_again(finished, recipe, tmp_path):
    kill_in_training_and_start_again(recipe, tmp_path)
    assert (tmp_path / "final/model.safetensors").read_bytes() == (finished / "final/model.safetensors").read_bytes()
    assert [row["step"] for row in metrics_of(tmp_path)] == list(range(STEPS))
    figures, expected = (read_json(folder / "summary.json") for folder in (tmp_path, finished))
    assert figures["after"]["pass_at_1"] == expected["after"]["pass_at_1"]


def test_an_evaluation_alone_leaves_a_summary(finished, recipe, tmp_path):
    raw = {
        "seed": 0,
        "model": {"path": str(finished / "final"), "device": "cpu"},
        "problems": load_recipe(recipe).problems.evaluation.model_dump(),
        "evaluation": {"samples": 2, "turns": 2, "sampling": SHORT, "problems_per_shard": 2},
    }
    settings = load_evaluation(raw, recipe)
    summary = evaluate_model(settings, tmp_path, Console(file=io.StringIO()))
    assert summary["pass_at_1"] == read_json(finished / "evaluation/after/summary.json")["pass_at_1"]
    assert summary == read_json(tmp_path / "summary.json")


def test_training_and_validation_problems_of_the_same_id_are_told_apart(recipe, tmp_path, monkeypatch):
    import smalt.pipeline

    other = drop_first("a", hidden_tests=(CallTest(args=([8, 9],), expected=["not", "the", "same"]),))
    write_native(tmp_path / "validation.jsonl", [other])
    settings = load_recipe(recipe, ["warm_start=", f"problems.validation.path={tmp_path / 'validation.jsonl'}"])
    trained = {}

    class Loop:
        def __init__(self, problems, **others):
            trained.update(problems)

        def run(self, contexts, validation):
            return 0

    monkeypatch.setattr(smalt.pipeline, "TrainingLoop", Loop)
    (tmp_path / "run").mkdir()
    for name in ("contexts", "validation_contexts"):
        write_contexts(tmp_path / "run" / f"{name}.parquet", [])
    run = Run(settings, tmp_path / "run", Console(file=io.StringIO()))
    try:
        run.train(None)
    except ValueError as error:
        assert "'a'" in str(error)  # to refuse them is as good
    else:
        assert trained["a"] == run.training_problems[0]


def test_a_reply_is_read_without_whichever_token_ended_it(policy):
    """Chat models name several end tokens in their generation config."""
    other_end = policy.tokenizer.convert_tokens_to_ids("<|user|>")
    policy.model.generation_config.eos_token_id = [policy.tokenizer.eos_token_id, other_end]
    assert other_end in policy.stop_ids
    chat = make_chat(policy, DialogueSettings())
    ids = policy.tokenizer.encode(RIGHT, add_special_tokens=False)
    assert chat.reply_text([*ids, other_end]) == RIGHT


@pytest.mark.parametrize("method", ["murphy", "rlef", "mucode"])
def test_a_method_that_starts_at_problems_neither_collects_nor_cuts(recipe, tmp_path, method):
    chosen = [f"method={method}", f"{method}.group_size=2", f"{method}.turns=2", "training.validate_every=1"]
    chosen += ["evaluation.best_of=2"] if method == "mucode" else []
    execute(recipe, tmp_path, *chosen, "training.max_steps=2", "warm_start=")
    assert (tmp_path / "verifier").exists() is (method == "mucode")
    assert not (tmp_path / "trajectories").exists()
    assert not (tmp_path / "contexts.parquet").exists()
    rows = metrics_of(tmp_path)
    assert not all(row["is_skipped"] for row in rows)
    assert all("validation_score" in row for row in rows)
    assert ("value_error" in rows[0]) is (method == "rlef")
    summary = read_json(tmp_path / "summary.json")
    assert (summary["method"], summary["training_turns"]) == (method, 2)
    assert set(read_run_folder(tmp_path).summary.stages) == {"evaluate_before", "train", "evaluate_after"}
    assert b"turn_value" in (tmp_path / "checkpoints/step-000002/model.safetensors").read_bytes() or method != "rlef"
    assert b"turn_value" not in (tmp_path / "final/model.safetensors").read_bytes()
    before = contents(tmp_path / "final")
    execute(recipe, tmp_path, *chosen, "training.max_steps=2", "warm_start=")
    assert contents(tmp_path / "final") == before
