"""Puts the layers around a server and its children, as many as the machine allows.

Three moments: `open_outside` in the guardian, before the server is forked; `enter` in the server, before it
imports anything for programs; `lock_child` in each child, before it reads a program.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from smalt.sandbox.worker import limits
from smalt.sandbox.worker.layers import filters, landlock, namespaces, numbers, privileges, root
from smalt.sandbox.worker.layers.names import Layer


class Confinement:
    """Knows which layers hold (`present`, with details) and which do not (`missing`, with reasons)."""

    def __init__(
        self, without: Collection[str], readable: Sequence[str], hidden: Path, scratch_root: Path, guardian: int
    ) -> None:
        """Leave out the layers in `without`; `readable` are the paths that programs need, but for `hidden` in them."""
        self._without = without
        self._readable = readable
        self._hidden = hidden
        self._scratch_root = scratch_root
        self._private_id = privileges.private_id(guardian)
        self._has_user_namespace = False
        self._is_born_into_namespaces = False
        self._restrict: Callable[[], int] | None = None
        self._child_filter: filters.ChildFilter | None = None
        self.max_tasks: int | None = None
        """Processes and threads that a child's user may have."""
        self.present: dict[Layer, str] = {Layer.LIMITS: "address space, CPU, file size, open files"}
        self.missing: dict[Layer, str] = {}

    def has(self, layer: Layer) -> bool:
        """Whether the layer holds."""
        return layer in self.present

    @property
    def scratch(self) -> Path:
        """The working folder of programs."""
        return Path(root.SCRATCH) if self.has(Layer.EMPTY_ROOT) else self._scratch_root

    @property
    def may_write(self) -> bool:
        """Whether programs may write files: only where their number and size are bounded, or nothing is."""
        return self.has(Layer.EMPTY_ROOT) or not (self.has(Layer.SECCOMP) or self.has(Layer.LANDLOCK))

    def open_outside(self) -> None:
        """Open the namespaces that the next child is born into."""
        is_root = os.geteuid() == 0
        self._can_change_user = (
            Layer.OWN_USER not in self._without and is_root and privileges.can_read_as(self._private_id, [])
        )
        self._can_read_privately = self._can_change_user and privileges.can_read_as(self._private_id, self._readable)
        if Layer.NAMESPACES in self._without:
            self.missing[Layer.NAMESPACES] = self.missing[Layer.EMPTY_ROOT] = "switched off"
            return
        ways = (False, True) if is_root and self._can_change_user else (True,)
        for needs_user_namespace in ways:
            try:
                namespaces.open_for_child(needs_user_namespace)
            except OSError as error:
                self.missing[Layer.NAMESPACES] = self.missing[Layer.EMPTY_ROOT] = str(error)
                continue
            self._is_born_into_namespaces = True
            self._has_user_namespace = needs_user_namespace
            return

    def enter(self) -> None:
        """Put every layer around this process."""
        if self._is_born_into_namespaces:
            self._attempt(Layer.NAMESPACES, "process ids, network, message queues, host name", namespaces.open_own)
            self._attempt(Layer.EMPTY_ROOT, "interpreter and libraries only, read-only", self._enter_root)
        self._become_own_user()
        with contextlib.suppress(OSError):  # without capabilities there is nothing to give up
            privileges.drop_capabilities()
        self._attempt(Layer.NO_NEW_PRIVILEGES, "", privileges.forbid_new_privileges)
        # Counted while /proc can still be read.
        self.max_tasks = limits.max_tasks(self.has(Layer.OWN_USER))
        self._attempt(Layer.LANDLOCK, f"version {landlock.abi_version()}", self._enter_landlock)
        self._attempt(Layer.SECCOMP, "", self._enter_filter)

    def _attempt(self, layer: Layer, detail: str, step: Callable[[], None]) -> None:
        if layer in self._without:
            self.missing[layer] = "switched off"
            return
        try:
            step()
        except OSError as error:
            self.missing[layer] = str(error)
        else:
            self.missing.pop(layer, None)
            self.present[layer] = detail

    def _enter_root(self) -> None:
        if not self.has(Layer.NAMESPACES):
            raise OSError("it needs a mount namespace")
        changes_user = self._can_change_user and not self._has_user_namespace
        root.enter(self._scratch_root, self._readable, self._hidden, self._private_id if changes_user else os.getuid())

    def _become_own_user(self) -> None:
        if self._has_user_namespace:
            self.present[Layer.OWN_USER] = "user namespace"
        elif Layer.OWN_USER in self._without:
            self.missing[Layer.OWN_USER] = "switched off"
        elif not self._can_change_user:
            self.missing[Layer.OWN_USER] = "neither root's right to change the user nor a user namespace"
        elif not (self.has(Layer.EMPTY_ROOT) or self._can_read_privately):
            self.missing[Layer.OWN_USER] = "the interpreter lies in a folder that only its owner can read"
        else:
            self._attempt(Layer.OWN_USER, f"user id {self._private_id}", self._change_user)

    def _change_user(self) -> None:
        if not self.has(Layer.EMPTY_ROOT):
            # The working folder, which stays empty.
            self._scratch_root.chmod(0o755)
        privileges.become(self._private_id)

    def _enter_landlock(self) -> None:
        if landlock.abi_version() == 0:
            raise OSError("the kernel has no Landlock or it is not enabled")
        readable, listed = (["/"], []) if self.has(Layer.EMPTY_ROOT) else root.around(self._readable, self._hidden)
        writable = [str(self.scratch)] if self.has(Layer.EMPTY_ROOT) else []
        ruleset = landlock.make_ruleset([*readable, "/dev/urandom"], writable, ["/dev/null"], listed)
        # Children restrict themselves once more: that puts them beyond the server, which they cannot signal then.
        self._restrict = landlock.restriction(ruleset)
        self._restrict()

    def _enter_filter(self) -> None:
        if not numbers.is_known_machine():
            raise OSError(f"no table of system calls for {numbers.MACHINE}")
        filters.server_filter(self.may_write).install()
        self._child_filter = filters.ChildFilter()

    def rehearse_lock(self) -> None:
        """Do of `lock_child` what can be done over and over."""
        if self._child_filter is not None:
            self._child_filter.address(os.getpid())

    def lock_child(self) -> None:
        """Take from this process, a child of the server, what only the server needs. Raises OSError."""
        if self._restrict is not None:
            self._restrict()
        if self._child_filter is not None:
            self._child_filter.install(os.getpid())
