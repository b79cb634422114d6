"""What a step is said to cost."""

import pytest

from smalt.dialogue.chat import Prompt
from smalt.grading.extraction import Extraction
from smalt.policy.sampling import Completion
from smalt.policy.work import SamplingWork
from smalt.rollouts.tree import Node, Tree
from smalt.training.cost import sampling_tokens, sampling_work, time_shares, total_work
from tests.conftest import drop_first
from tests.scripted import SeededSampler


def tree_of_two_and_one_revision():
    problem, root = drop_first(), Prompt((1, 2, 3), (), (1, 2, 3))
    tree = Tree(problem, root)

    def node(prompt, ids, parent=None):
        made = Node(problem, prompt, Completion(ids, (0.0,) * len(ids), True), "", Extraction(None), None, parent)
        (parent or tree).children.append(made)
        return made

    first = node(root, (4, 5))
    node(root, (6,))
    node(Prompt((1, 2, 3, 4, 5, 9), (), (9,)), (7, 7), first)
    return tree


def test_tokens_that_samples_share_are_told_apart():
    tree = tree_of_two_and_one_revision()
    assert sampling_tokens([tree]) == {"sampling_tokens_total": 5 + 4 + 8, "sampling_tokens_distinct": 3 + 2 + 1 + 3}
    tree.kept = 1  # sampled in an earlier step
    assert sampling_tokens([tree])["sampling_tokens_total"] == 4 + 8
    assert sampling_tokens([]) == {"sampling_tokens_total": 0, "sampling_tokens_distinct": 0}


def test_what_a_sampler_has_done_is_told_once():
    sampler = SeededSampler(tokenizer=None)
    assert sampling_work(sampler) == {}
    sampler.work = SamplingWork(7, 5, 11, 2, 1)
    told = {
        "sampling_tokens_prefilled": 7,
        "sampling_tokens_remembered": 5,
        "sampling_histories_cut": 2,
        "sampling_rows_put_back": 1,
    }
    assert sampling_work(sampler) == told
    assert sampling_work(sampler) == dict.fromkeys(told, 0)


def test_shares_are_of_the_sum_of_the_stages():
    costs = time_shares({"sampling": 3.0, "grading": 0.0, "training": 1.0})
    assert costs["seconds_sampling"] == 3
    assert costs["share_sampling"] == pytest.approx(0.75)
    assert costs["share_grading"] == 0
    assert time_shares({"training": 0.0})["share_training"] == 0


def test_work_adds_up_count_by_count():
    assert total_work([{"a": 1.0, "b": 2.0}, {}, {"a": 3.0}]) == {"a": 4.0, "b": 2.0}
    assert total_work([]) == {}
