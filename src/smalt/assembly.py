"""Put the parts of a run together from its settings."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from smalt.credit.estimators import Estimator
from smalt.dialogue.chat import ChatFormat
from smalt.files import write_text
from smalt.grading.grader import Grader
from smalt.methods.method import Method, MethodTools
from smalt.policy.adapters import add_adapters
from smalt.policy.layouts import Row
from smalt.policy.loading import Policy
from smalt.policy.local_sampler import LocalSampler
from smalt.policy.reference import ReferencePolicy
from smalt.policy.sampling import SamplerSettings
from smalt.rollouts.collection import CollectionSettings
from smalt.rollouts.growth import Growth
from smalt.rollouts.tree import Node
from smalt.sandbox.forkserver import ForkServerSandbox
from smalt.settings import DialogueSettings, GraderSettings, RunSettings
from smalt.training.learner import Learner
from smalt.training.turn_value import attach_value_head
from smalt.training.verifier_training import VerifierTrainer
from smalt.yaml_settings import SettingsError, dump_settings, read_yaml

_CONFIG = "config.yaml"
"""In a run's folder: its settings."""


@contextmanager
def open_grader(settings: GraderSettings) -> Iterator[Grader]:
    """A grader with a sandbox of its own; no process is left behind."""
    sandbox = ForkServerSandbox(workers=settings.workers)
    try:
        yield Grader(sandbox, settings.limits, settings.workers, policy=settings.policy)
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


def make_growth(
    policy: Policy,
    dialogue: DialogueSettings,
    sampler: SamplerSettings,
    grader: Grader,
    settings: CollectionSettings,
) -> Growth:
    """Growth with the local sampler."""
    return Growth(
        chat=make_chat(policy, dialogue),
        wording=dialogue.wording,
        sampler=LocalSampler(policy, sampler),
        grader=grader,
        sampling=settings.sampling,
        max_failing_tests=dialogue.max_failing_tests,
        show_public_tests=dialogue.show_public_tests,
    )


def make_method_and_learner(settings: RunSettings, policy: Policy, folder: Path) -> tuple[Method[Any], Learner]:
    """The recipe's method and the learner of `policy`, with the reference policy that either of them needs.

    Where the recipe asks for adapters, `policy` gets them here. A verifier, where the method trains one, begins as a
    copy of the policy, with adapters of its own, and keeps its states in the run's `folder`.
    """
    training = settings.training
    verifier = _verifier(settings, policy, folder / "verifiers") if settings.method_class.learns_verifier else None
    adapt(policy, settings)
    needs_reference = training.loss.kl_coefficient > 0 or settings.make_method().needs_reference
    reference = ReferencePolicy(policy) if needs_reference else None
    if settings.method_class.learns_values:
        attach_value_head(policy.model)
    learner = Learner(policy, reference, training.optimiser, training.loss, training.sampling.temperature)
    return _method(settings, policy.tokenizer, reference, verifier), learner


def adapt(policy: Policy, settings: RunSettings) -> None:
    """Give the policy fresh adapters where the recipe asks for them."""
    if settings.model.lora is not None:
        add_adapters(policy, settings.model.lora, settings.seed)


def _verifier(settings: RunSettings, policy: Policy, folder: Path) -> VerifierTrainer:
    """The trainer of a verifier that begins as a copy of the policy."""
    twin = replace(policy, model=copy.deepcopy(policy.model))
    adapt(twin, settings)
    own = settings.make_method().settings.verifier
    return VerifierTrainer(twin, make_chat(policy, settings.dialogue), own, folder)


def _method(
    settings: RunSettings, tokenizer: Any, reference: ReferencePolicy | None, verifier: VerifierTrainer | None
) -> Method[Any]:
    """The method with the estimator and penalty that the recipe chose."""
    training = settings.training
    tools = MethodTools(
        tokenizer=tokenizer,
        is_thinking_model=settings.dialogue.is_thinking_model,
        estimator=Estimator(training.advantages, training.loss.oapl_beta),
        overlong=training.overlong,
        verifier=verifier,
    )
    if reference is not None:
        budget = training.optimiser.micro_batch_tokens
        tools = replace(tools, log_ratios=partial(_log_ratios, reference, training.sampling.temperature, budget))
    return settings.make_method(tools)


def _log_ratios(reference: ReferencePolicy, temperature: float, budget: int, nodes: Sequence[Node]) -> list[float]:
    """For each node the mean over its tokens of log pi / pi_ref, pi being the policy that sampled it.

    At most `budget` tokens are computed at a time.
    """
    rows = [Row(node.prompt.ids, node.completion.ids) for node in nodes]
    found = [0.0] * len(rows)
    for part in reference.micro_batches(rows, budget):
        scored = reference.row_logprobs([rows[place] for place in part], temperature)
        for place, total in zip(part, scored.logprobs.sum(1).tolist(), strict=True):
            own = nodes[place].completion
            found[place] = (sum(own.logprobs) - total) / len(own.ids)
    return found


def claim_folder(folder: Path, settings: BaseModel) -> None:
    """Write the settings into a folder; refuse a folder that belongs to other settings."""
    refuse_other_settings(folder, settings)
    write_text(folder / _CONFIG, dump_settings(settings))


def refuse_other_settings(folder: Path, settings: BaseModel) -> None:
    """Raise `SettingsError` for a folder that belongs to other settings; writes nothing.

    A setting that is newer than the folder has its default there: nothing else was possible when it was begun.
    """
    config = folder / _CONFIG
    if config.exists() and not _is_equal(config, settings):
        raise SettingsError(
            f"{config} holds other settings than this command: "
            f"resume with the same settings, or choose another --out\n{_difference(config, dump_settings(settings))}"
        )


def _is_equal(config: Path, settings: BaseModel) -> bool:
    try:
        return type(settings).model_validate(read_yaml(config)) == settings
    except (ValidationError, SettingsError):
        return False


def _difference(config: Path, text: str) -> str:
    """The lines in which the settings differ."""
    old = config.read_text(encoding="utf-8").splitlines()
    lines = list(difflib.unified_diff(old, text.splitlines(), "there", "here", lineterm="", n=1))
    return "\n".join(lines[:40])
