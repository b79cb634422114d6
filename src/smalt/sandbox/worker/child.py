"""What the forked child does: run one program on its inputs, each from a fresh namespace, and report.

Runs share the process, so modules stay imported and their state stays changed between the inputs of a job;
what commonly accumulates (random state, replaced builtins, streams, recursion limit) is reset. Other state is
set again by the same statements of the same program. A run that leaves threads behind or used up memory is
the child's last.

Time limits end the process rather than raise in it, because programs swallow exceptions: a profiling timer
with its default action kills at the CPU limit, and the server watches the CPU clock from outside.
"""

from __future__ import annotations

import _thread
import atexit
import builtins
import json
import marshal
import math
import os
import random
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import CodeType, ModuleType
from typing import Any, NoReturn

from smalt.sandbox.worker import requests, streams, tracebacks, values
from smalt.sandbox.worker.frames import frame

RECURSION_LIMIT = 50_000
"""As LiveCodeBench sets it; the server's stack has room for it (`start`)."""
_OPEN_FILES = 128
# Room above the memory limit for reporting that it was reached.
_REPORT_MEMORY = 64 << 20
_to_json = json.JSONEncoder(check_circular=False, separators=(",", ":")).encode
_ORIGINALS: dict[str, Any] = {}


class ChildRun:
    """One child's work on a job."""

    def __init__(self, request: requests.ChildRequest, files: streams.ChildFiles, ready: streams.Streams) -> None:
        """Take the `ready` streams for the first run; making them before the fork was cheaper."""
        self._request = request
        self._files = files
        self._streams: streams.Streams | None = ready
        self._is_first_run = True

    def run(self, payload: bytes) -> NoReturn:
        """Run the inputs from `first` on and end the process."""
        job = marshal.loads(payload)
        self._set_limits()
        # From here on whatever happens is the program's doing; before it, the sandbox's.
        self._report({"event": "begin"})
        self._start_timer()
        code = _compiled(job["program"], tracebacks.PROGRAM_FILE)
        for item in job["inputs"][self._request.first :]:
            result = self._run_input(code, job["program"], item)
            self._report(result)
            if self._is_last(result):
                break
        self._report({"event": "end"})
        os._exit(0)

    def _is_last(self, result: dict[str, Any]) -> bool:
        return (
            (self._request.stop_at_first_failure and result["outcome"] != "ok")
            or result["outcome"] == "memory_limit"
            or _thread._count() > 0
            or os.fstat(self._files.report).st_size > requests.CHILD_REPORT_BYTES
        )

    def _run_input(self, code: CodeType | BaseException, program: str, item: dict[str, Any]) -> dict[str, Any]:
        cpu, thread_cpu, wall = time.process_time(), time.thread_time(), time.perf_counter()
        self._begin(item.get("stdin", ""))
        result = self._run_code(code, program, item)
        result["event"] = "run"
        # With a timer armed the kernel brings the process clock up to date at its ticks only.
        result["cpu"] = max(time.process_time() - cpu, time.thread_time() - thread_cpu)
        result["wall"] = time.perf_counter() - wall
        return result

    def _run_code(self, code: CodeType | BaseException, program: str, item: dict[str, Any]) -> dict[str, Any]:
        assert self._streams is not None
        if isinstance(code, BaseException):
            tracebacks.remember_source(tracebacks.PROGRAM_FILE, program)
            return _failure("compile_error", code)
        module = _fresh_module("__main__" if item["kind"] == "stdin" else "solution")
        try:
            value = _RUNNERS[item["kind"]](code, module.__dict__, item)
            result = {"outcome": "ok", **value}
        except BaseException as error:
            result = self._failed(error, program, item)
        result = self._finish(result, module)
        self._streams = None
        return result

    def _failed(self, error: BaseException, program: str, item: dict[str, Any]) -> dict[str, Any]:
        if isinstance(error, SystemExit) and item["kind"] == "stdin" and not error.code:
            return {"outcome": "ok"}
        _raise_soft_limit(resource.RLIMIT_AS)
        tracebacks.remember_source(tracebacks.PROGRAM_FILE, program)
        if item["kind"] == "code":
            tracebacks.remember_source(tracebacks.TEST_FILE, item["code"])
        return _failure("memory_limit" if isinstance(error, MemoryError) else "runtime_error", error)

    def _finish(self, result: dict[str, Any], module: ModuleType) -> dict[str, Any]:
        """Do what the interpreter does at its end, then add the output to `result`."""
        assert self._streams is not None
        _join_threads()
        atexit._run_exitfuncs()
        failure = streams.flush(self._streams)
        # Files the program left open are flushed when its names go.
        module.__dict__.clear()
        stdout, is_too_long = streams.take_output(self._files, self._request.output_bytes)
        if is_too_long:
            result = {"outcome": "output_limit", "error": "too much output"}
        elif failure is not None and result["outcome"] == "ok":
            result = _failure("runtime_error", failure)
        result["stdout"] = stdout
        return result

    def _begin(self, stdin: str) -> None:
        """Set limits, streams and state for one run."""
        if not self._is_first_run:
            _reset_state()
            _lower_soft_limit(resource.RLIMIT_AS, self._request.memory_bytes)
        self._is_first_run = False
        streams.connect(self._files, stdin)
        if self._streams is None:
            self._streams = streams.make_streams()
        streams.install(self._streams)
        _lower_soft_limit(resource.RLIMIT_FSIZE, self._request.output_bytes + 1)
        self._start_timer()

    def _start_timer(self) -> None:
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, self._request.cpu_seconds)

    def _report(self, event: dict[str, Any]) -> None:
        # Encoding runs under the time limit of its run: it is the program's value.
        data = _to_json(event).encode()
        signal.setitimer(signal.ITIMER_PROF, 0)
        _raise_soft_limit(resource.RLIMIT_FSIZE)
        streams.write_all(self._files.report, frame(data))

    def _set_limits(self) -> None:
        request = self._request
        total_cpu = math.ceil(request.cpu_seconds * (request.count - request.first)) + 2
        memory = request.memory_bytes
        for limit, soft, hard in (
            (resource.RLIMIT_CPU, total_cpu, total_cpu + 1),
            (resource.RLIMIT_AS, memory, memory + _REPORT_MEMORY),
            (resource.RLIMIT_FSIZE, requests.MAX_REPORT_BYTES, requests.MAX_REPORT_BYTES),
            (resource.RLIMIT_CORE, 0, 0),
            (resource.RLIMIT_NOFILE, _OPEN_FILES, _OPEN_FILES),
        ):
            resource.setrlimit(limit, (soft, hard))


def prepare_state() -> None:
    """Set in the server what every first run starts from; each child would pay for it again."""
    sys.setrecursionlimit(RECURSION_LIMIT)
    random.seed(0)
    _ORIGINALS.update({name: getattr(builtins, name) for name in ("print", "input", "open")})


def _reset_state() -> None:
    """Undo what the run before may have left in the process."""
    sys.setrecursionlimit(RECURSION_LIMIT)
    random.seed(0)
    for name, original in _ORIGINALS.items():
        if getattr(builtins, name, None) is not original:
            setattr(builtins, name, original)


def _raise_soft_limit(limit: int) -> None:
    hard = resource.getrlimit(limit)[1]
    resource.setrlimit(limit, (hard, hard))


def _lower_soft_limit(limit: int, soft: int) -> None:
    hard = resource.getrlimit(limit)[1]
    resource.setrlimit(limit, (min(soft, hard), hard))


def _compiled(source: str, file_name: str) -> CodeType | BaseException:
    """Return the code, or the exception that compiling it raised."""
    try:
        return compile(source, file_name, "exec", dont_inherit=True)
    except BaseException as error:
        return error


def _fresh_module(name: str) -> ModuleType:
    """Return an empty module, registered because dataclasses and pickle look their module up by name."""
    module = ModuleType(name)
    module.__dict__["__builtins__"] = builtins
    sys.modules[name] = module
    return module


def _failure(outcome: str, error: BaseException) -> dict[str, Any]:
    if isinstance(error, SystemExit) and isinstance(error.code, str):
        text = error.code
    else:
        try:
            text = tracebacks.error_text(error)
        except BaseException:  # a hostile __str__, or no memory left to format anything
            text = ""
    return {"outcome": outcome, "error": text, "error_type": type(error).__name__}


def _run_script(code: CodeType, namespace: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    exec(code, namespace)
    return {}


def _run_call(code: CodeType, namespace: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    exec(code, namespace)
    function = _entry_point(namespace, item["entry_point"])
    value = function(*marshal.loads(item["args"]))
    encoded = values.encode(value)
    if len(_to_json(encoded)) > requests.MAX_VALUE_BYTES:
        return {"outcome": "output_limit", "error": "the returned value is too large"}
    return {"value": encoded}


def _run_test_code(code: CodeType, namespace: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    exec(code, namespace)
    exec(compile(item["code"], tracebacks.TEST_FILE, "exec", dont_inherit=True), namespace)
    return {}


_RUNNERS: dict[str, Callable[[CodeType, dict[str, Any], dict[str, Any]], dict[str, Any]]] = {
    "stdin": _run_script,
    "call": _run_call,
    "code": _run_test_code,
}


def _entry_point(namespace: dict[str, Any], name: str) -> Any:
    """Return the function `name`, or the method of that name of a class `Solution`."""
    if name in namespace:
        return namespace[name]
    solution = namespace.get("Solution")
    if solution is not None and hasattr(solution, name):
        return getattr(solution(), name)
    raise NameError(f"name '{name}' is not defined")


def _join_threads() -> None:
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join()
