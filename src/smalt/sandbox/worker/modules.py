"""The module that a program runs in: made afresh for each run, and let go as the interpreter does at its end."""

from __future__ import annotations

import builtins
import gc
import sys
import weakref
from types import ModuleType
from typing import Any


class _Mark:
    """Stands in a namespace as its `__loader__`: while it lives, so does the namespace."""

    __slots__ = ("__weakref__",)


class ProgramModule:
    """One empty module, registered because dataclasses and pickle look their module up by name."""

    def __init__(self, name: str) -> None:
        """Make it and register it."""
        mark = _Mark()
        module = ModuleType(name)
        self.namespace: dict[str, Any] = module.__dict__
        self.namespace.update(__builtins__=builtins, __loader__=mark)
        sys.modules[name] = module
        self._name = name
        self._mark = weakref.ref(mark)

    def discard(self) -> None:
        """Let it go, and with it files and other objects of the program whose last act is to write.

        They are collected with the names around them intact, because finalizers use those: `os.write`, say. What
        some library still refers to (`typing` keeps the classes it has met) loses its names instead.
        """
        self.namespace = {}
        # Sorts objects as they are reached, so that a file is finalized before the buffer that it writes to.
        gc.collect(0)
        sys.modules.pop(self._name, None)
        gc.collect()
        if (survivor := self._mark()) is not None:
            for namespace in gc.get_referrers(survivor):
                if type(namespace) is dict:
                    namespace.clear()


def find_entry_point(namespace: dict[str, Any], name: str) -> Any:
    """Return the function `name`, or the method of that name of a class `Solution`.

    What the program has only imported stands back behind a method: `from heapq import *` brings a `merge`.
    """
    solution = namespace.get("Solution")
    is_method = solution is not None and hasattr(solution, name)
    if name in namespace and not (is_method and _is_imported(namespace, name)):
        return namespace[name]
    if solution is not None and is_method:
        return getattr(solution(), name)
    raise NameError(f"name '{name}' is not defined")


def _is_imported(namespace: dict[str, Any], name: str) -> bool:
    own = namespace.get("__name__")
    return getattr(namespace[name], "__module__", own) != own
