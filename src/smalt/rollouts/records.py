"""Trajectories and contexts as they lie on disk: plain records and their Parquet schemas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from smalt.dialogue.chat import Prompt
from smalt.grading.verdicts import Grade, PublicResult
from smalt.rollouts.tree import Node

TRAJECTORY_SCHEMA_VERSION = "smalt-trajectories/1"
CONTEXT_SCHEMA_VERSION = "smalt-contexts/1"


@dataclass(frozen=True)
class PublicOutcome:
    """What a program did on one public test."""

    status: str
    output: str
    error: str


@dataclass(frozen=True)
class TurnRecord:
    """One turn: what was sampled, the verdicts, and the feedback that followed."""

    completion_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    is_finished: bool
    reply: str
    program: str | None
    public: tuple[PublicOutcome, ...]
    hidden: tuple[str, ...]
    """Status of each hidden test; empty without a program."""
    pass_rate: float
    """Over public and hidden tests together."""
    passes_public: bool
    passes_hidden: bool
    is_infra_error: bool
    feedback: str
    """What the policy is told after this turn."""

    @property
    def passes_all(self) -> bool:
        """Whether every test passed."""
        return self.passes_public and self.passes_hidden


@dataclass(frozen=True)
class Trajectory:
    """One dialogue of a problem."""

    problem_id: str
    sample: int
    turns: tuple[TurnRecord, ...]

    @property
    def spread(self) -> float:
        """Largest minus smallest pass rate over the turns (METHODS 1.3)."""
        rates = [turn.pass_rate for turn in self.turns]
        return max(rates) - min(rates)

    @property
    def has_infra_error(self) -> bool:
        """Whether the grader failed at some turn: nothing is concluded from such a dialogue."""
        return any(turn.is_infra_error for turn in self.turns)

    @property
    def is_solved(self) -> bool:
        """Whether some turn passed every test."""
        return any(turn.passes_all for turn in self.turns)


@dataclass(frozen=True)
class Context:
    """A partial trajectory to train on: the policy writes only the next program."""

    problem_id: str
    sample: int
    """Trajectory it was cut from; -1 for the bare problem."""
    attempts: int
    """Programs in the prompt."""
    previous_best: float
    """Best pass rate among those programs; 0 for the bare problem."""
    prompt_ids: tuple[int, ...]

    @property
    def prompt(self) -> Prompt:
        """The prompt as the root of a tree; the messages behind it are not kept."""
        return Prompt(self.prompt_ids, (), self.prompt_ids)


def turn_record(node: Node, feedback: str) -> TurnRecord:
    """A node as a record."""
    grade = node.grade
    return TurnRecord(
        completion_ids=node.completion.ids,
        logprobs=node.completion.logprobs,
        is_finished=node.completion.is_finished,
        reply=node.reply,
        program=node.program,
        public=_public_outcomes(grade),
        hidden=tuple(result.status.value for result in grade.hidden) if grade is not None else (),
        pass_rate=node.pass_rate,
        passes_public=node.passes_public,
        passes_hidden=node.passes_hidden,
        is_infra_error=node.is_infra_error,
        feedback=feedback,
    )


def _public_outcomes(grade: Grade | None) -> tuple[PublicOutcome, ...]:
    results: Sequence[PublicResult] = grade.public if grade is not None else ()
    return tuple(PublicOutcome(result.status.value, result.output, result.error) for result in results)


_TURN_TYPE = pa.struct(
    [
        ("completion_ids", pa.list_(pa.int32())),
        ("logprobs", pa.list_(pa.float32())),
        ("is_finished", pa.bool_()),
        ("reply", pa.string()),
        ("program", pa.string()),
        (
            "public",
            pa.list_(pa.struct([("status", pa.string()), ("output", pa.string()), ("error", pa.string())])),
        ),
        ("hidden", pa.list_(pa.string())),
        ("pass_rate", pa.float64()),
        ("passes_public", pa.bool_()),
        ("passes_hidden", pa.bool_()),
        ("is_infra_error", pa.bool_()),
        ("feedback", pa.string()),
    ]
)
TRAJECTORY_SCHEMA = pa.schema(
    [("problem_id", pa.string()), ("sample", pa.int32()), ("turns", pa.list_(_TURN_TYPE))],
    metadata={"schema": TRAJECTORY_SCHEMA_VERSION},
)
CONTEXT_SCHEMA = pa.schema(
    [
        ("problem_id", pa.string()),
        ("sample", pa.int32()),
        ("attempts", pa.int32()),
        ("previous_best", pa.float64()),
        ("prompt_ids", pa.list_(pa.int32())),
    ],
    metadata={"schema": CONTEXT_SCHEMA_VERSION},
)


def trajectory_row(trajectory: Trajectory) -> dict[str, Any]:
    """A trajectory as a row of `TRAJECTORY_SCHEMA`."""
    row = asdict(trajectory)
    for turn in row["turns"]:
        for key in ("reply", "program", "feedback"):
            turn[key] = _storable(turn[key])
        for outcome in turn["public"]:
            outcome["output"], outcome["error"] = _storable(outcome["output"]), _storable(outcome["error"])
    return row


def trajectory_from_row(row: dict[str, Any]) -> Trajectory:
    """A row of `TRAJECTORY_SCHEMA` as a trajectory."""
    turns = tuple(_turn_from_row(turn) for turn in row["turns"])
    return Trajectory(row["problem_id"], row["sample"], turns)


def _turn_from_row(turn: dict[str, Any]) -> TurnRecord:
    sequences = {key: tuple(turn[key]) for key in ("completion_ids", "logprobs", "hidden")}
    public = tuple(PublicOutcome(**outcome) for outcome in turn["public"])
    return TurnRecord(**{**turn, **sequences, "public": public})


def _storable(text: str | None) -> str | None:
    """Parquet strings are UTF-8: a program's lone surrogates become replacement characters."""
    return None if text is None else text.encode("utf-8", "replace").decode("utf-8")
