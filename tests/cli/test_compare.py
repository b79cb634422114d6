"""`smalt compare`: what it takes and what it refuses; the comparison itself is tested in tests/comparison."""

import pytest
from click.testing import CliRunner

from smalt.cli.main import main


def run(*arguments):
    return CliRunner().invoke(main, ["compare", *map(str, arguments)])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "--methods: missing"),
        (["--methods", "grpo"], "--tokens or --seconds"),
        (["--methods", "grpo,ppo", "--tokens", "9"], "'ppo' is unknown"),
        (["--methods", "grpo", "--tokens", "9", "--seconds", "9"], "exactly one of them"),
        (["--methods", "grpo", "--tokens", "9", "--set", "grpo.turns=2"], "grpo.turns: unknown field"),
        (["/no/such/file.yaml"], "/no/such/file.yaml: cannot be read"),
        (["--methods", "grpo", "--tokens", "0"], "--tokens"),
    ],
)
def test_bad_input_is_a_sentence(arguments, told, tmp_path):
    result = run(*arguments, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert told in result.output
    assert "Traceback" not in result.output
    assert not (tmp_path / "out").exists()


def test_a_folder_of_other_settings_is_refused(tmp_path):
    config = tmp_path / "grpo/seed-0/config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text("seed: 1\n")
    result = run("--methods", "grpo", "--tokens", "9", "--out", tmp_path)
    assert result.exit_code == 2
    assert "other settings" in result.output
    assert config.read_text() == "seed: 1\n"
