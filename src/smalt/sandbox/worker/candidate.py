"""The program's side of split test code: run the program, serve calls, see nothing of the test.

Everything here is in the program's reach. It can answer calls however it likes, which is what a wrong program
does anyway; where the test ends well is decided in the other process.
"""

from __future__ import annotations

import builtins
import resource
from collections.abc import Callable
from typing import Any

from smalt.sandbox.worker import crossing, limits, streams, tracebacks
from smalt.sandbox.worker.child import failure, reset_state
from smalt.sandbox.worker.compiling import Compiled, compile_program, text_of
from smalt.sandbox.worker.modules import ProgramModule, find_entry_point


class Candidate:
    """Serves one program to one driver."""

    def __init__(self, program: bytes) -> None:
        """Take the program's source."""
        self._program = program
        self._compiled: Compiled | None = None
        self._namespace: dict[str, Any] = {}
        self._objects: list[Any] = []

    def serve(self) -> None:
        """Answer until the driver is gone."""
        while (message := crossing.receive(streams.CONNECTION)) is not None:
            self._send(self._answer(message))

    def _answer(self, message: list[Any]) -> list[Any]:
        try:
            return _OPERATIONS[message[0]](self, *message[1:])
        except BaseException as error:
            return self._raised(error)

    def _send(self, answer: list[Any]) -> None:
        try:
            streams.flush_standard()
            crossing.send(streams.CONNECTION, answer)
        except BaseException as error:
            crossing.send(streams.CONNECTION, self._raised(error))

    def _raised(self, error: BaseException) -> list[Any]:
        limits.raise_soft(resource.RLIMIT_AS)
        tracebacks.remember_source(tracebacks.PROGRAM_FILE, text_of(self._program))
        names = [kind.__name__ for kind in type(error).__mro__ if getattr(builtins, kind.__name__, None) is kind]
        said = failure("", error)
        return ["raised", names[0] if names else "Exception", said["error_type"], said["error"], _message(error)]

    def start_over(self) -> list[Any]:
        """Run the program from the start, in a fresh namespace."""
        reset_state()
        self._objects = []
        if self._compiled is None:
            self._compiled = compile_program(self._program)
            tracebacks.remember_source(tracebacks.PROGRAM_FILE, text_of(self._program))
        if isinstance(self._compiled, BaseException):
            said = failure("", self._compiled)
            is_out_of_memory = isinstance(self._compiled, MemoryError)
            return ["uncompiled", is_out_of_memory, said["error_type"], said["error"]]
        self._namespace = ProgramModule("solution").namespace
        exec(self._compiled, self._namespace)
        return ["ok", [name for name in self._namespace if not name.startswith("__")]]

    def call(self, target: Any, args: Any, keywords: Any) -> list[Any]:
        """Call a function by name or number; mutable arguments that changed go back with the value."""
        function = find_entry_point(self._namespace, target) if isinstance(target, str) else self._objects[target]
        given, named = self._decode(args), self._decode(keywords)
        value = function(*given, **named)
        changes = [
            [place, after]
            for place, item in enumerate(given)
            if type(item) in (list, dict, set) and (after := self._encode(item)) != args[place]
        ]
        return ["ok", self._encode(value), changes]

    def get(self, name: str) -> list[Any]:
        """Return a global."""
        return ["ok", self._encode(self._namespace[name])]

    def attribute(self, target: Any, name: str) -> list[Any]:
        """Return an attribute of an object, or of the function called `target`."""
        owner = find_entry_point(self._namespace, target) if isinstance(target, str) else self._objects[target]
        return ["ok", self._encode(getattr(owner, name))]

    def set_attribute(self, number: int, name: str, value: Any) -> list[Any]:
        """Set an attribute of an object."""
        setattr(self._objects[number], name, self._decode(value))
        return ["ok", None]

    def operate(self, name: str, number: int, args: Any) -> list[Any]:
        """Apply one of a few functions to an object."""
        return ["ok", self._encode(_FUNCTIONS[name](self._objects[number], *self._decode(args)))]

    def _encode(self, value: Any) -> Any:
        return crossing.encode(value, self._handle)

    def _handle(self, item: Any) -> Any:
        self._objects.append(item)
        return {"h": [len(self._objects) - 1, type(item).__name__]}

    def _decode(self, data: Any) -> Any:
        return crossing.decode(data, lambda number, _: self._objects[number])


_OPERATIONS: dict[str, Callable[..., list[Any]]] = {
    "start_over": Candidate.start_over,
    "call": Candidate.call,
    "get": Candidate.get,
    "attribute": Candidate.attribute,
    "set_attribute": Candidate.set_attribute,
    "operate": Candidate.operate,
}

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "len": len,
    "iter": iter,
    "next": next,
    "str": str,
    "repr": repr,
    "getitem": lambda owner, key: owner[key],
    "setitem": lambda owner, key, value: owner.__setitem__(key, value),
    "equal": lambda owner, other: bool(owner == other),
}


def _message(error: BaseException) -> str:
    try:
        return str(error)[:500]
    except BaseException:
        return ""


def serve_program(program: bytes, ready: streams.Streams) -> None:
    """Be the program's process. Standard input is what it is: nothing."""
    streams.install(ready)
    Candidate(program).serve()
