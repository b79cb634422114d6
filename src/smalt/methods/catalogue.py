"""The methods by name. A recipe's `method:` is a name from here, or `module:Class` of a method of your own."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from smalt.methods.cobalt import Cobalt
from smalt.methods.grpo import GRPO
from smalt.methods.grpo_mt import GRPOMT
from smalt.methods.method import Method
from smalt.methods.mucode import MuCode
from smalt.methods.murphy import Murphy
from smalt.methods.rlef import RLEF
from smalt.methods.verpo_mt import VeRPOMT

METHODS: dict[str, type[Method[Any]]] = {
    "cobalt": Cobalt,
    "grpo": GRPO,
    "grpo_mt": GRPOMT,
    "verpo_mt": VeRPOMT,
    "rlef": RLEF,
    "murphy": Murphy,
    "mucode": MuCode,
}
OWN_SECTION = "own_method"
"""Section of a recipe that holds the settings of a method given as `module:Class`."""


def find_method(name: str) -> type[Method[Any]]:
    """The class of a method; a `module:Class` is imported, from the working directory too.

    Raises ValueError with the known names, or with what is wrong with the class.
    """
    if name in METHODS:
        return METHODS[name]
    module, colon, class_name = name.partition(":")
    if not colon:
        raise ValueError(f"{name!r} is unknown; known are {', '.join(METHODS)}, or module:Class of your own")
    found = getattr(_imported(module, name), class_name, None)
    if not (isinstance(found, type) and issubclass(found, Method) and hasattr(found, "settings_class")):
        raise ValueError(f"{name!r} is no class that extends smalt.methods.method.Method and has a settings_class")
    return found


def section_of(name: str) -> str:
    """The recipe's section with a method's own settings."""
    return name if name in METHODS else OWN_SECTION


def _imported(module: str, name: str) -> Any:
    folder = str(Path.cwd())
    if folder not in sys.path:  # a console script does not look there by itself
        sys.path.append(folder)
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ValueError(f"{name!r} cannot be imported: {error}") from error
