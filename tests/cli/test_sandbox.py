import pytest
from click.testing import CliRunner

from smalt.cli.sandbox import sandbox
from smalt.sandbox import forkserver
from smalt.sandbox.isolation import Isolation, Layer, Level


class Scripted:
    """A sandbox on a machine without namespaces."""

    isolation = Isolation(
        present={Layer.LIMITS: "memory", Layer.NO_NEW_PRIVILEGES: "", Layer.SECCOMP: "", Layer.LANDLOCK: "version 3"},
        missing={Layer.NAMESPACES: "unshare: Operation not permitted", Layer.EMPTY_ROOT: "it needs namespaces"},
    )

    def __init__(self, workers: int, require: Level) -> None:
        assert require is Level.NONE

    def __enter__(self):
        return self

    def __exit__(self, *ended):
        return None


@pytest.fixture
def without_namespaces(monkeypatch):
    monkeypatch.setattr(forkserver, "ForkServerSandbox", Scripted)


def run(*arguments):
    return CliRunner().invoke(sandbox, ["doctor", *arguments])


def test_every_layer_is_shown_with_what_a_missing_one_means(without_namespaces):
    result = run()
    assert result.exit_code == 0
    assert all(str(layer) in result.stdout for layer in Layer)
    assert "present  landlock (version 3)" in result.stdout
    assert "missing  namespaces: unshare: Operation not permitted" in result.stdout
    assert "without it: seccomp alone keeps programs off" in result.stdout
    assert "max_user_namespaces" in result.stdout
    assert result.stdout.endswith("level: minimum\n")


@pytest.mark.parametrize(("level", "status"), [("none", 0), ("minimum", 0), ("strong", 1), ("full", 1)])
def test_the_status_tells_whether_a_level_is_reached(without_namespaces, level, status):
    result = run("--require", level)
    assert result.exit_code == status
    assert ("missing: namespaces, empty root, own user" in result.stderr) == bool(status)


def test_an_unknown_level_is_a_sentence(without_namespaces):
    result = run("--require", "total")
    assert result.exit_code == 2
    assert "'none', 'minimum', 'strong', 'full'" in result.stderr


def test_on_this_machine():
    result = run("--require", "minimum")
    assert result.exit_code == 0
    assert "present  seccomp" in result.stdout
