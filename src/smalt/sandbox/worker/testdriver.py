"""Runs test code against a program in another process, and reports how it ended.

This process holds the test and the channel that says how it went; the program has neither.
"""

from __future__ import annotations

import marshal
import re
from types import CodeType
from typing import Any

from smalt.sandbox.worker import streams, tracebacks
from smalt.sandbox.worker.child import ChildRun, failure, finish_program
from smalt.sandbox.worker.compiling import Compiled
from smalt.sandbox.worker.messages import UNSPLIT, WORN
from smalt.sandbox.worker.remote import CandidateGoneError, Program, UncompiledError, UnsplitError
from smalt.sandbox.worker.requests import ENDED, Request
from smalt.sandbox.worker.standins import Namespace

_UNSPLIT = "unsplit"
_MENTIONS_NAN = re.compile(r"\bnan|isnan|_nan", re.IGNORECASE)
NO_PROGRAM = marshal.dumps(compile("", "", "exec"))
"""Stands for the program's code, which this process does not have."""


class TestRun(ChildRun):
    """A child that runs test code instead of the program."""

    def __init__(self, request: Request, ready: streams.Streams) -> None:
        """The program is at the other end of the connection."""
        super().__init__(request, ready)
        self._program = Program(streams.CONNECTION)

    def message(self, result: dict[str, Any]) -> bytes:
        """What to tell the server of a result."""
        if result["outcome"] == ENDED:
            return WORN
        return UNSPLIT if result["outcome"] == _UNSPLIT else super().message(result)

    def run_input(self, code: Compiled, program: bytes, kind: int) -> dict[str, Any]:
        """Run the test code at hand; returns its result."""
        self.begin()
        source, entry_point = marshal.loads(streams.take_input())
        try:
            names = self._program.start_over(allows_nan=_MENTIONS_NAN.search(source) is not None)
            namespace = Namespace(self._program, entry_point, names)
            exec(_compiled_test(source), namespace)
            result = {"outcome": "ok"}
        except UncompiledError as error:
            result = error.said
        except UnsplitError:
            result = {"outcome": _UNSPLIT}
        except CandidateGoneError:
            result = {"outcome": ENDED}
        except BaseException as error:
            result = _failed(error, source)
        finish_program()
        self.end_streams()
        return {**result, "is_low_trust": self._program.has_judged}


def _compiled_test(source: str) -> CodeType:
    return compile(source, tracebacks.TEST_FILE, "exec", dont_inherit=True)


def _failed(error: BaseException, source: str) -> dict[str, Any]:
    tracebacks.remember_source(tracebacks.TEST_FILE, source)
    result = failure("memory_limit" if isinstance(error, MemoryError) else "runtime_error", error)
    # Where the program raised, its own traceback tells more than the test's.
    return {**result, **error.__dict__.get("said", {})}
