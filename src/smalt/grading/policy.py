"""How much running a verdict takes: what is run again, what is audited, when a program's time is up."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields

from pydantic import BaseModel, ConfigDict, Field


class GradingPolicy(BaseModel):
    """The grader's settings; `docs/grading.md` gives the reasons for the defaults."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stops_at_first_failure: bool = Field(
        False, description="Whether tests after the first confirmed failure are skipped (all-or-nothing rewards)."
    )
    audit_share: float = Field(
        0.01, ge=0, le=1, description="Share of passes run again in a process of their own, chosen by a digest."
    )
    program_budget: float = Field(
        10.0,
        gt=0,
        description="Time of one program over all its tests, CPU and wall, in limits of one test; as much for re-runs.",
    )

    def audited(self, problem_id: str, program: str, tests: int) -> frozenset[int]:
        """Return the tests of a problem on which a pass of this program is audited: the same ones everywhere."""
        if self.audit_share in (0, 1):
            return frozenset(range(tests) if self.audit_share else ())
        digest = hashlib.sha256(f"{problem_id}\0{program}".encode("utf-8", "surrogatepass")).digest()
        limit = self.audit_share * 2**64
        return frozenset(index for index in range(tests) if _draw(digest, index) < limit)


def _draw(digest: bytes, index: int) -> int:
    """Return 64 random bits that only the digest and the index decide."""
    return int.from_bytes(hashlib.sha256(digest + index.to_bytes(4, "big")).digest()[:8], "big")


@dataclass(frozen=True)
class GraderStatistics:
    """What grading took, over one program or many; sums of these are made with `+`."""

    programs: int = 0
    """Programs run; those whose grade was remembered are in `remembered`."""
    remembered: int = 0
    tests: int = 0
    """Tests run, each counted once."""
    separate_runs: int = 0
    """Runs in a process of their own, to confirm a failure or to audit a pass."""
    failures_overturned: int = 0
    """Tests that failed in the batch and passed separately."""
    passes_overturned: int = 0
    """Tests that passed in the batch and failed separately."""
    failures_unconfirmed: int = 0
    """Failures that stand without a run of their own: see the policy."""
    infra_retries: int = 0
    """Runs made again because the sandbox failed."""
    infra_errors: int = 0
    """Programs without a verdict, because the sandbox failed twice."""
    low_trust: int = 0
    """Programs whose verdicts are of low trust."""

    @property
    def disagreements(self) -> int:
        """Tests on which batch and separate run disagree."""
        return self.failures_overturned + self.passes_overturned

    def remarks(self) -> list[str]:
        """What somebody who relies on these verdicts should know, as sentences; none when all is well."""
        found = []
        if self.disagreements:
            found.append(
                f"{self.disagreements} tests ended otherwise in a process of their own than among others, "
                "and were decided by the former: programs that keep state"
            )
        if self.low_trust:
            found.append(
                f"{self.low_trust} programs were judged by test code in their own process, and could forge a pass: "
                "see docs/sandbox.md"
            )
        return found

    def __add__(self, other: GraderStatistics) -> GraderStatistics:
        """Return the sums, field by field."""
        sums = {item.name: getattr(self, item.name) + getattr(other, item.name) for item in fields(self)}
        return GraderStatistics(**sums)
