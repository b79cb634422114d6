"""Cutting trajectories into contexts, rule by rule (METHODS 1.3)."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smalt.rollouts.collection import trajectories_of
from smalt.rollouts.contexts import ContextCutter, ContextRules, choose_for_training, choose_for_validation, cut_store
from smalt.rollouts.growth import Shape
from smalt.rollouts.store import TrajectoryStore
from tests.conftest import drop_first
from tests.scripted import NO_CODE, RIGHT, WORDING, WRONG, SeededSampler, growth_with, trajectory, turn

COBALT = ContextRules()


def cutter(chat, **rules):
    return ContextCutter(chat, WORDING, ContextRules(**rules))


def cuts(chat, problem, *trajectories, **rules):
    """(sample, attempts, previous best) of each training context."""
    found = cutter(chat, **rules).training_contexts(problem, trajectories)
    return [(context.sample, context.attempts, context.previous_best) for context in found]


BARE = (-1, 0, 0.0)


def test_a_problem_solved_at_once_every_time_is_left_out(chat, problem):
    assert cuts(chat, problem, trajectory(1, 0.5, 1), trajectory(1, 1, 0)) == []
    assert BARE in cuts(chat, problem, trajectory(1, 0.5, 1), trajectory(0.5, 1))
    assert BARE in cuts(chat, problem, trajectory(1, 1), skip_problems_solved_at_once=False)


def test_public_tests_alone_do_not_solve_a_problem(chat, problem):
    assert cuts(chat, problem, trajectory(turn(0.9, public=True), 0.9)) == [BARE]


def test_the_bare_problem_comes_once_and_first(chat, problem):
    found = cutter(chat).training_contexts(problem, [trajectory(0, 1), trajectory(0.5, 1, sample=1)])
    assert [context.attempts for context in found].count(0) == 1
    assert found[0].prompt_ids == chat.opening(problem.statement).ids
    assert (found[0].sample, found[0].previous_best, found[0].problem_id) == (-1, 0.0, problem.id)
    assert BARE not in cuts(chat, problem, trajectory(0, 1), emit_bare_problem=False)


def test_only_changing_and_solved_trajectories_are_cut(chat, problem):
    kept, unsolved, constant = trajectory(0, 1, 0), trajectory(0, 0.5, 0, sample=1), trajectory(0.5, 0.5, sample=2)
    given_all = (kept, unsolved, constant)
    assert {sample for sample, _, _ in cuts(chat, problem, *given_all)} == {-1, 0}
    assert {sample for sample, _, _ in cuts(chat, problem, *given_all, require_solved=False)} == {-1, 0, 1}
    loose = {"require_solved": False, "require_spread": False}
    assert {sample for sample, _, _ in cuts(chat, problem, *given_all, **loose)} == {-1, 0, 1, 2}


def test_of_too_many_the_most_varied_four_are_kept():
    spreads = [0.1, 1.0, 0.5, 0.9, 0.2, 0.6]
    given_all = [trajectory(1 - spread, 1, sample=place) for place, spread in enumerate(spreads)]
    chosen = choose_for_training(given_all, COBALT)
    assert [kept.sample for kept in chosen] == [0, 1, 3, 4]
    assert choose_for_training(given_all[:4], COBALT) == given_all[:4]
    assert len(choose_for_training(given_all, ContextRules(max_trajectories=2))) == 2


def test_a_trajectory_is_cut_after_each_attempt_up_to_three(chat, problem):
    assert cuts(chat, problem, trajectory(0, 0.25, 0.5, 0.75, 1)) == [BARE, (0, 1, 0), (0, 2, 0.25), (0, 3, 0.5)]
    assert cuts(chat, problem, trajectory(0, 0.25, 0.5, 1), max_attempts=1) == [BARE, (0, 1, 0)]


def test_previous_best_is_the_best_so_far_not_the_last(chat, problem):
    assert cuts(chat, problem, trajectory(0.5, 0.25, 0, 1)) == [BARE, (0, 1, 0.5), (0, 2, 0.5), (0, 3, 0.5)]


def test_the_last_program_of_a_trajectory_is_a_context_too(chat, problem):
    assert cuts(chat, problem, trajectory(0, 1)) == [BARE, (0, 1, 0), (0, 2, 1)]


def test_cutting_stops_after_two_public_passes_in_a_row(chat, problem):
    twice = trajectory(turn(0.5, public=True), turn(0.75, public=True), 1)
    assert cuts(chat, problem, twice) == [BARE, (0, 1, 0.5)]
    apart = trajectory(turn(0.5, public=True), 0, turn(0.75, public=True), 1)
    assert cuts(chat, problem, apart) == [BARE, (0, 1, 0.5), (0, 2, 0.5), (0, 3, 0.75)]
    on = cuts(chat, problem, twice, stop_after_two_public_passes=False)
    assert on == [BARE, (0, 1, 0.5), (0, 2, 0.75), (0, 3, 1)]


def test_nothing_is_left_when_a_program_and_the_next_one_pass_everything(chat, problem):
    assert cuts(chat, problem, trajectory(0, 1, 1)) == [BARE, (0, 1, 0)]
    assert cuts(chat, problem, trajectory(1, 1, 0), trajectory(0, 0, sample=1)) == [BARE]
    assert cuts(chat, problem, trajectory(1, 0, 1), trajectory(0, 0, sample=1)) == [
        BARE,
        (0, 1, 1),
        (0, 2, 1),
        (0, 3, 1),
    ]


def test_the_authors_rule_looks_at_programs_one_and_three(chat, problem):
    rule = {"nothing_left": "first_and_third_pass", "stop_after_two_public_passes": False}
    other = trajectory(0, 0, sample=1)
    assert cuts(chat, problem, trajectory(1, 0, 1), other, **rule) == [BARE, (0, 1, 1)]
    assert cuts(chat, problem, trajectory(1, 1, 0), other, **rule) == [BARE, (0, 1, 1), (0, 2, 1), (0, 3, 1)]
    assert cuts(chat, problem, trajectory(0, 1, 1), other, **rule) == [BARE, (0, 1, 0), (0, 2, 1), (0, 3, 1)]
    assert cuts(chat, problem, trajectory(1, 0), other, **rule) == [BARE, (0, 1, 1), (0, 2, 1)]


def test_longer_prompts_than_allowed_are_not_cut(chat, problem):
    found = cutter(chat).training_contexts(problem, [trajectory(0, 0, 0, 1)])
    lengths = [len(context.prompt_ids) for context in found]
    assert lengths == sorted(set(lengths))
    for count, limit in enumerate(lengths):
        assert len(cuts(chat, problem, trajectory(0, 0, 0, 1), max_prompt_tokens=limit)) == count + 1


def test_trajectories_in_which_the_grader_failed_are_left_out(chat, problem):
    assert cuts(chat, problem, trajectory(0, turn(0, infra=True), 1)) == [BARE]


def test_validation_takes_the_one_with_the_smallest_change(chat, problem):
    candidates = [trajectory(*rates, sample=place) for place, rates in enumerate([(0, 1), (0.5, 0.5), (0.5, 0.25, 1)])]
    assert [kept.sample for kept in choose_for_validation(candidates)] == [2]
    assert choose_for_validation([trajectory(0.5, 0.5)]) == []
    found = cutter(chat).validation_contexts(problem, candidates)
    assert [(context.sample, context.attempts) for context in found] == [(-1, 0), (2, 1), (2, 2), (2, 3)]


def test_validation_needs_no_solved_trajectory(chat, problem):
    found = cutter(chat).validation_contexts(problem, [trajectory(0.25, 0.5)])
    assert [context.previous_best for context in found] == [0, 0.25, 0.5]


def test_validation_leaves_out_trajectories_in_which_the_grader_failed():
    assert choose_for_validation([trajectory(0.5, turn(0.25, infra=True))]) == []


def test_a_grader_failure_does_not_keep_a_problem_that_is_otherwise_solved_at_once(chat, problem):
    failed = trajectory(turn(0, infra=True), 1, sample=1)
    assert cuts(chat, problem, trajectory(1, 1), failed) == []


def test_feedback_and_replies_are_those_of_the_trajectory(chat, problem):
    told = trajectory(turn(0, ids=(11, 12), feedback="first feedback"), turn(1, ids=(13,), feedback="second"))
    context = cutter(chat).training_contexts(problem, [told])[-1]
    expected = chat.next_turn(chat.opening(problem.statement), (11, 12), "first feedback")
    assert context.prompt_ids == chat.next_turn(expected, (13,), "second").ids


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10_000))
def test_a_context_reads_as_the_prompt_that_the_grown_tree_had(chat, seed):
    problem = drop_first()
    sampler = SeededSampler(chat.tokenizer, (RIGHT, WRONG, NO_CODE, f"<think>hm</think>{WRONG}"))
    growth = growth_with(chat, sampler)
    tree = growth.seed_of(problem)
    growth.grow([tree], Shape.chains(4, 3), seed)
    loose = cutter(
        chat,
        skip_problems_solved_at_once=False,
        require_spread=False,
        require_solved=False,
        stop_after_two_public_passes=False,
        nothing_left="first_and_third_pass",
    )
    contexts = loose.training_contexts(problem, trajectories_of([tree], growth))
    chains = tree.chains()
    assert contexts[0].prompt_ids == tree.root.ids
    assert len(contexts) > 4
    for context in contexts[1:]:
        node = chains[context.sample][context.attempts - 1]
        assert context.prompt_ids == growth.next_prompt(node).ids
        assert context.previous_best == max(n.pass_rate for n in node.path())


@given(st.lists(st.lists(st.sampled_from([0, 0.25, 0.5, 1]), min_size=1, max_size=5), min_size=1, max_size=7))
def test_no_rule_is_broken_whatever_the_trajectories(chat, rates):
    given_all = [trajectory(*row, sample=place) for place, row in enumerate(rates)]
    found = cuts(chat, drop_first(), *given_all)
    if all(row[0] == 1 for row in rates):
        assert found == []
        return
    assert found[0] == BARE
    assert len({sample for sample, _, _ in found[1:]}) <= 4
    for sample, attempts, best in found[1:]:
        row = rates[sample]
        assert 1 <= attempts <= min(3, len(row))
        assert best == max(row[:attempts])
        assert max(row) == 1
        assert min(row) < 1
        assert row[attempts - 1 : attempts + 1] != [1, 1]


def test_a_store_is_cut_in_the_order_of_the_problems(chat, tmp_path):
    store = TrajectoryStore(tmp_path)
    store.append([trajectory(0, 1, problem_id="b"), trajectory(0, 1, problem_id="a")])
    store.append([trajectory(0.5, 1, problem_id="b", sample=1), trajectory(0, 1, problem_id="unknown")])
    problems = [drop_first("a"), drop_first("b"), drop_first("never collected")]
    found = cut_store(tmp_path, problems, cutter(chat).training_contexts)
    assert [(context.problem_id, context.sample, context.attempts) for context in found] == [
        ("a", -1, 0),
        ("a", 0, 1),
        ("a", 0, 2),
        ("b", -1, 0),
        ("b", 0, 1),
        ("b", 0, 2),
        ("b", 1, 1),
        ("b", 1, 2),
    ]
