"""The test's side of split test code: calls to the program in the other process.

Results arrive as plain data of this process's own making, so comparing them asks nothing of the program.
"""

from __future__ import annotations

import builtins
from typing import Any

from smalt.sandbox.worker import crossing
from smalt.sandbox.worker.requests import MAX_VALUE_BYTES
from smalt.sandbox.worker.standins import RemoteObject
from smalt.sandbox.worker.values import ValueEncodingError


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
