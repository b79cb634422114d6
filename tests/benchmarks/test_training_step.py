"""The benchmark of training steps: its cases share what they say, its ways agree, and a small run makes a page."""

import pytest
from click.testing import CliRunner

from benchmarks.training_step.__main__ import main
from benchmarks.training_step.ways import WAYS, step
from benchmarks.training_step.workload import Author, floor_of

AUTHOR = Author(640)
CASES = [AUTHOR.group(4, 12, 5), AUTHOR.murphy(2, 3, 9, 4), AUTHOR.cobalt(3, 3, 8, 4)]


def test_cases_have_the_tokens_they_should():
    group, murphy, cobalt = CASES
    # The last token of a completion is predicted, never read.
    assert (group.distinct, group.total, group.scored) == (12 + 4 * 4, 4 * 16, 20)
    assert len(murphy.rows) == 2 + 4 + 8
    assert murphy.distinct == 9 + 6 * (4 + 2) + 8 * 3
    assert len(cobalt.rows) == 9
    assert cobalt.distinct == 8 + 2 * (4 + 2) + 9 * 3


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_floor_has_as_many_tokens_and_shares_none(case):
    floor = floor_of(case, AUTHOR)
    assert floor.distinct == floor.total == pytest.approx(case.distinct, rel=0.15)
    assert floor.scored == pytest.approx(case.scored, rel=0.15)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_all_ways_have_one_loss_and_gradient(policy, case):
    found = {}
    for way in WAYS:
        if way == "cache" and not case.name.startswith("group"):
            continue
        policy.model.zero_grad()
        loss = step(policy.model, way, case, budget=60)
        norm = sum(p.grad.square().sum().item() for p in policy.model.parameters()) ** 0.5
        found[way] = (loss, norm)
    for way, result in found.items():
        assert result == pytest.approx(found["padded"], rel=1e-4), way


def test_a_small_run_makes_a_page(model_folder, tmp_path):
    options = ["--model", str(model_folder), "--cases", "group-12,cobalt", "--group", "2", "--completion", "3"]
    ran = CliRunner().invoke(main, [*options, "--prompt", "6", "--repeats", "1", "--out", str(tmp_path)])
    assert ran.exit_code == 0, ran.output
    page = (tmp_path / "training-step.md").read_text()
    assert page.count("| packed |") == page.count("| floor |") == 2


def test_an_unknown_case_is_refused(model_folder):
    ran = CliRunner().invoke(main, ["--model", str(model_folder), "--cases", "groups"])
    assert ran.exit_code == 2
    assert "group-LENGTH, murphy or cobalt" in ran.output
