"""The server loop of a worker: for each request run its inputs in children, then say that it is done.

The server parses nothing that a program wrote and reads no input. It ends when the caller closes the
connection; its guardian ends it when the caller dies.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import shutil
import site
import socket
import sys
from collections.abc import Sequence

from smalt.sandbox.worker import limits, processes, rehearsal, streams
from smalt.sandbox.worker.child import prepare_state
from smalt.sandbox.worker.confinement import Confinement
from smalt.sandbox.worker.launching import ChildWork, Launcher, Locking
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
        finally:
            self._zygote.end()

    def _prepare(self, preload: Sequence[str]) -> None:
        """Import and touch everything a child will need, then freeze it out of the children's collections."""
        # First: some modules keep the one they find.
        streams.replace_openers()
        for name in (*_PRELOADED, *preload):
            importlib.import_module(name)
        prepare_state()
        site.setquit()
        site.sethelper()
        # Nor into those of the rehearsal.
        gc.freeze()
        rehearsal.rehearse(self._confinement.rehearse_lock, self._null)
        self._children = ChildWork(self._locking())
        gc.collect()
        gc.freeze()
        gc.disable()
        self._zygote = self._begin_zygote()

    def _locking(self) -> Locking:
        dies_with_parent = not self._confinement.has(Layer.NAMESPACES)
        return Locking(
            self._confinement.lock_child,
            streams.close_others,
            dies_with_parent,
            self._confinement.max_tasks,
            self._null,
        )

    def _begin_zygote(self) -> Zygote:
        return Zygote.begin(self._settle, self._children.carry_out)

    def _settle(self) -> None:
        """Do in the zygote what is the same for all its children."""
        os.chdir(self._confinement.scratch)
        limits.set_common_limits()

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
        # A zygote that ended or hung may have a child that nobody knows: it ends with the server.
        return not (self._zygote.has_ended or self._is_soiled())

    def _run(self, message: bytes, inputs: int, results: int) -> None:
        request = Request.from_bytes(message)
        table = read_table(inputs, request.input_count)
        with Launcher(self._zygote, message, inputs) as launcher:
            if _needs_compiler(request, table):
                launcher.compile_once()
            Supervisor(request, table, inputs, results, launcher.launch, self._empty_scratch).run()
        self._clean_up()

    def _clean_up(self) -> None:
        # A child that the filter keeps from forking leaves nothing to look for.
        if self._confinement.has(Layer.SECCOMP):
            return
        if self._confinement.has(Layer.NAMESPACES):
            self._zygote.end()
            processes.kill_namespace()
            self._zygote = self._begin_zygote()
        else:
            processes.kill_descendants(spared=self._zygote.pid)

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
