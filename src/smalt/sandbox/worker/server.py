"""The server loop of a worker: for each request run its inputs in children, then say that it is done.

The server parses nothing that a program wrote and reads no input. It ends when the caller closes the
connection; its guardian ends it when the caller dies.
"""

from __future__ import annotations

import gc
import importlib
import json
import marshal
import math
import os
import resource
import shutil
import site
import socket
import sys
from collections.abc import Sequence

from smalt.sandbox.worker import limits, processes, streams
from smalt.sandbox.worker.child import ChildRun, compile_program, prepare_state
from smalt.sandbox.worker.confinement import Confinement
from smalt.sandbox.worker.launching import ChildWork, Launcher
from smalt.sandbox.worker.layers.names import Layer
from smalt.sandbox.worker.requests import DONE, MAX_REQUEST_BYTES, Kind, Request, Row, read_table
from smalt.sandbox.worker.supervision import Supervisor
from smalt.sandbox.worker.zygote import Zygote

# Imported before the first fork: what short programs use.
_PRELOADED = (
    *("array", "bisect", "cmath", "collections", "contextlib", "copy", "dataclasses", "datetime", "decimal"),
    *("enum", "fractions", "functools", "heapq", "io", "itertools", "json", "linecache", "math", "operator"),
    *("queue", "random", "re", "statistics", "string", "struct", "textwrap", "threading", "time"),
    *("traceback", "typing"),
)

_WARM_UP = """
import sys
def add(x): return x + 1
numbers = [int(word) for word in "1 2 3".split()]
table = {}
for n in numbers: table[n] = table.get(n, 0) + add(n)
text = f"{sum(numbers)} {max(table)}"
print(text)
def same(x): return x
"""
_REHEARSAL = [(Kind.STDIN, b"1 2 3\n"), (Kind.CALL, marshal.dumps(("same", ([1, "a", (2.5, {}), None],))))] * 12


class Server:
    """One server process."""

    def __init__(self, connection: socket.socket, confinement: Confinement) -> None:
        """Take the connected socket and the layers, which are in place."""
        self._connection = connection
        self._confinement = confinement
        # Standard input is the null device; opening it for writing may be refused by now.
        self._null = os.dup(0)

    def serve(self, preload: Sequence[str]) -> None:
        """Answer requests until the caller is gone."""
        processes.adopt_orphans()
        self._prepare(preload)
        layers = {"present": self._confinement.present, "missing": self._confinement.missing}
        try:
            self._connection.send(json.dumps(layers).encode())
            while self._serve_one():
                pass
        except ConnectionError:
            return

    def _prepare(self, preload: Sequence[str]) -> None:
        """Import and touch everything a child will need, then freeze it out of the children's collections."""
        for name in (*_PRELOADED, *preload):
            importlib.import_module(name)
        prepare_state()
        site.setquit()
        site.sethelper()
        # Nor into those of the rehearsal.
        gc.freeze()
        self._rehearse()
        # With the child's first streams; making them before the fork keeps their cost out of it.
        self._children = ChildWork(self._confinement, self._null, streams.make_streams())
        gc.collect()
        gc.freeze()
        gc.disable()
        self._zygote = Zygote.begin(self._children.begin, self._children.carry_out)

    def _rehearse(self) -> None:
        """Do here, with a program of our own, what children will do, so that they find it warm in memory.

        The interpreter writes into code that it runs often; each child would do that to pages of its own.
        """
        request = Request(0, 1, 0, False, False, 1.0, math.inf, 1.0, 1 << 40, 1 << 20)
        streams.open_child_files()
        before = sys.modules["__main__"], sys.stdin, sys.stdout, sys.stderr
        run = ChildRun(request, streams.make_streams())
        for kind, payload in _REHEARSAL:
            streams.write_all(streams.INPUT, payload)
            run.report(run.run_input(compile_program(_WARM_UP), _WARM_UP, kind))
        sys.modules["__main__"], sys.stdin, sys.stdout, sys.stderr = before
        streams.close_child_files()
        for limit in (resource.RLIMIT_AS, resource.RLIMIT_FSIZE):
            limits.raise_soft(limit)
        for descriptor in (0, 1):
            os.dup2(self._null, descriptor)

    def _serve_one(self) -> bool:
        """Serve one request; returns whether another can follow."""
        message, descriptors, _, _ = socket.recv_fds(self._connection, MAX_REQUEST_BYTES, 2)
        if not message:
            return False
        inputs, results = descriptors
        try:
            self._run(message, inputs, results)
        finally:
            os.close(inputs)
            os.close(results)
        self._connection.send(DONE)
        return not self._is_soiled()

    def _run(self, message: bytes, inputs: int, results: int) -> None:
        request = Request.from_bytes(message)
        table = read_table(inputs, request.count)
        launcher = Launcher(self._zygote, message, inputs)
        compiler = launcher.compiled() if _needs_compiler(request, table) else None
        if compiler is not None:
            launcher = Launcher(compiler, message, inputs)
        try:
            Supervisor(request, table, inputs, results, launcher.launch, self._empty_scratch).run()
        finally:
            if compiler is not None:
                compiler.end()
        self._clean_up()

    def _clean_up(self) -> None:
        # A child that the filter keeps from forking leaves nothing to look for.
        if not self._confinement.has(Layer.SECCOMP):
            self._zygote.end()
            processes.kill_descendants(self._confinement.has(Layer.NAMESPACES))
            self._zygote = Zygote.begin(self._children.begin, self._children.carry_out)

    def _empty_scratch(self) -> None:
        if not self._confinement.may_write:
            return
        for entry in os.scandir(self._confinement.scratch):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                os.unlink(entry.path)  # noqa: PTH108 (scandir's entries are cheaper than paths)

    def _is_soiled(self) -> bool:
        """Whether a program left something that cannot be removed, a folder that may not be listed for one.

        Modes cannot be changed in here, so such a server ends, its files with it, and the caller starts another.
        """
        return self._confinement.may_write and bool(os.listdir(self._confinement.scratch))  # noqa: PTH208 (cheaper than paths)


def _needs_compiler(request: Request, table: list[Row]) -> bool:
    rows = table[request.first :]
    return request.is_separate and len(rows) > 1 and rows[0].kind != Kind.SPLIT_CODE


def main(connection: int, preload: Sequence[str], confinement: Confinement) -> None:
    """Serve on the inherited socket `connection`."""
    sys.argv = ["solution.py"]
    Server(socket.socket(fileno=connection), confinement).serve(preload)
