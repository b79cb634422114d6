"""Stand-ins, in the test's process, for what the program defines in the other one.

An object that is no data stays with the program; its stand-in can be called and looked into, but it never equals
anything that the test made.
"""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smalt.sandbox.worker.remote import Program

# Modules that tests use by a name that the program imports.
_TRUSTED_ALIASES = {"np": "numpy", "numpy": "numpy"}

_TOLD_NAMES = ("__doc__", "__qualname__", "__annotations__")


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
