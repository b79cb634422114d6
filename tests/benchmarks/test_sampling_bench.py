import json
import sys
from random import Random
from statistics import mean

import pytest
from click.testing import CliRunner

from benchmarks.sampling.__main__ import main
from benchmarks.sampling.contenders import generate, greedy_agreement, smalt
from benchmarks.sampling.measuring import Comparison, Reading
from benchmarks.sampling.vllm_peer import drawn_length
from benchmarks.sampling.workload import END, Workload, end_with_probability, load_model

LOAD = Workload("small", 3, 10, 40, 2, mean_tokens=5, max_new_tokens=30, rows=30, feedback_tokens=3)


@pytest.fixture(scope="module")
def policy():
    return load_model(None, "cpu", "float32", is_small=True)


@pytest.mark.parametrize("contender", [smalt, generate])
def test_lengths_are_geometric_whoever_samples(policy, contender):
    hook = end_with_probability(policy.model, 1 / LOAD.mean_tokens)
    first, second = contender(policy, LOAD, 0)
    hook.remove()
    assert [len(group) for group in first] == [40] * 3
    assert [len(group) for group in second] == [1] * 120
    lengths = [len(ids) for turn in (first, second) for group in turn for ids in group]
    assert all((ids[-1] == END) != (len(ids) == 30 and END not in ids) for group in first for ids in group)
    # Of 240 lengths of standard deviation 4.5 the mean is off by 1.1 once in ten thousand.
    assert mean(lengths) == pytest.approx(5, abs=1.1)
    assert sum(length == 1 for length in lengths) / 240 == pytest.approx(0.2, abs=0.1)


def test_the_engine_is_asked_for_lengths_of_the_same_distribution():
    random = Random(0)
    lengths = [drawn_length(random, LOAD) for _ in range(4000)]
    assert mean(lengths) == pytest.approx(5, abs=0.3)
    assert lengths.count(1) / 4000 == pytest.approx(0.2, abs=0.03)
    assert max(lengths) == 30


def test_vllm_takes_part_where_an_interpreter_is_given(tmp_path):
    result = CliRunner().invoke(main, ["--smoke", "--rounds", "1", "--vllm", sys.executable])
    assert result.exit_code == 1
    assert "vllm_host.py ended" in str(result.exception)


def test_the_hook_leaves_no_trace(policy):
    end_with_probability(policy.model, 0.999).remove()
    same, asked = greedy_agreement(policy, LOAD)
    assert same == asked > 0


def test_ratios_are_of_throughput_round_by_round():
    ours = [Reading(1.0, 100, 10), Reading(2.0, 220, 10), Reading(9.0, 90, 10)]
    theirs = [Reading(2.0, 100, 10), Reading(4.0, 200, 10), Reading(9.0, 30, 10)]
    comparison = Comparison(LOAD, {"smalt": ours, "generate": theirs})
    assert comparison.ratio("smalt", "generate") == pytest.approx(2.2)
    assert comparison.throughput("generate") == 50


def test_the_command_writes_a_page_and_all_numbers(tmp_path):
    result = CliRunner().invoke(main, ["--smoke", "--rounds", "1", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    page = (tmp_path / "sampling-speed.md").read_text()
    assert "against generate" in page
    assert "transformers" in page
    numbers = json.loads((tmp_path / "sampling-speed.json").read_text())
    assert [len(found["readings"]["smalt"]) for found in numbers["comparisons"]] == [1, 1]
