import pytest

from smalt.dialogue.chat import Prompt
from smalt.grading.extraction import Extraction
from smalt.grading.verdicts import Grade, HiddenResult, PublicResult, Status
from smalt.policy.sampling import Completion
from smalt.rollouts.tree import Node, Tree

PROMPT = Prompt((1, 2), (), (1, 2))


def node(problem, name, *children, grade=None):
    made = Node(problem, PROMPT, Completion((1,), (-0.1,), True), name, Extraction("pass"), grade)
    for child in children:
        child.parent = made
        made.children.append(child)
    return made


@pytest.fixture
def tree(problem):
    a = node(problem, "a", node(problem, "c"), node(problem, "d", node(problem, "f")))
    b = node(problem, "b", node(problem, "e"))
    return Tree(problem, PROMPT, children=[a, b])


def names(nodes):
    return "".join(found.reply for found in nodes)


def test_nodes_come_level_by_level(tree):
    assert names(tree.nodes()) == "abcdef"


def test_groups_are_the_samples_of_one_prompt(tree):
    assert [names(group) for group in tree.groups()] == ["ab", "cd", "e", "f"]


def test_chains_lead_to_each_leaf(tree):
    assert sorted(map(names, tree.chains())) == ["ac", "adf", "be"]
    assert names(tree.children[0].children[1].children[0].path()) == "adf"


def test_an_ungrown_tree_is_empty(problem):
    tree = Tree(problem, PROMPT)
    assert [list(tree.nodes()), list(tree.groups()), tree.chains()] == [[], [], []]


def test_a_node_without_a_program_passes_nothing(problem):
    bare = node(problem, "no code")
    assert bare.pass_rate == 0
    assert not (bare.passes_public or bare.passes_hidden or bare.passes_all or bare.is_infra_error)


def test_verdicts_of_a_node(problem):
    public = PublicResult(problem.public_tests[0], Status.PASSED, "[2, 3]")
    half = node(problem, "half", grade=Grade((public,), (HiddenResult(Status.WRONG_ANSWER),)))
    assert (half.passes_public, half.passes_hidden, half.passes_all, half.pass_rate) == (True, False, False, 0.5)
    broken = node(problem, "broken", grade=Grade((public,), (HiddenResult(Status.INFRA_ERROR),)))
    assert broken.is_infra_error
    assert not broken.passes_all
