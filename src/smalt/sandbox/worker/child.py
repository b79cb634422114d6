"""What the forked child does: run one program on the inputs it is handed, each from a fresh namespace, and report.

Runs share the process unless the job says otherwise, so modules stay imported and their state stays changed
between the inputs; what commonly accumulates (random state, replaced builtins, streams, recursion limit) is
reset. Other state is set again by the same statements of the same program. A run that leaves threads behind
or used up memory is the child's last.

Everything here runs in the program's reach. That is why it reports answers, never verdicts, and why times and
limits are the server's.
"""

from __future__ import annotations

import _thread
import atexit
import builtins
import json
import marshal
import os
import random
import resource
import sys
import threading
from collections.abc import Callable
from types import CodeType
from typing import Any

from smalt.sandbox.worker import limits, streams, tracebacks, values
from smalt.sandbox.worker.compiling import Compiled, compile_program, load_code, text_of
from smalt.sandbox.worker.messages import FAILED, PASSED, READY, WORN
from smalt.sandbox.worker.modules import ProgramModule, find_entry_point
from smalt.sandbox.worker.requests import MAX_VALUE_BYTES, Kind, Request

RECURSION_LIMIT = 50_000
"""As LiveCodeBench sets it; the server's stack has room for it (`start`)."""
to_json = json.JSONEncoder(check_circular=False, separators=(",", ":")).encode
# Members of an enumeration are slow to look up; see `launching`.
_STDIN, _CALL, _CODE = int(Kind.STDIN), int(Kind.CALL), int(Kind.CODE)
_ORIGINALS: dict[str, Any] = {}


class ChildRun:
    """One child's work on a job."""

    def __init__(self, request: Request, ready: streams.Streams) -> None:
        """The `ready` streams are for the first run, made before the fork."""
        self._request = request
        self._streams: streams.Streams | None = ready
        self._is_first_run = True
        # As `limits.set_limits` leaves it.
        self._has_room_to_report = False

    def run(self, program: bytes, code: bytes = b"") -> None:
        """Run input after input until the server has no more; `code` is what `leave_code` left, if anything."""
        compiled: Compiled | None = None
        os.write(streams.CHANNEL, READY)
        while kind := os.read(streams.CHANNEL, 1):
            if compiled is None:
                # Only now: it takes the time of the first run.
                compiled = load_code(code) or compile_program(program)
                # For programs that print their own tracebacks.
                tracebacks.remember_source(tracebacks.PROGRAM_FILE, text_of(program))
            result = self.run_input(compiled, program, kind[0])
            message = self.message(result)
            if message != PASSED or len(result) > 1:
                self.report(result)
            # With the most memory used so far, in KiB.
            os.write(streams.CHANNEL, b"%b%d" % (message, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))

    def message(self, result: dict[str, Any]) -> bytes:
        """What to tell the server of a result."""
        if result["outcome"] == "memory_limit" or _thread._count() > 0:
            return WORN
        return PASSED if result["outcome"] == "ok" else FAILED

    def run_input(self, code: Compiled, program: bytes, kind: int) -> dict[str, Any]:
        """Run the program on the input at hand, of this kind; returns its result."""
        self.begin()
        payload = b"" if kind == _STDIN else streams.take_input()
        if isinstance(code, BaseException):
            return failure("memory_limit" if isinstance(code, MemoryError) else "compile_error", code)
        module = ProgramModule("__main__" if kind == _STDIN else "solution")
        return self._finish(self._run(code, module.namespace, program, kind, payload), module)

    def _run(
        self, code: CodeType, namespace: dict[str, Any], program: bytes, kind: int, payload: bytes
    ) -> dict[str, Any]:
        try:
            return {"outcome": "ok", **_RUNNERS[kind](code, namespace, payload)}
        except BaseException as error:
            return self._failed(error, program, kind, payload)

    def _failed(self, error: BaseException, program: bytes, kind: int, payload: bytes) -> dict[str, Any]:
        if isinstance(error, SystemExit) and kind == _STDIN and not error.code:
            return {"outcome": "ok"}
        self._has_room_to_report = True
        limits.raise_soft(resource.RLIMIT_AS)
        tracebacks.remember_source(tracebacks.PROGRAM_FILE, text_of(program))
        if kind == _CODE:
            tracebacks.remember_source(tracebacks.TEST_FILE, marshal.loads(payload)[0])
        return failure("memory_limit" if isinstance(error, MemoryError) else "runtime_error", error)

    def _finish(self, result: dict[str, Any], module: ProgramModule) -> dict[str, Any]:
        """Do what the interpreter does at its end, in its order."""
        assert self._streams is not None
        finish_program()
        lost_output = streams.flush(self._streams)
        streams.install(self._streams)
        module.discard()
        # What finalizers printed.
        lost_output = self.end_streams() or lost_output
        if lost_output is not None and result["outcome"] == "ok":
            return failure("runtime_error", lost_output)
        return result

    def end_streams(self) -> BaseException | None:
        """Flush the streams of this run; returns what went wrong."""
        assert self._streams is not None
        lost_output = streams.flush(self._streams)
        self._streams = None
        return lost_output

    def begin(self) -> None:
        """Set limits, streams and state for one run."""
        if not self._is_first_run:
            reset_state()
        if self._has_room_to_report:
            limits.lower_soft(resource.RLIMIT_AS, self._request.memory_bytes)
            limits.lower_soft(resource.RLIMIT_FSIZE, self._request.output_bytes + 1)
        self._is_first_run = self._has_room_to_report = False
        streams.connect()
        if self._streams is None:
            self._streams = streams.make_streams()
        streams.install(self._streams)

    def report(self, result: dict[str, Any]) -> None:
        """Write the result where the server finds it."""
        data = to_json(result).encode()
        if len(data) > self._request.output_bytes:
            self._has_room_to_report = True
            limits.raise_soft(resource.RLIMIT_FSIZE)
        streams.write_all(streams.REPORT, data)


def prepare_state() -> None:
    """Set in the server what every first run starts from; each child would pay for it again."""
    sys.setrecursionlimit(RECURSION_LIMIT)
    random.seed(0)
    _ORIGINALS.update({name: getattr(builtins, name) for name in ("print", "input", "open")})


def reset_state() -> None:
    """Undo what the run before may have left in the process."""
    sys.setrecursionlimit(RECURSION_LIMIT)
    random.seed(0)
    for name, original in _ORIGINALS.items():
        if getattr(builtins, name, None) is not original:
            setattr(builtins, name, original)


def failure(outcome: str, error: BaseException) -> dict[str, Any]:
    """Return the result of a run that ended in `error`."""
    if isinstance(error, SystemExit) and isinstance(error.code, str):
        text = error.code
    else:
        try:
            text = tracebacks.error_text(error)
        except BaseException:  # a hostile __str__, or no memory left to format anything
            text = ""
    return {"outcome": outcome, "error": text, "error_type": type(error).__name__}


def finish_program() -> None:
    """Wait for the program's threads and call its exit functions."""
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()


def _run_script(code: CodeType, namespace: dict[str, Any], payload: bytes) -> dict[str, Any]:
    exec(code, namespace)
    return {}


def _run_call(code: CodeType, namespace: dict[str, Any], payload: bytes) -> dict[str, Any]:
    exec(code, namespace)
    name, args = marshal.loads(payload)
    value = find_entry_point(namespace, name)(*args)
    encoded = values.encode(value)
    if len(to_json(encoded)) > MAX_VALUE_BYTES:
        return {"outcome": "output_limit", "error": "the returned value is too large"}
    return {"value": encoded}


def _run_test_code(code: CodeType, namespace: dict[str, Any], payload: bytes) -> dict[str, Any]:
    exec(code, namespace)
    exec(compile(marshal.loads(payload)[0], tracebacks.TEST_FILE, "exec", dont_inherit=True), namespace)
    return {}


_RUNNERS: dict[int, Callable[[CodeType, dict[str, Any], bytes], dict[str, Any]]] = {
    _STDIN: _run_script,
    _CALL: _run_call,
    _CODE: _run_test_code,
}
