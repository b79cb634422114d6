"""The data sets by name, cheap ones first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.agreement import functions, programs, suites, transcripts
from benchmarks.agreement.cases import Case

DATA_SETS: dict[str, Callable[[Path], Iterator[Case]]] = {
    "humaneval": functions.humaneval,
    "mbpp": functions.mbpp,
    "mbpp_sanitized": functions.mbpp_sanitized,
    "humanevalpack": functions.humanevalpack,
    "quixbugs": functions.quixbugs,
    "cruxeval": functions.cruxeval,
    "leetcode": functions.leetcode,
    "kodcode": suites.kodcode,
    "exercism": suites.exercism,
    "apps_coderl": programs.apps_coderl,
    "kattis": programs.kattis,
    "codecontests_cf": programs.codecontests,
    "livecodebench_o1": programs.livecodebench,
    "apps150": programs.apps150,
    "ldb": transcripts.ldb,
    "codet": transcripts.codet,
    "humanevalplus": functions.humaneval_plus,
    "mbppplus": functions.mbpp_plus,
}
