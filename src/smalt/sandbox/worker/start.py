"""Start of a worker: run by path, without site-packages, as `python -S -s -P start.py OPTIONS`.

OPTIONS is a JSON object: connection (descriptor), scratch_root (an empty folder of this worker's), caller
(process id), module_paths (appended to sys.path, for programs), preload (modules), without (names of layers
to leave out).
"""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

STACK_BYTES = 512 << 20
"""Enough for the recursion limit at some kilobytes of C stack per call, as in a cached recursive function."""
_THREAD_STACK_BYTES = 16 << 20


def _grow_stack() -> None:
    """Start over with a larger stack: the kernel lays out memory below the stack when a program starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    wanted = STACK_BYTES if hard == resource.RLIM_INFINITY else min(STACK_BYTES, hard)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    resource.setrlimit(resource.RLIMIT_STACK, (wanted, hard))
    os.execv(sys.executable, sys.orig_argv)


def _guard(options: dict[str, Any]) -> None:
    package = Path(__file__).resolve().parents[2]
    # Bare packages by hand: the real ones import libraries, which take time and cannot be found from here.
    for name, path in (("smalt", package), ("smalt.sandbox", package / "sandbox")):
        module = ModuleType(name)
        module.__path__ = [str(path)]
        sys.modules[name] = module
    # All of the sandbox's own modules: behind the layers they can no longer be read.
    from smalt.sandbox.worker import guardian, server
    from smalt.sandbox.worker.confinement import Confinement
    from smalt.sandbox.worker.layers.names import Layer
    from smalt.sandbox.worker.layers.root import needed_paths

    without, scratch_root = options["without"], Path(options["scratch_root"])
    # Programs have no business in this library, which can make the lab's tests with their answers.
    readable = needed_paths(options["module_paths"])
    confinement = Confinement(without, readable, package, scratch_root, os.getpid())

    def serve() -> None:
        for name in [name for name in sys.modules if name.partition(".")[0] == "smalt"]:
            del sys.modules[name]
        sys.path += options["module_paths"]
        server.main(options["connection"], options["preload"], confinement)

    has_group = Layer.CONTROL_GROUP not in without
    guardian.Guardian(confinement, scratch_root, options["caller"], has_group).run(serve)


if __name__ == "__main__":
    _grow_stack()
    # Threads would otherwise get the whole stack limit each, out of the program's address space.
    import threading

    threading.stack_size(_THREAD_STACK_BYTES)
    _guard(json.loads(sys.argv[1]))
