from smalt.rollouts.growth import Shape
from smalt.training.groups import training_groups
from tests.conftest import drop_first
from tests.scripted import NO_CODE, RIGHT, WRONG, scripted_growth


def test_siblings_stand_together_and_those_without_an_advantage_leave(chat):
    growth = scripted_growth(chat, [WRONG, NO_CODE], [RIGHT, WRONG, RIGHT, RIGHT])
    tree = growth.seed_of(drop_first())
    growth.grow([tree], Shape((2, 2)), seed=0)
    nodes = list(tree.nodes())
    groups = training_groups(zip(nodes, [1.0, -1.0, 0.5, None, None, None], strict=True))
    assert [(group.turn, group.advantages) for group in groups] == [(1, (1.0, -1.0)), (2, (0.5,))]
    assert groups[0].prompt_ids == tree.root.ids
    assert groups[1].prompt_ids == nodes[2].prompt.ids
    assert groups[1].completions == (nodes[2].completion,)
