"""A process that does nothing but fork: the server's way to children without paying for their memory.

After a fork each side copies every page that it writes to. A server that forks by itself and goes on to watch
the child copies hundreds; this process reads an order, forks, says which process it was, and waits for the
next. Its children are the server's children (CLONE_PARENT), which waits for them and ends them. It has the
server's table of descriptors, not a copy (CLONE_FILES), so what the server opens need not be sent; a child has
a copy of its own.

Layers that the server has put around itself are around this process too. It never reads an input or a program.
"""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Callable
from typing import NoReturn

from smalt.sandbox.worker import processes

_MAX_ORDER_BYTES = 4096
_TICK_SECONDS = 0.02
_ANSWER_SECONDS = 30.0
_FAILED_STATUS = 70

BeChild = Callable[[bytes], None]
"""What a child does: it carries out an order, and the process ends."""


class Zygote:
    """The server's end of one such process."""

    def __init__(self, start: Callable[[int], int]) -> None:
        """`start` makes the process, which takes orders on a descriptor, and returns its id. Raises OSError."""
        self._channel, self._its_channel = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.has_ended = False
        """Whether it was ended, by itself or for want of an answer."""
        try:
            self.pid = start(self._its_channel.fileno())
        except BaseException:
            self._close()
            raise

    @classmethod
    def begin(cls, prepare: Callable[[], None], be_child: BeChild) -> Zygote:
        """Fork one from this process; it calls `prepare` before it takes orders. Raises OSError."""

        def start(channel: int) -> int:
            pid = processes.forking(shares_descriptors=True, is_sibling=False)()
            if pid == 0:
                _be_zygote(channel, prepare, be_child)
            return pid

        return cls(start)

    def spawn(self, order: bytes) -> int:
        """Fork a child that carries out `order`; returns its process id.

        Raises OSError. Without an answer it is the end of this zygote: one that comes late would be taken for
        the next order's, and its child for another.
        """
        if self.has_ended:
            raise BrokenPipeError("the process that forks has ended")
        try:
            self._channel.send(order)
            answer = int(self._receive())
        except OSError:
            self.end()
            raise
        if answer < 0:
            raise OSError(-answer, os.strerror(-answer))
        return answer

    def _receive(self) -> bytes:
        """Wait for a message. The other end is open in this process too, so that it closes is not to be seen."""
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        deadline = time.monotonic() + _ANSWER_SECONDS
        while not poll.poll(_TICK_SECONDS * 1000):
            if processes.has_ended(self.pid) or time.monotonic() > deadline:
                raise BrokenPipeError("the process that forks has ended or hangs")
        return self._channel.recv(64)

    def end(self) -> None:
        """Kill and reap it, unless that has been done; its children live on."""
        if self.has_ended:
            return
        self.has_ended = True
        processes.kill_and_reap(self.pid)
        self._close()

    def _close(self) -> None:
        self._channel.close()
        self._its_channel.close()


def _be_zygote(channel: int, prepare: Callable[[], None], be_child: BeChild) -> NoReturn:
    try:
        processes.die_with_parent()
        prepare()
        _take_orders(channel, be_child)
    finally:
        os._exit(_FAILED_STATUS)


def _take_orders(channel: int, be_child: BeChild) -> None:
    fork = processes.forking(shares_descriptors=False, is_sibling=True)
    while order := os.read(channel, _MAX_ORDER_BYTES):
        try:
            pid = fork()
        except OSError as error:
            pid = -(error.errno or 1)
        if pid == 0:
            be_child(order)
            os._exit(0)
        os.write(channel, b"%d" % pid)
