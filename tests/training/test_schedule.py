"""What is due after which step, and which steps are sampled ahead; budgets are tested with the loop."""

import pytest

from smalt.training.schedule import Schedule
from smalt.training.settings import TrainingBudget, TrainingSettings
from smalt.training.spending import Spent


def schedule(**changes):
    settings = TrainingSettings(**{"epochs": 1, "contexts_per_step": 1, "checkpoint_every": 3, **changes})
    return Schedule(settings, contexts=8, spent_before=Spent())


@pytest.mark.parametrize(("every", "due"), [(0, []), (1, [0, 1, 2, 3]), (3, [2, 3]), (9, [3])])
def test_what_is_due_after_the_last_step_always_is(every, due):
    assert [step for step in range(4) if schedule().is_due(every, step, steps=4)] == due


def test_steps_behind_a_checkpoint_and_behind_the_last_are_not_sampled_ahead():
    def ahead(**changes):
        return [step + 1 for step in range(8) if schedule(**changes).goes_ahead(step, Spent(), 5)]

    assert ahead(steps_ahead=0) == []
    assert ahead(steps_ahead=1) == [1, 2, 4, 5, 7]
    assert ahead(steps_ahead=1, max_steps=5) == [1, 2, 4]


def test_a_budget_of_tokens_is_foreseen_to_end():
    budgeted = schedule(steps_ahead=1, budget=TrainingBudget(sampled_tokens=100))
    assert budgeted.goes_ahead(0, Spent(sampled_tokens=60), sampled_tokens=39)
    assert not budgeted.goes_ahead(0, Spent(sampled_tokens=60), sampled_tokens=40)
