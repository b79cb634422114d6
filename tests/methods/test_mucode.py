"""muCode: every visited state gets the problem's best program; the verifier decides where tests do not."""

import pytest

from smalt.lab.demo import DEMO_RECIPE
from smalt.methods.method import MethodTools
from smalt.methods.mucode import MuCode, MuCodeSettings
from smalt.settings import load_recipe
from smalt.yaml_settings import SettingsError
from tests.methods.trees import ALL_WRONG, BROKEN, HALF, grow
from tests.scripted import NO_CODE, RIGHT, WRONG


class Likes:
    """A verifier that likes one text."""

    def __init__(self, liked=""):
        self.liked = liked
        self.fitted = []

    def scores(self, nodes):
        return [float(self.liked in (node.program or "")) for node in nodes]

    def fit(self, trees):
        self.fitted.append(list(trees))
        return {"verifier_loss": 0.5}


def mucode(verifier=None, **options):
    return MuCode(MuCodeSettings(**{"group_size": 2, "turns": 2, **options}), MethodTools(verifier=verifier))


def states(groups):
    return [(group.turn, group.prompt_ids) for group in groups]


def test_every_visited_state_imitates_the_best_program(chat, problem):
    tree = grow(chat, problem, mucode(), [WRONG, NO_CODE], [NO_CODE, RIGHT])
    groups = mucode().credit(tree)
    best = tree.children[1].children[0]
    assert best.reply == RIGHT
    after_first, after_second = (node.children[0].prompt.ids for node in tree.children)
    assert states(groups) == [(1, tree.root.ids), (2, after_first), (2, after_second)]
    assert all(group.completions == (best.completion,) for group in groups)
    assert all(group.advantages == (1.0,) for group in groups)
    assert [node.reward for node in tree.nodes()] == [0, 0, 0, 1]


def test_correct_programs_come_before_the_verifiers_favourites(chat, problem):
    tree = grow(chat, problem, mucode(), [WRONG, RIGHT], [RIGHT])
    groups = mucode(Likes("x[:-1]")).credit(tree)
    assert {group.completions for group in groups} == {(tree.children[1].completion,)}


def test_the_verifier_names_the_best_of_what_is_alike(chat, problem):
    tree = grow(chat, problem, mucode(), [ALL_WRONG, WRONG], [HALF, NO_CODE])
    for liked, best in (("[0]", ALL_WRONG), ("if x", HALF), ("nothing", ALL_WRONG)):
        [reply] = {chat.reply_text(c.ids) for group in mucode(Likes(liked)).credit(tree) for c in group.completions}
        assert reply == best


def test_nothing_is_imitated_where_nothing_was_written(chat, problem):
    tree = grow(chat, problem, mucode(), [NO_CODE, NO_CODE], [NO_CODE, NO_CODE])
    assert mucode().credit(tree) == []
    tree = grow(chat, problem, mucode(turns=2), [BROKEN, NO_CODE], [BROKEN, NO_CODE], broken="list(x)")
    assert mucode().credit(tree) == []
    assert tree.children[0].reward is None


def test_dialogues_end_at_the_first_public_pass_and_may_search(chat, problem):
    tree = grow(chat, problem, mucode(group_size=1, best_of=2), [WRONG, RIGHT], [])
    assert [node.is_chosen for node in tree.children] == [False, True]
    assert len(mucode().credit(tree)) == 1


def test_the_verifier_learns_from_the_steps_trees(chat, problem):
    verifier = Likes()
    tree = grow(chat, problem, mucode(), [RIGHT, RIGHT], [])
    assert mucode(verifier).learn_from([tree]) == {"verifier_loss": 0.5}
    assert verifier.fitted == [[tree]]


def test_its_defaults_are_imitation():
    loss = load_recipe(DEMO_RECIPE, ["method=mucode"]).training.loss
    assert (loss.objective, loss.aggregation) == ("likelihood", "turns")


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        (("training.loss.objective=clipped",), "'clipped' does not go with MuCode"),
        (("training.advantages.estimator=rloo",), "MuCode computes advantages by its own formula"),
        (("training.overlong={max_tokens: 72, cache_tokens: 20}",), "MuCode has no reward to take from"),
        (("training.dynamic_sampling_rounds=2",), "every tree of MuCode trains"),
        (("mucode.verifier.pairs=0",), "mucode.verifier.pairs"),
    ],
)
def test_nonsense_is_refused(overrides, reason):
    with pytest.raises(SettingsError) as refused:
        load_recipe(DEMO_RECIPE, ["method=mucode", *overrides])
    assert reason in str(refused.value)


def test_imitation_is_for_methods_that_name_what_to_imitate():
    with pytest.raises(SettingsError, match="'likelihood' does not go with GRPO"):
        load_recipe(DEMO_RECIPE, ["method=grpo", "training.loss.objective=likelihood"])
