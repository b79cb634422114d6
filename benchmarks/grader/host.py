"""The process a design lives in: makes its engine, then grades the programs it is told to, one by one.

Run as `python -m benchmarks.grader.host SETTINGS` with a socket to read from and answer on, in the environment of
the design: a peer's has none of this project's dependencies. SETTINGS is a JSON object: channel (descriptor),
engine (module:class), options, ballast_bytes.
"""

from __future__ import annotations

import importlib
import json
import os
import socket
import sys
import traceback
from typing import Any

from benchmarks.grader.engine import Check, Engine
from benchmarks.grader.workload import tasks

_PAGE = os.sysconf("SC_PAGE_SIZE")


def ballast(size: int) -> bytearray:
    """Return memory that this process really holds: every page has been written to, as a model's weights have."""
    memory = bytearray(size)
    for offset in range(0, size, _PAGE):
        memory[offset] = 1
    return memory


def _engine(settings: dict[str, Any]) -> Engine:
    module, _, name = settings["engine"].partition(":")
    engine: Engine = getattr(importlib.import_module(module), name)(settings["options"])
    return engine


def serve(channel: socket.socket, settings: dict[str, Any]) -> None:
    """Answer until the other side closes.

    To a load (a JSON object: form, tests, programs) say `ready`, to a program's number `passed` or `failed`.
    """
    held = ballast(settings["ballast_bytes"])
    engine = _engine(settings)
    checks: list[Check] = []
    with channel.makefile("rwb", buffering=0) as lines:
        lines.write(b"ready\n")
        for line in lines:
            asked = json.loads(line)
            if isinstance(asked, int):
                lines.write(b"passed\n" if checks[asked]() else b"failed\n")
                continue
            checks = [engine.check_of(task, asked["form"]) for task in tasks(asked["programs"], asked["tests"])]
            lines.write(b"ready\n")
    engine.close()
    del held


def main() -> None:
    """Wait for the start signal, then serve; an error goes to the other side as text."""
    settings = json.loads(sys.argv[1])
    channel = socket.socket(fileno=settings["channel"])
    channel.set_inheritable(False)
    channel.recv(1)  # by now this process has been put under its clock
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):  # peers print, and let programs read what they will
        os.dup2(null, standard)
    try:
        serve(channel, settings)
    except Exception:
        channel.sendall(b"error " + json.dumps(traceback.format_exc()).encode() + b"\n")


if __name__ == "__main__":
    main()
