"""Collecting into a store: complete, resumable at any moment, exactly the same after a kill."""

import pytest

from smalt.policy.sampling import SamplingSettings
from smalt.rollouts.collection import CollectionSettings, collect, trajectories_of
from smalt.rollouts.growth import Shape, stop_at_public_pass
from smalt.rollouts.store import TrajectoryStore
from tests.conftest import drop_first
from tests.scripted import NO_CODE, RIGHT, WRONG, SeededSampler, TrustedGrader, growth_with, scripted_growth

PROBLEMS = [drop_first(f"p{number}") for number in range(7)]
SETTINGS = CollectionSettings(samples=3, turns=2, problems_per_shard=2)


class KilledError(Exception):
    pass


class GraderUntil:
    """Works for some calls, then the machine goes down."""

    def __init__(self, calls):
        self.calls = calls

    def grade_many(self, pairs):
        if self.calls == 0:
            raise KilledError
        self.calls -= 1
        return TrustedGrader().grade_many(pairs)


def run(chat, folder, problems=PROBLEMS, settings=SETTINGS, seed=0, grader=None, context=10_000, told=None):
    growth = growth_with(chat, SeededSampler(chat.tokenizer, context=context), grader=grader)
    store = TrajectoryStore(folder)
    counts = (lambda done, total: told.append((done, total))) if told is not None else (lambda done, total: None)
    return collect(problems, growth, settings, store, seed, counts), list(store.read())


def test_every_problem_gets_its_dialogues(chat, tmp_path):
    told = []
    too_long, found = run(chat, tmp_path, told=told)
    assert too_long == 0
    assert told == [(2, 7), (4, 7), (6, 7), (7, 7)]
    assert len(TrajectoryStore(tmp_path).shards()) == 4
    assert [(t.problem_id, t.sample) for t in found] == [(p.id, sample) for p in PROBLEMS for sample in range(3)]
    assert {len(t.turns) for t in found} == {2}
    assert len({t.turns[0].reply for t in found}) > 1


@pytest.mark.parametrize("calls", range(0, 8, 2))
def test_a_collection_killed_and_resumed_equals_an_undisturbed_one(chat, tmp_path, calls):
    _, undisturbed = run(chat, tmp_path / "whole")
    with pytest.raises(KilledError):
        run(chat, tmp_path / "killed", grader=GraderUntil(calls + 1))
    assert len(TrajectoryStore(tmp_path / "killed").shards()) == calls // 2
    told = []
    _, resumed = run(chat, tmp_path / "killed", told=told)
    assert resumed == undisturbed
    assert told[-1] == (7, 7)


def test_a_complete_collection_samples_nothing_more(chat, tmp_path):
    _, first = run(chat, tmp_path)
    _, second = run(chat, tmp_path, grader=GraderUntil(0))
    assert second == first


def test_seeds_draw_differently(chat, tmp_path):
    assert run(chat, tmp_path / "a")[1] != run(chat, tmp_path / "b", seed=1)[1]


def test_shards_draw_differently(chat, tmp_path):
    _, found = run(chat, tmp_path, settings=SETTINGS.model_copy(update={"samples": 8}), seed=1)
    replies = [[t.turns[0].reply for t in found if t.problem_id == p.id] for p in PROBLEMS]
    assert len({tuple(row) for row in replies}) > 4


def test_prompts_that_are_too_long_are_counted_and_left_out(chat, tmp_path):
    long = drop_first("long", statement="Write f(x): " + "drop one end " * 20)
    told = []
    too_long, found = run(chat, tmp_path, [PROBLEMS[0], long, PROBLEMS[1]], context=60, told=told)
    assert too_long == 1
    assert {t.problem_id for t in found} == {"p0", "p1"}
    assert told == [(2, 2)]


def test_the_stopping_protocol_is_a_setting(chat, tmp_path):
    settings = CollectionSettings(samples=6, turns=4, stops_at_public_pass=True)
    _, found = run(chat, tmp_path, PROBLEMS[:2], settings)
    assert any(len(t.turns) < 4 for t in found)
    for t in found:
        assert not any(turn.passes_public for turn in t.turns[:-1])
        assert len(t.turns) == 4 or t.turns[-1].passes_public


def test_the_last_turn_keeps_its_feedback_too(chat, tmp_path):
    _, found = run(chat, tmp_path)
    for t in found:
        for turn in t.turns:
            expected = "No program." if turn.program is None else "Check it again." if turn.passes_public else "Call: "
            assert turn.feedback.startswith(expected)


def test_the_settings_of_the_collection_draw(chat, tmp_path, problem):
    growth = scripted_growth(chat, [RIGHT] * 2)
    asked = []
    sample = growth.sampler.sample
    growth.sampler.sample = lambda requests, settings, seed: asked.append(settings) or sample(requests, settings, seed)
    sampling = SamplingSettings(temperature=0.6, top_p=0.95, max_new_tokens=9)
    settings = CollectionSettings(samples=2, turns=1, sampling=sampling)
    collect([problem], growth, settings, TrajectoryStore(tmp_path), 0, lambda done, total: None)
    assert asked == [sampling]


def test_samples_are_numbered_within_their_problem(chat, problem):
    growth = scripted_growth(chat, [WRONG, RIGHT, NO_CODE], [RIGHT, WRONG])
    tree = growth.seed_of(problem)
    growth.grow([tree], Shape.chains(3, 2, stop_at_public_pass), seed=0)
    found = trajectories_of([tree], growth)
    assert sorted(t.sample for t in found) == [0, 1, 2]
    assert sorted([turn.reply for turn in t.turns] for t in found) == sorted(
        [[WRONG, RIGHT], [RIGHT], [NO_CODE, WRONG]]
    )
