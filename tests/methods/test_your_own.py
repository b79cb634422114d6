"""The method that the documentation writes does what the page says."""

import re
from pathlib import Path

from smalt.lab.demo import DEMO_RECIPE
from smalt.methods.method import MethodTools
from smalt.settings import load_recipe
from smalt.yaml_settings import dump_settings
from tests.methods.trees import ALL_WRONG, THIRD, grow
from tests.scripted import NO_CODE, RIGHT, WRONG

PAGE = Path(__file__).parents[2] / "docs/methods/your-own.md"


def test_the_method_of_the_page_runs_and_fits_in_thirty_lines(chat, problem, tmp_path, monkeypatch):
    text = PAGE.read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(code.splitlines()) <= 30
    (tmp_path / "persistence_pays.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    overrides = re.findall(r"--set (method=\S+|own_method\S+)", text)
    settings = load_recipe(DEMO_RECIPE, [*overrides, "own_method.group_size=2"])
    method = settings.make_method(MethodTools())
    tree = grow(chat, problem, method, [RIGHT, WRONG], [RIGHT, ALL_WRONG])
    groups = method.credit(tree)
    credits = [node.credit for node in tree.nodes()]
    assert [round(c, 6) for c in credits] == [round(c, 6) for c in (1.5, 1.5 * THIRD, 1 + THIRD, -0.5 * THIRD)]
    assert [group.turn for group in groups] == [1, 2]
    (tmp_path / "config.yaml").write_text(dump_settings(settings))
    assert load_recipe(tmp_path / "config.yaml") == settings
    assert method.credit(grow(chat, problem, method, [NO_CODE] * 2, [NO_CODE] * 4)) == []
