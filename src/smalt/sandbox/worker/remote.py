"""The test's side of split test code: stand-ins for what the program defines.

Results arrive as plain data of this process's own making, so comparing them asks nothing of the program. An
object that is no data stays with the program; its stand-in can be called and looked into, but it never equals
anything that the test made.
"""

from __future__ import annotations

import builtins
from typing import Any

from smalt.sandbox.worker import crossing
from smalt.sandbox.worker.requests import MAX_VALUE_BYTES
from smalt.sandbox.worker.values import ValueEncodingError

# Modules that tests use by a name that the program imports.
_TRUSTED_ALIASES = {"np": "numpy", "numpy": "numpy"}

_TOLD_NAMES = ("__doc__", "__qualname__", "__annotations__")


class CandidateError(Exception):
    """The program raised what is no builtin exception, broke the protocol, or returned what cannot go back."""


class CandidateGoneError(BaseException):
    """The program's process ended."""


class UnsplitError(BaseException):
    """The test gives the program objects of its own: the two must share a process.

    Never raised for what may stem from the program, which could then judge itself.
    """


class UncompiledError(BaseException):
    """The program does not compile."""

    def __init__(self, is_out_of_memory: bool, error_type: str, text: str) -> None:
        """Keep what compiling it said."""
        super().__init__(text)
        outcome = "memory_limit" if is_out_of_memory else "compile_error"
        self.said = {"outcome": outcome, "error_type": error_type, "error": text}


class Program:
    """The program in the other process."""

    def __init__(self, connection: int) -> None:
        """Take the descriptor of the connection to it."""
        self._connection = connection
        self.has_judged = False
        """Whether the program had a say in the test besides returning values."""
        self._allows_nan = False
        self._has_answered = False
        self._chosen_types: set[type] = set()

    def start_over(self, allows_nan: bool) -> set[str]:
        """Run the program afresh; returns the names it defines.

        Unless the test allows NaN, a value with NaN is an error: `if abs(f(x) - y) > 1e-6: raise` would let it pass.
        """
        self._allows_nan = allows_nan
        self.has_judged = False
        self._chosen_types = set()
        names = {str(name) for name in self._ask(["start_over"])[0]}
        self._has_answered = False
        return names

    def call(self, target: str | int, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Call a function; arguments that it changed in place are changed here as well."""
        value, changes = self._ask(["call", target, self._encode(list(args)), self._encode(keywords)])
        for place, after in changes:
            _replace_content(args[place], self._decode(after))
        return self._decode(value)

    def ask(self, operation: str, *arguments: Any) -> Any:
        """Have the program's process do something else, and return the value."""
        return self._decode(self._ask([operation, *arguments])[0])

    def operate(self, name: str, number: int, *args: Any) -> Any:
        """Apply a function to an object of the program."""
        return self.ask("operate", name, number, self._encode(list(args)))

    def set_attribute(self, number: int, name: str, value: Any) -> None:
        """Set an attribute of an object of the program."""
        self.ask("set_attribute", number, name, self._encode(value))

    def _ask(self, message: list[Any]) -> list[Any]:
        try:
            # Sharing a process is quicker than sending much, but no choice once the program had a say in it.
            max_bytes = crossing.MAX_MESSAGE_BYTES if self._has_answered else MAX_VALUE_BYTES
            crossing.send(self._connection, message, max_bytes)
        except crossing.UnsendableError as error:
            raise self._too_large(error) from None
        except OSError:
            raise CandidateGoneError from None
        answer = crossing.receive(self._connection)
        if answer is None:
            raise CandidateGoneError
        self._has_answered = True
        if answer[0] == "ok":
            return answer[1:]
        if answer[0] == "uncompiled":
            raise UncompiledError(answer[1] is True, *map(str, answer[2:4]))
        raised = _error_from(answer, may_stop=message[:2] == ["operate", "next"])
        self._note(raised)
        raise raised

    def _encode(self, value: Any) -> Any:
        try:
            return crossing.encode(value, self._handle)
        except ValueEncodingError as error:
            raise self._too_large(error) from None

    def _decode(self, data: Any) -> Any:
        value = crossing.decode(data, lambda number, name: RemoteObject(self, number, name), self._note)
        if not self._allows_nan and crossing.has_nan(value):
            raise CandidateError("the program returned NaN, which the test does not mention")
        return value

    def _note(self, value: Any) -> None:
        """Remember that the program can have the test hold a value of this type, or of this type's instances."""
        self._chosen_types.add(_type_of(value))

    def _handle(self, item: Any) -> Any:
        if type(item) is RemoteObject:
            return {"h": [object.__getattribute__(item, "_number"), ""]}
        reason = f"the test gives the program a {type(item).__name__}"
        # Of what kind an answer is, is the program's choice, and so would be where the test goes on.
        if _type_of(item) in self._chosen_types:
            raise CandidateError(f"{reason}, which the program may have returned and cannot be given")
        raise UnsplitError(reason)

    def _too_large(self, error: Exception) -> BaseException:
        """Return what to raise for an argument too deep or too long: the test's need while nothing was returned."""
        if self._has_answered:
            return CandidateError(f"what the program returned cannot go back to it: {error}")
        return UnsplitError(str(error))


def _type_of(item: Any) -> type:
    return item if isinstance(item, type) else type(item)


def _error_from(answer: list[Any], may_stop: bool) -> BaseException:
    """Return the exception that stands for one of the program's; `may_stop`: it may end an iteration."""
    _, base, error_type, text, message = (*map(str, answer), "", "", "", "")[:5]
    kind = getattr(builtins, base, CandidateError)
    # An AssertionError would speak for the test, a StopIteration would quietly end a loop over many cases.
    forbidden = (AssertionError,) if may_stop else (AssertionError, StopIteration, StopAsyncIteration)
    is_plain = isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, forbidden)
    try:
        error: BaseException = kind(message) if is_plain else CandidateError(message)
    except Exception:  # UnicodeError and the like want more arguments
        error = CandidateError(message)
    error.__dict__["said"] = {"error_type": error_type, "error": text}
    return error


def _replace_content(mine: Any, new: Any) -> None:
    if type(mine) is not type(new) or type(mine) not in (list, dict, set):
        return
    if type(mine) is list:
        mine[:] = new
    else:
        mine.clear()
        mine.update(new)


def _refuse_protocols(name: str) -> None:
    """Raise AttributeError for names by which libraries ask objects how to treat them.

    With `__array_interface__`, for one, a program would have numpy read memory of the test's process.
    """
    if name.startswith("__") and name not in _TOLD_NAMES:
        raise AttributeError(name)


class RemoteFunction:
    """The entry point."""

    def __init__(self, program: Program, name: str) -> None:
        """Stand for the function `name`, or the method of class `Solution` of that name."""
        self.__dict__.update(_program=program, __name__=name)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Call it in the program's process."""
        return self._program.call(self.__name__, args, keywords)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the function."""
        _refuse_protocols(name)
        return self._program.ask("attribute", self.__name__, name)


class RemoteObject:
    """Any other object of the program: a class, an instance, a generator."""

    __slots__ = ("_number", "_program", "_type_name")

    def __init__(self, program: Program, number: int, type_name: str) -> None:
        """Stand for the object with this number."""
        for name, value in (("_program", program), ("_number", number), ("_type_name", type_name)):
            object.__setattr__(self, name, value)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Call it in the program's process."""
        return self._program.call(self._number, args, keywords)

    def __getattr__(self, name: str) -> Any:
        """Return its attribute."""
        _refuse_protocols(name)
        return self._program.ask("attribute", self._number, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set its attribute."""
        self._program.set_attribute(self._number, name, value)

    def __len__(self) -> int:
        """Return its length."""
        return int(self._program.operate("len", self._number))

    def __iter__(self) -> Any:
        """Return its iterator."""
        return self._program.operate("iter", self._number)

    def __next__(self) -> Any:
        """Return its next item."""
        return self._program.operate("next", self._number)

    def __getitem__(self, key: Any) -> Any:
        """Return its item."""
        return self._program.operate("getitem", self._number, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Set its item."""
        self._program.operate("setitem", self._number, key, value)

    def __str__(self) -> str:
        """Return its text."""
        return str(self._program.operate("str", self._number))

    def __repr__(self) -> str:
        """Return its representation."""
        return str(self._program.operate("repr", self._number))

    def __bool__(self) -> bool:
        """Count as true, whatever the object says: as much as returning True."""
        return True

    def __eq__(self, other: object) -> bool:
        """Equal nothing that the test made; two objects of the program are its own to compare."""
        if type(other) is not RemoteObject:
            return False
        self._program.has_judged = True
        return self._program.operate("equal", self._number, other) is True

    __hash__ = None  # type: ignore[assignment]


class Namespace(dict[str, Any]):
    """The test's globals: its own names, builtins, and stand-ins for the program's names."""

    def __init__(self, program: Program, entry_point: str, names: set[str]) -> None:
        """Define the entry point; the rest when it is used."""
        super().__init__(
            {"__name__": "test", "__builtins__": builtins, entry_point: RemoteFunction(program, entry_point)}
        )
        self._program = program
        self._names = names

    def __missing__(self, name: str) -> Any:
        """Return the program's global, unless a builtin or a known module has that name."""
        import importlib
        import sys

        if name not in self._names or hasattr(builtins, name):
            raise KeyError(name)
        if name in sys.stdlib_module_names or name in _TRUSTED_ALIASES:
            return importlib.import_module(_TRUSTED_ALIASES.get(name, name))
        # A helper of the program may be what decides in the test; its class with the entry point does not.
        self._program.has_judged |= name != "Solution"
        return self._program.ask("get", name)
