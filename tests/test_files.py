from pathlib import Path

import pytest

from smalt.files import read_json, whole_folder, write_json, write_text


def test_values_come_back(tmp_path):
    path = tmp_path / "new" / "folder" / "summary.json"
    value = {"a": [1, 2.5, None], "ü": "\u2028 \ud800"}
    write_json(path, value)
    assert read_json(path) == value
    assert path.read_text().endswith("}\n")
    assert [file.name for file in path.parent.iterdir()] == ["summary.json"]


def test_a_missing_file_is_none(tmp_path):
    assert read_json(tmp_path / "summary.json") is None


def test_writing_replaces_the_whole_file(tmp_path):
    path = tmp_path / "config.yaml"
    write_text(path, "long text " * 100)
    write_text(path, "ü")
    assert path.read_text(encoding="utf-8") == "ü"


@pytest.mark.parametrize("method", ["write_text", "replace"])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, method):
    path = tmp_path / "summary.json"
    write_json(path, {"old": 1})

    def fail(self, *args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, method, fail)
    with pytest.raises(OSError, match="No space"):
        write_json(path, {"new": 2})
    monkeypatch.undo()
    assert read_json(path) == {"old": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["summary.json"]


def test_a_value_that_json_cannot_hold_leaves_the_old_file(tmp_path):
    path = tmp_path / "summary.json"
    write_json(path, {"old": 1})
    with pytest.raises(TypeError):
        write_json(path, {"new": {1, 2}})
    assert read_json(path) == {"old": 1}


def test_a_folder_replaces_the_one_there_when_it_is_whole(tmp_path):
    target = tmp_path / "model"
    for text in ("first", "second"):
        with whole_folder(target) as folder:
            folder.mkdir()
            (folder / f"{text}.txt").write_text(text)
            assert not (target / f"{text}.txt").exists()
    assert [path.name for path in target.iterdir()] == ["second.txt"]
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_folder_that_was_not_finished_leaves_the_one_there(tmp_path):
    target = tmp_path / "model"
    target.mkdir()
    with pytest.raises(ZeroDivisionError), whole_folder(target) as folder:
        folder.mkdir()
        (folder / "half").write_text("")
        raise ZeroDivisionError
    assert not any(target.iterdir())
    with whole_folder(target) as folder:
        assert not folder.exists()
        folder.mkdir()
    assert not any(target.iterdir())
