"""The loop on a tiny policy: steps without signal, resuming, validation, what is logged."""

import copy
import json
from functools import partial
from types import SimpleNamespace

import pytest
import torch

from smalt.credit.advantage_settings import AdvantageSettings
from smalt.credit.estimators import Estimator
from smalt.dialogue.chat import ChatFormat
from smalt.methods.cobalt import Cobalt, CobaltSettings
from smalt.methods.grpo import GRPO, GRPOSettings
from smalt.methods.grpo_mt import GRPOMT, GRPOMTSettings
from smalt.methods.method import MethodTools
from smalt.methods.mucode import MuCode, MuCodeSettings
from smalt.methods.murphy import Murphy, MurphySettings
from smalt.policy.loading import ModelSettings, load_policy
from smalt.policy.local_sampler import LocalSampler
from smalt.policy.reference import ReferencePolicy
from smalt.policy.sampling import SamplingSettings
from smalt.reports.run_report import write_run_report
from smalt.rollouts.records import Context
from smalt.training.learner import Learner
from smalt.training.loop import TrainingLoop
from smalt.training.settings import (
    LossSettings,
    NeverGiveUpSettings,
    OptimiserSettings,
    TrainingBudget,
    TrainingSettings,
    VerifierSettings,
)
from smalt.training.spending import Spent
from smalt.training.verifier_training import VerifierTrainer
from tests.conftest import drop_first
from tests.scripted import NO_CODE, RIGHT, WRONG, TextGrader, TrustedGrader, growth_with, scripted_growth

PROBLEMS = {name: drop_first(name) for name in ("a", "b", "c")}
SHORT = SamplingSettings(max_new_tokens=6)
SETTINGS = TrainingSettings(
    epochs=4,
    contexts_per_step=2,
    sampling=SHORT,
    validation_sampling=SamplingSettings(temperature=0.6, max_new_tokens=5),
    optimiser=OptimiserSettings(learning_rate=1e-3, groups_per_update=2),
    loss=LossSettings(kl_coefficient=0.01),
    checkpoint_every=2,
)


class KilledError(Exception):
    pass


def kill_after(last):
    def on_step(step, steps, metrics):
        if step == last:
            raise KilledError

    return on_step


def quiet(step, steps, metrics):
    pass


def load(model_folder):
    return load_policy(ModelSettings(path=str(model_folder), device="cpu"))


def contexts_of(chat, names="abc", **changes):
    fields = {"sample": -1, "attempts": 0, "previous_best": 0.0, **changes}
    return [
        Context(problem_id=name, prompt_ids=chat.opening(f"Task {place}").ids, **fields)
        for place, name in enumerate(names)
    ]


def learner_of(policy, settings=SETTINGS):
    return Learner(policy, ReferencePolicy(policy), settings.optimiser, settings.loss, settings.sampling.temperature)


def loop_of(folder, policy, growth, settings=SETTINGS, on_step=quiet, group_size=4, seed=0):
    folder.mkdir(parents=True, exist_ok=True)
    return TrainingLoop(
        method=Cobalt(CobaltSettings(group_size=group_size), MethodTools(policy.tokenizer)),
        growth=growth,
        learner=learner_of(policy, settings),
        settings=settings,
        problems=PROBLEMS,
        folder=folder,
        seed=seed,
        on_step=on_step,
    )


def real_loop(folder, model_folder, **options):
    """A loop whose policy samples itself. Replies open with a code block, so that each has a program to judge."""
    policy = load(model_folder)
    chat = ChatFormat(policy.tokenizer, reply_prefix="```python\n")
    growth = growth_with(chat, LocalSampler(policy), grader=TextGrader(), max_new_tokens=6)
    return loop_of(folder, policy, growth, **options)


def run(loop, **options):
    chat = loop.growth.chat
    return loop.run(contexts_of(chat), contexts_of(chat, attempts=1), **options)


def metrics_of(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def weights(loop):
    return {name: value.clone() for name, value in loop.learner.policy.model.state_dict().items()}


def same(left, right):
    return all(torch.equal(left[name], right[name]) for name in left)


def without_seconds(rows):
    return [{k: value for k, value in row.items() if not k.startswith(("seconds", "share"))} for row in rows]


@pytest.fixture(scope="module")
def undisturbed(model_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("loop") / "undisturbed"
    loop = real_loop(folder, model_folder, settings=SETTINGS.model_copy(update={"validate_every": 4}))
    run(loop)
    return loop


def test_training_moves_the_weights_and_logs_each_step(undisturbed, model_folder):
    rows = metrics_of(undisturbed.folder)
    assert [row["step"] for row in rows] == list(range(6))
    assert not all(row["is_skipped"] for row in rows)
    trained = next(row for row in rows if not row["is_skipped"])
    assert {"loss", "kl", "entropy", "grad_norm", "learning_rate", "clip_fraction", "trained_tokens"} <= trained.keys()
    assert {
        "reward_mean",
        "solved_share",
        "groups_without_signal",
        "cut_off",
        "infra_errors",
        "low_trust_passes",
    } <= trained.keys()
    assert all(row[f"seconds_{part}"] >= 0 for row in rows for part in ("sampling", "grading", "training"))
    assert all(0 < row["sampling_tokens_distinct"] < row["sampling_tokens_total"] for row in rows)
    assert all(row["sampling_tokens_prefilled"] == rows[0]["sampling_tokens_prefilled"] > 0 for row in rows)
    assert all(0 < row["training_tokens_computed"] < row["training_tokens_total"] for row in rows)
    assert not same(weights(undisturbed), load(model_folder).model.state_dict())


def test_the_log_is_what_the_report_reads(undisturbed, tmp_path):
    page = write_run_report(undisturbed.folder, tmp_path / "report.html").read_text()
    assert "Reward, mean" in page
    assert "Gradient norm" in page


def test_validation_comes_when_due_and_after_the_last_step(undisturbed):
    rows = metrics_of(undisturbed.folder)
    assert [row["step"] for row in rows if "validation_score" in row] == [3, 5]
    assert all(0 <= row.get("validation_score", 0) <= 1 for row in rows)


@pytest.mark.parametrize("last", [0, 1, 2, 3, 5])
def test_a_loop_killed_and_resumed_ends_bit_for_bit_the_same(undisturbed, model_folder, tmp_path, last):
    settings = undisturbed.settings
    with pytest.raises(KilledError):
        run(real_loop(tmp_path, model_folder, settings=settings, on_step=kill_after(last)))
    taken = []
    resumed = real_loop(tmp_path, model_folder, settings=settings, on_step=lambda step, *rest: taken.append(step))
    run(resumed)
    assert taken[0] == last - last % 2
    assert same(weights(resumed), weights(undisturbed))
    assert without_seconds(metrics_of(tmp_path)) == without_seconds(metrics_of(undisturbed.folder))


def test_a_finished_loop_takes_no_more_steps(model_folder, undisturbed):
    taken = []
    again = real_loop(
        undisturbed.folder, model_folder, settings=undisturbed.settings, on_step=lambda *step: taken.append(step)
    )
    run(again)
    assert taken == []
    assert same(weights(again), weights(undisturbed))


def test_another_seed_trains_otherwise(model_folder, undisturbed, tmp_path):
    other = real_loop(tmp_path, model_folder, settings=undisturbed.settings, seed=1)
    run(other)
    assert not same(weights(other), weights(undisturbed))


def scripted_loop(policy, chat, folder, *levels, grader=None, **options):
    growth = scripted_growth(chat, *levels, grader=grader)
    return loop_of(folder, policy, growth, **options)


def test_steps_and_seeds_draw_differently(policy, chat, tmp_path):
    drawn = []
    for seed in range(3):
        loop = scripted_loop(policy, chat, tmp_path, *[[WRONG] * 2] * 3, group_size=2, seed=seed)
        for step in range(3):
            loop.train_step(contexts_of(chat, "a"), step)
        drawn += loop.growth.sampler.seeds
    assert len(set(drawn)) == 9


def one_step(policy, chat, folder, replies, grader=None, **changes):
    """Metrics of one step on two contexts of one problem each."""
    loop = scripted_loop(policy, chat, folder, replies, grader=grader, group_size=len(replies) // 2)
    return loop.train_step(contexts_of(chat, "ab", **changes), 0)


def test_a_step_without_signal_is_skipped_and_says_so(policy, chat, tmp_path):
    before = copy.deepcopy(policy.model.state_dict())
    metrics = one_step(policy, chat, tmp_path, [RIGHT, RIGHT, WRONG, WRONG])
    assert metrics["is_skipped"] == 1
    assert metrics["groups_without_signal"] == 1
    assert "loss" not in metrics
    assert same(before, policy.model.state_dict())


def test_a_step_with_signal_trains_on_the_groups_that_have_it(policy, chat, tmp_path):
    before = copy.deepcopy(policy.model.state_dict())
    metrics = one_step(policy, chat, tmp_path, [RIGHT, WRONG, WRONG, WRONG])
    assert metrics["is_skipped"] == 0
    assert metrics["groups_without_signal"] == 0.5
    assert metrics["solved_share"] == metrics["solved_share_first_turn"] == 0.25
    assert metrics["trained_tokens"] == sum(len(chat.tokenizer.encode(r)) + 1 for r in (RIGHT, WRONG))
    assert not same(before, policy.model.state_dict())


def test_rewards_and_shares_in_the_log(policy, chat, tmp_path):
    metrics = one_step(policy, chat, tmp_path, [RIGHT, NO_CODE, WRONG, RIGHT], attempts=1, previous_best=1 / 3)
    # WRONG passes a third of the tests, no more than before: -0.1.
    assert metrics["reward_mean"] == pytest.approx((1 - 1 - 0.1 + 1) / 4)
    assert metrics["without_program"] == 0.25
    assert metrics["solved_share_after_failure"] == 0.5
    assert metrics["solved_share_first_turn"] == 0
    assert metrics["pass_rate_mean"] == pytest.approx((1 + 0 + 1 / 3 + 1) / 4)
    assert metrics["cut_off"] == 0


def test_infra_errors_leave_the_batch_and_are_counted(policy, chat, tmp_path):
    broken = TrustedGrader(broken="x[:-1]")
    metrics = one_step(policy, chat, tmp_path, [RIGHT, NO_CODE, WRONG, WRONG, WRONG, WRONG], grader=broken)
    assert metrics["infra_errors"] == 4
    assert metrics["reward_mean"] == pytest.approx(0)
    assert metrics["trained_tokens"] == sum(len(chat.tokenizer.encode(r)) + 1 for r in (RIGHT, NO_CODE))


def test_shares_of_solved_programs_leave_infra_errors_out(policy, chat, tmp_path):
    broken = TrustedGrader(broken="x[:-1]")
    metrics = one_step(policy, chat, tmp_path, [RIGHT, NO_CODE, WRONG, WRONG, WRONG, WRONG], grader=broken)
    assert metrics["solved_share_first_turn"] == metrics["solved_share"] == 0.5


def test_contexts_that_leave_no_room_are_counted(policy, chat, tmp_path):
    loop = scripted_loop(policy, chat, tmp_path, *[[RIGHT, WRONG]] * 2, group_size=2)
    loop.settings = SETTINGS.model_copy(update={"contexts_per_step": 1, "max_steps": 2})
    loop.growth.sampler.context = 20
    long = Context("b", -1, 0, 0.0, (7,) * 21)
    assert loop.run([*contexts_of(chat, "a"), long, long], []) == 2
    assert {request.prompt_ids for asked in loop.growth.sampler.requests for request in asked} == {
        contexts_of(chat, "a")[0].prompt_ids
    }


def test_no_context_at_all_is_an_error(policy, chat, tmp_path):
    with pytest.raises(ValueError, match="nothing to train on"):
        scripted_loop(policy, chat, tmp_path).run([], [])


def test_validation_draws_by_its_own_settings_and_each_time_the_same(model_folder, tmp_path):
    loop = real_loop(tmp_path, model_folder)
    asked = []
    sample = loop.growth.sampler.sample

    def spy(requests, settings, seed):
        asked.append((settings, seed, sample(requests, settings, seed)))
        return asked[-1][-1]

    loop.growth.sampler = SimpleNamespace(sample=spy, fits=loop.growth.sampler.fits)
    contexts = contexts_of(loop.growth.chat, "abcabc")
    assert loop.validate(contexts) == loop.validate(contexts)
    assert [settings for settings, _, _ in asked] == [SETTINGS.validation_sampling] * 2
    assert asked[0] == asked[1]


def test_validation_is_the_share_of_solved_contexts(policy, chat, tmp_path):
    grader = TrustedGrader(broken="list(x)")
    loop = scripted_loop(policy, chat, tmp_path, [RIGHT, WRONG, RIGHT.replace("x[1:]", "list(x)")], grader=grader)
    assert loop.validate(contexts_of(chat)) == 0.5
    assert [request.count for request in loop.growth.sampler.requests[0]] == [1, 1, 1]


def test_validation_needs_room_for_its_own_completions(model_folder, tmp_path):
    settings = SETTINGS.model_copy(update={"validation_sampling": SamplingSettings(max_new_tokens=2040)})
    loop = real_loop(tmp_path, model_folder, settings=settings)
    chat = loop.growth.chat
    asked = []
    loop.validate = lambda contexts: asked.append(len(contexts)) or 0.0
    loop.settings = settings.model_copy(update={"validate_every": 1, "max_steps": 1})
    loop.run(contexts_of(chat), contexts_of(chat))
    assert asked == []


def problem_loop(policy, chat, folder, method, *levels, settings=SETTINGS, grader=None):
    """A loop of a method that starts at bare problems; its replies are scripted."""
    loop = loop_of(folder, policy, scripted_growth(chat, *levels, grader=grader), settings=settings)
    loop.method = method
    return loop


def test_a_method_of_several_turns_starts_at_the_problem_with_its_messages(policy, chat, tmp_path):
    method = Murphy(MurphySettings(group_size=2, turns=2))
    loop = problem_loop(policy, chat, tmp_path, method, [NO_CODE, WRONG], [RIGHT, WRONG, RIGHT, NO_CODE])
    metrics = loop.train_step(contexts_of(chat, "a"), 0)
    first, second = loop.growth.sampler.requests
    assert first[0].prompt_ids == loop.growth.seed_of(PROBLEMS["a"]).root.ids
    assert [request.count for request in second] == [2, 2]
    assert metrics["is_skipped"] == 0
    assert metrics["solved_share_first_turn"] == 0
    assert metrics["solved_share_after_failure"] == 0.5
    assert metrics["groups_without_signal"] == pytest.approx(1 / 3)  # both first programs were mended: 1 and 1
    assert metrics["sampled_tokens"] == sum(
        len(chat.tokenizer.encode(r)) + 1 for r in (NO_CODE, WRONG) * 2 + (RIGHT,) * 2
    )


def test_dialogues_validate_by_their_last_program(policy, chat, tmp_path):
    method = GRPOMT(GRPOMTSettings(group_size=2, turns=2))
    loop = problem_loop(policy, chat, tmp_path, method, [RIGHT, WRONG, NO_CODE], [RIGHT, WRONG])
    assert loop.validate(contexts_of(chat)) == pytest.approx(2 / 3)
    assert [len(asked) for asked in loop.growth.sampler.requests] == [3, 2]


def test_dynamic_sampling_goes_on_until_enough_trees_have_a_signal(policy, chat, tmp_path):
    loop = scripted_loop(
        policy, chat, tmp_path, [RIGHT] * 4, [RIGHT, WRONG, RIGHT, RIGHT], [WRONG, RIGHT] * 2, group_size=2
    )
    spare = [contexts_of(chat, "bc"), contexts_of(chat, "ca"), contexts_of(chat, "ab")]
    metrics = loop.train_step(contexts_of(chat, "ab"), 0, spare)
    assert [len(asked) for asked in loop.growth.sampler.requests] == [2, 2, 2]
    assert len(set(loop.growth.sampler.seeds)) == 3
    # One tree of the second round and the first of the two in the third: as many as were meant.
    assert metrics["trained_tokens"] == 2 * sum(len(chat.tokenizer.encode(r)) + 1 for r in (RIGHT, WRONG))
    assert metrics["sampled_tokens"] > metrics["trained_tokens"]


def test_spare_batches_follow_from_the_step_alone(policy, chat, tmp_path):
    loop = scripted_loop(policy, chat, tmp_path)
    contexts = contexts_of(chat)
    loop.settings = SETTINGS.model_copy(update={"dynamic_sampling_rounds": 3})
    assert loop._batches(contexts, 4) == loop._batches(contexts, 4)
    drawn = [batch for step in range(3) for batch in loop._batches(contexts, step)]
    loop.settings = SETTINGS
    assert drawn == [batch for step in range(9) for batch in loop._batches(contexts, step)]


def persistent(**changes):
    return SETTINGS.model_copy(update={"never_give_up": NeverGiveUpSettings(probability=1.0, max_rounds=2), **changes})


def ngu_tools(tokenizer):
    return MethodTools(tokenizer, estimator=Estimator(AdvantageSettings(estimator="ngu")))


def test_a_prompt_on_which_everything_failed_comes_back_with_its_completions(policy, chat, tmp_path):
    method = GRPO(GRPOSettings(group_size=2), ngu_tools(policy.tokenizer))
    levels = [NO_CODE] * 2, [NO_CODE] * 4, [NO_CODE] * 4, [RIGHT, RIGHT, RIGHT, NO_CODE], [RIGHT, WRONG]
    loop = problem_loop(policy, chat, tmp_path, method, *levels, settings=persistent())
    skipped = [loop.train_step(contexts_of(chat, "a"), step)["is_skipped"] for step in range(3)]
    assert skipped == [1, 1, 1]
    [waiting] = loop.persistence.waiting
    assert [len(completions) for completions in waiting.rounds] == [2, 2]
    assert waiting.forgotten == (0.0, 0.0)
    metrics = loop.train_step(contexts_of(chat, "b"), 3)
    # Fresh: two right. Returned: two rounds of two old ones and one right of two. The fresh group has no signal.
    tokens = {reply: len(chat.tokenizer.encode(reply)) + 1 for reply in (RIGHT, NO_CODE)}
    assert metrics["trained_tokens"] == tokens[RIGHT] + 5 * tokens[NO_CODE]
    assert metrics["sampled_tokens"] == 3 * tokens[RIGHT] + tokens[NO_CODE]
    assert loop.persistence.waiting == []
    loop.train_step(contexts_of(chat, "c"), 4)
    assert [len(asked) for asked in loop.growth.sampler.requests] == [1, 2, 2, 2, 1]


def real_ngu_loop(folder, model_folder, **options):
    """A real loop of GRPO that never gives up on a prompt."""
    loop = real_loop(folder, model_folder, group_size=2, **options)
    loop.method = GRPO(GRPOSettings(group_size=2), ngu_tools(loop.learner.policy.tokenizer))
    return loop


def test_failed_prompts_survive_a_kill(model_folder, tmp_path):
    settings = persistent(advantages=AdvantageSettings(estimator="ngu"), loss=LossSettings(kl_coefficient=0))

    ngu_loop = partial(real_ngu_loop, model_folder=model_folder, settings=settings)

    whole = ngu_loop(tmp_path / "whole")
    run(whole)
    with pytest.raises(KilledError):
        run(ngu_loop(tmp_path / "killed", on_step=kill_after(4)))
    resumed = ngu_loop(tmp_path / "killed")
    run(resumed)
    assert same(weights(resumed), weights(whole))
    assert resumed.persistence.waiting == whole.persistence.waiting
    assert without_seconds(metrics_of(tmp_path / "killed")) == without_seconds(metrics_of(tmp_path / "whole"))
    assert len(list((tmp_path / "whole/failed_prompts").iterdir())) == 2


def test_whitening_changes_the_update(model_folder, undisturbed, tmp_path):
    loop = real_loop(tmp_path, model_folder, settings=undisturbed.settings)
    estimator = Estimator(AdvantageSettings(estimator="reinforce_plus_plus"))
    loop.method = Cobalt(loop.method.settings, MethodTools(loop.learner.policy.tokenizer, estimator=estimator))
    run(loop)
    assert not same(weights(loop), weights(undisturbed))


def budgeted(tokens, **changes):
    return SETTINGS.model_copy(update={"budget": TrainingBudget(sampled_tokens=tokens), **changes})


def test_totals_add_up_from_what_was_spent_before(model_folder, tmp_path):
    loop = real_loop(tmp_path, model_folder)
    loop.spent_before = Spent(1000, 50)
    run(loop)
    rows = metrics_of(tmp_path)
    tokens, seconds = 1000, 50
    for row in rows:
        tokens += row["sampled_tokens"]
        seconds += sum(row[f"seconds_{part}"] for part in ("sampling", "grading", "training"))
        assert row["sampled_tokens_so_far"] == tokens
        assert row["seconds_so_far"] == pytest.approx(seconds)


def test_a_budget_ends_training_with_the_step_that_reaches_it(undisturbed, model_folder, tmp_path):
    costs = [row["sampled_tokens_so_far"] for row in metrics_of(undisturbed.folder)]
    told = []
    settings = budgeted(int(costs[2]) - 1, validate_every=4)
    loop = real_loop(tmp_path, model_folder, settings=settings, on_step=lambda *step: told.append(step))
    run(loop)
    rows = metrics_of(tmp_path)
    assert [row["sampled_tokens_so_far"] for row in rows] == costs[:3]
    assert "validation_score" in rows[2]  # the last step is due, whichever it turns out to be
    assert (tmp_path / "checkpoints/step-000003").exists()
    assert told[-1][:2] == (2, 3)
    assert all(steps > step for step, steps, _ in told)
    run(real_loop(tmp_path, model_folder, settings=settings))
    assert metrics_of(tmp_path) == rows


@pytest.mark.parametrize("last", [0, 2, 3])
def test_a_budget_goes_on_after_a_kill_with_what_was_spent(undisturbed, model_folder, tmp_path, last):
    costs = [row["sampled_tokens_so_far"] for row in metrics_of(undisturbed.folder)]
    settings = budgeted(int(costs[3]))
    with pytest.raises(KilledError):
        run(real_loop(tmp_path, model_folder, settings=settings, on_step=kill_after(last)))
    run(real_loop(tmp_path, model_folder, settings=settings))
    assert [row["sampled_tokens_so_far"] for row in metrics_of(tmp_path)] == costs[:4]


def test_seconds_are_a_budget_too_and_steps_stay_a_bound(model_folder, tmp_path):
    short = SETTINGS.model_copy(update={"budget": TrainingBudget(seconds=1e-9)})
    run(real_loop(tmp_path / "short", model_folder, settings=short))
    assert len(metrics_of(tmp_path / "short")) == 1
    run(real_loop(tmp_path / "long", model_folder, settings=budgeted(10**9)))
    assert len(metrics_of(tmp_path / "long")) == 6


def test_trajectories_that_cost_the_whole_budget_are_refused(policy, chat, tmp_path):
    loop = scripted_loop(policy, chat, tmp_path, settings=budgeted(100))
    loop.spent_before = Spent(100, 3)
    with pytest.raises(ValueError, match="used up by the stored trajectories"):
        run(loop)


def test_a_budget_is_one_amount():
    for nonsense in ({}, {"seconds": 3, "sampled_tokens": 3}, {"seconds": 0}):
        with pytest.raises(ValueError):
            TrainingBudget(**nonsense)


def test_a_verifier_survives_a_kill(model_folder, tmp_path):
    loss = LossSettings(objective="likelihood", aggregation="turns", kl_coefficient=0)
    settings = SETTINGS.model_copy(update={"loss": loss, "max_steps": 5})

    def imitating_loop(folder, **options):
        loop = real_loop(folder, model_folder, settings=settings, **options)
        training = VerifierSettings(learning_rate=1e-3, pairs=2)
        verifier = VerifierTrainer(load(model_folder), loop.growth.chat, training, folder / "verifiers")
        loop.method = MuCode(MuCodeSettings(group_size=3, turns=2, best_of=2), MethodTools(verifier=verifier))
        loop.growth.scores = verifier.scores
        return loop

    whole = imitating_loop(tmp_path / "whole")
    run(whole)
    rows = metrics_of(tmp_path / "whole")
    assert any("verifier_loss" in row for row in rows)
    assert not all(row["is_skipped"] for row in rows)
    with pytest.raises(KilledError):
        run(imitating_loop(tmp_path / "killed", on_step=kill_after(3)))
    resumed = imitating_loop(tmp_path / "killed")
    run(resumed)
    assert same(weights(resumed), weights(whole))
    judges = (loop.method.tools.verifier.verifier.policy.model.state_dict() for loop in (resumed, whole))
    assert same(*judges)
    assert without_seconds(metrics_of(tmp_path / "killed")) == without_seconds(rows)
