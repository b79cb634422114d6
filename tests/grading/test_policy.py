import pytest
from pydantic import ValidationError

from smalt.grading.policy import GraderStatistics, GradingPolicy


def test_audits_are_the_same_everywhere() -> None:
    # Fixed by the digest, not by the process: a change here changes which passes every run audits.
    assert GradingPolicy(audit_share=0.3).audited("p", "print(1)", 20) == {5, 6, 9, 12, 16}


@pytest.mark.parametrize("share", [0.0, 0.01, 0.2, 1.0])
def test_the_share_is_kept(share: float) -> None:
    policy = GradingPolicy(audit_share=share)
    drawn = sum(len(policy.audited(f"p{number}", "program", 5)) for number in range(2000))
    assert drawn / 10_000 == pytest.approx(share, abs=0.01)


def test_hostile_programs_can_be_drawn() -> None:
    assert GradingPolicy(audit_share=0.5).audited("p", "\ud800\0", 3) <= {0, 1, 2}


def test_bad_settings_are_refused() -> None:
    for settings in ({"audit_share": 2}, {"program_budget": 0}, {"audit": 1}):
        with pytest.raises(ValidationError, match=next(iter(settings))):
            GradingPolicy(**settings)


def test_statistics_add_up() -> None:
    total = GraderStatistics(programs=1, failures_overturned=2) + GraderStatistics(programs=2, passes_overturned=3)
    assert total == GraderStatistics(programs=3, failures_overturned=2, passes_overturned=3)
    assert total.disagreements == 5


def test_remarks_say_what_verdicts_depend_on_beside_the_program() -> None:
    assert GraderStatistics(programs=5).remarks() == []
    disagreed, forgeable = GraderStatistics(failures_overturned=2, low_trust=3).remarks()
    assert disagreed.startswith("2 tests ended otherwise in a process of their own")
    assert forgeable.startswith("3 programs were judged by test code in their own process")
