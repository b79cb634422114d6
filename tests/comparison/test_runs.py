"""A small comparison with the real sandbox: complete, equal in budget, resumable, extendable."""

import io
import json

import pytest
import yaml
from rich.console import Console

from smalt.comparison.plan import Wishes, load_plan
from smalt.comparison.results import curve_over_runs
from smalt.comparison.runs import Comparison
from smalt.pipeline import Run
from smalt.reports.comparison_file import ComparisonSummary
from smalt.yaml_settings import SettingsError
from tests.scripted import WORDING
from tests.test_pipeline import SHORT, problem_file

TOKENS = 600


@pytest.fixture(scope="module")
def file(schooled_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("comparison")
    base = {
        "model": {"path": str(schooled_folder), "device": "cpu"},
        "problems": {
            "train": problem_file(folder / "train.jsonl", "abcd"),
            "evaluation": problem_file(folder / "evaluation.jsonl", "xyz"),
        },
        "dialogue": {"wording": WORDING.model_dump()},
        "grader": {"workers": 1},
        "collection": {"samples": 1, "turns": 2, "sampling": SHORT},
        "contexts": {"require_spread": False, "require_solved": False, "max_attempts": 2},
        "training": {
            "contexts_per_step": 3,
            "sampling": SHORT,
            "optimiser": {"learning_rate": 1.0e-3, "groups_per_update": 3},
            "checkpoint_every": 1,
        },
        "evaluation": {"samples": 2, "turns": 2, "sampling": SHORT},
    }
    (folder / "base.yaml").write_text(yaml.safe_dump(base))
    methods = {
        "bandit": {"method": "cobalt", "cobalt": {"group_size": 4}},
        "bandit-of-2": {"method": "cobalt", "cobalt": {"group_size": 2}},
        "grpo": {"grpo": {"group_size": 4}},
    }
    path = folder / "comparison.yaml"
    raw = {"base": "base.yaml", "budget": {"sampled_tokens": TOKENS}, "seeds": 1, "methods": methods}
    path.write_text(yaml.safe_dump(raw))
    return path


def compare(file, folder, jobs=1, **wishes):
    """Execute a comparison; the figures and what was printed."""
    out = Console(file=io.StringIO(), width=200)
    summary = Comparison(load_plan(file, Wishes(**wishes)), folder, out).execute(jobs)
    return summary, out.file.getvalue()


@pytest.fixture(scope="module")
def finished(file, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "whole"
    return folder, *compare(file, folder)


def rows(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_every_method_is_there_and_the_report_too(finished):
    folder, summary, _ = finished
    assert [method.name for method in summary.methods] == ["bandit", "bandit-of-2", "grpo"]
    assert [(pair.first, pair.second) for pair in summary.pairs] == [
        ("bandit", "bandit-of-2"),
        ("bandit", "grpo"),
        ("bandit-of-2", "grpo"),
    ]
    assert ComparisonSummary.model_validate_json((folder / "comparison.json").read_text()) == summary
    assert "bandit-of-2" in (folder / "comparison.html").read_text()
    assert (folder / "comparison.md").read_text().startswith("# Comparison")
    assert not list(folder.rglob("checkpoints"))
    assert (folder / "grpo/seed-0/report.html").exists()


def test_the_budget_is_the_same_and_holds_the_trajectories(finished):
    folder, summary, _ = finished
    for method in summary.methods:
        steps = rows(folder / method.name / "seed-0")
        totals = [row["sampled_tokens_so_far"] for row in steps]
        assert totals[-1] >= TOKENS > totals[-2]
        assert method.cost.collection_tokens + method.cost.training_tokens == totals[-1]
        assert method.cost.steps == len(steps)
        assert method.cost.tokens_per_example == pytest.approx(method.cost.training_tokens / method.cost.examples)
    collected = {method.name: method.cost.collection_tokens for method in summary.methods}
    assert collected["bandit"] == collected["bandit-of-2"] > collected["grpo"] == 0


def test_what_is_common_is_done_once(finished):
    folder, _, said = finished
    assert said.count("evaluate before") == 1
    assert said.count("collect trajectories") == 1
    assert "taken over from another run: evaluate_before, collect_trajectories\n" in said
    first, second = (folder / name / "seed-0/trajectories/part-00000.parquet" for name in ("bandit", "bandit-of-2"))
    assert first.read_bytes() == second.read_bytes()


def test_the_same_command_again_runs_nothing(finished, file, monkeypatch):
    folder, summary, _ = finished
    monkeypatch.setattr(Run, "execute", lambda self: pytest.fail("it ran again"))
    again, _ = compare(file, folder)
    assert again == summary


def test_other_settings_in_the_folder_are_refused_before_any_work(finished, file):
    folder, _, _ = finished
    before = (folder / "comparison.json").read_bytes()
    with pytest.raises(SettingsError, match="holds other settings"):
        compare(file, folder, overrides=("training.optimiser.learning_rate=0.5",))
    assert (folder / "comparison.json").read_bytes() == before


def test_looking_at_a_comparison_changes_nothing_in_its_runs(finished, file):
    folder, _, _ = finished
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    Comparison(load_plan(file, Wishes()), folder, Console(file=io.StringIO()))
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


class KilledError(Exception):
    pass


def test_a_comparison_killed_in_the_middle_of_a_run_goes_on(finished, file, tmp_path, monkeypatch):
    _, summary, _ = finished
    evaluate = Run.evaluate

    def kill(self, name, model, grader):
        if name == "after" and self.settings.method == "grpo":
            raise KilledError
        evaluate(self, name, model, grader)

    monkeypatch.setattr(Run, "evaluate", kill)
    with pytest.raises(KilledError):
        compare(file, tmp_path, methods=("bandit", "grpo"))
    monkeypatch.undo()
    resumed, said = compare(file, tmp_path, methods=("bandit", "grpo"))
    assert "train" not in said
    assert said.count("evaluate after") == 1
    assert [m.evaluation for m in resumed.methods] == [summary.methods[0].evaluation, summary.methods[2].evaluation]


def test_seeds_may_be_added(finished, file):
    folder, summary, _ = finished
    wider, said = compare(file, folder, seeds=2, methods=("grpo",))
    assert said.count("evaluate after") == 1
    assert wider.seeds == 2
    assert (folder / "grpo/seed-1/summary.json").exists()
    assert wider.methods[0].evaluation.problems == summary.before.problems


def test_seeds_run_at_once_in_processes_of_their_own(file, tmp_path):
    plan = load_plan(file, Wishes(methods=("grpo",), seeds=2))
    alone = Comparison(plan, tmp_path / "alone", Console(file=io.StringIO())).execute()
    said = Console(file=io.StringIO(), width=200)
    together = Comparison(plan, tmp_path / "together", said).execute(jobs=2)
    assert together.seeds == 2
    assert [m.evaluation for m in together.methods] == [m.evaluation for m in alone.methods]
    assert "seed 1 is done" in said.file.getvalue()
    assert "grpo, seed 1" in (tmp_path / "together/seed-1.log").read_text()


def test_a_seed_that_fails_leaves_the_others_their_results(file, tmp_path):
    (tmp_path / "grpo/seed-0").mkdir(parents=True)
    (tmp_path / "grpo/seed-0/stages.json").write_text("{")
    with pytest.raises(Exception, match="property name"):
        compare(file, tmp_path, jobs=2, methods=("grpo",), seeds=2)
    assert (tmp_path / "grpo/seed-1/report.html").exists()


def test_curves_are_means_on_the_stretch_that_all_runs_cover():
    flat = [
        {"step": s, "sampled_tokens_so_far": 10 * (s + 1), "seconds_so_far": s, "solved_share": 0.2} for s in range(4)
    ]
    later = [row | {"sampled_tokens_so_far": row["sampled_tokens_so_far"] + 5, "solved_share": 0.6} for row in flat]
    curve = curve_over_runs([flat, later], "solved_share", "sampled_tokens")
    assert (curve.spent[0], curve.spent[-1]) == (15, 40)
    assert curve.mean == pytest.approx([0.4] * len(curve.spent))
    assert curve.low == pytest.approx([0.2] * len(curve.spent))
    assert curve.high == pytest.approx([0.6] * len(curve.spent))
    single = curve_over_runs([flat[:1]], "solved_share", "seconds")
    assert set(single.mean) == {0.2}
