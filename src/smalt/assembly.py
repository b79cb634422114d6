"""Put the parts of a run together from its settings."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel

from smalt.dialogue.chat import ChatFormat
from smalt.files import write_text
from smalt.grading.grader import Grader
from smalt.policy.loading import Policy
from smalt.policy.local_sampler import LocalSampler
from smalt.rollouts.collection import CollectionSettings
from smalt.rollouts.growth import Growth
from smalt.sandbox.forkserver import ForkServerSandbox
from smalt.settings import DialogueSettings, GraderSettings, SettingsError, dump_settings


@contextmanager
def open_grader(settings: GraderSettings) -> Iterator[Grader]:
    """A grader with a sandbox of its own; no process is left behind."""
    sandbox = ForkServerSandbox(workers=settings.workers)
    try:
        yield Grader(sandbox, default_limits=settings.limits, workers=settings.workers)
    finally:
        sandbox.close()


def make_chat(policy: Policy, dialogue: DialogueSettings) -> ChatFormat:
    """The chat format of a policy under a recipe's dialogue settings."""
    return ChatFormat(
        policy.tokenizer,
        system=dialogue.wording.system,
        reply_prefix=dialogue.reply_prefix,
        history_limit=dialogue.history_limit,
        template_options=dialogue.template_options,
        model_stop_ids=policy.stop_ids,
    )


def make_growth(policy: Policy, dialogue: DialogueSettings, grader: Grader, settings: CollectionSettings) -> Growth:
    """Growth with the local sampler."""
    return Growth(
        chat=make_chat(policy, dialogue),
        wording=dialogue.wording,
        sampler=LocalSampler(policy),
        grader=grader,
        sampling=settings.sampling,
        max_failing_tests=dialogue.max_failing_tests,
        show_public_tests=dialogue.show_public_tests,
    )


def claim_folder(folder: Path, settings: BaseModel) -> None:
    """Write the settings into a folder; refuse a folder that belongs to other settings."""
    config = folder / "config.yaml"
    text = dump_settings(settings)
    if config.exists() and config.read_text(encoding="utf-8") != text:
        raise SettingsError(
            f"{config} holds other settings than this command: "
            f"resume with the same settings, or choose another --out\n{_difference(config, text)}"
        )
    write_text(config, text)


def _difference(config: Path, text: str) -> str:
    """The lines in which the settings differ."""
    old = config.read_text(encoding="utf-8").splitlines()
    lines = list(difflib.unified_diff(old, text.splitlines(), "there", "here", lineterm="", n=1))
    return "\n".join(lines[:40])
