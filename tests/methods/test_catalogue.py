import pytest

from smalt.methods.catalogue import METHODS, find_method, section_of
from smalt.methods.method import Method, MethodSettings


def test_every_method_says_what_it_needs():
    for name, method in METHODS.items():
        assert issubclass(method, Method)
        assert issubclass(method.settings_class, MethodSettings)
        made = method(method.settings_class())
        assert made.shape.branching[0] > 1, name
        assert section_of(name) == name


def test_a_method_of_ones_own_is_found_in_the_working_directory(tmp_path, monkeypatch):
    (tmp_path / "halfway_house.py").write_text(
        "from smalt.methods.grpo import GRPO\nclass HalfWay(GRPO):\n    pass\nnumber = 1\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert find_method("halfway_house:HalfWay").__name__ == "HalfWay"
    assert section_of("halfway_house:HalfWay") == "own_method"
    for name in ("halfway_house:number", "halfway_house:Nobody"):
        with pytest.raises(ValueError, match=r"extends smalt\.methods\.method\.Method"):
            find_method(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [("ppo", "'ppo' is unknown; known are cobalt, grpo"), ("no_such_module:X", "cannot be imported")],
)
def test_unknown_methods_are_refused(name, message):
    with pytest.raises(ValueError, match=message):
        find_method(name)
