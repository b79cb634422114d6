"""Which system calls a server and its children may make.

Two filters: a list of allowed calls, installed once in the server and inherited by every child, and a short
one that each child adds to take away what only the server needs. A program can compute, read what it was
given, use threads, pipes and timers; it cannot start processes, open sockets, signal or trace others, or
change what belongs to the machine.
"""

from __future__ import annotations

import errno
import socket

from smalt.sandbox.worker.layers import bpf
from smalt.sandbox.worker.layers.numbers import number_of


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_FOR_EVERYONE = _words("""
    read write close fstat stat lstat newfstatat statx poll ppoll select pselect6 lseek mmap mprotect munmap mremap
    brk madvise msync mincore rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait rt_sigsuspend
    sigaltstack pread64 pwrite64 readv writev access faccessat faccessat2 pipe pipe2 sched_yield sched_getaffinity
    dup dup2 dup3 pause nanosleep clock_nanosleep getitimer setitimer alarm getpid gettid getppid getpgrp getpgid
    getsid uname flock fsync fdatasync ftruncate getdents getdents64 getcwd chdir fchdir readlink readlinkat umask
    gettimeofday clock_gettime clock_getres time times getrlimit setrlimit getrusage sysinfo getuid getgid geteuid
    getegid getgroups getresuid getresgid arch_prctl set_tid_address set_robust_list get_robust_list rseq futex
    membarrier getcpu getrandom restart_syscall fadvise64 exit exit_group epoll_create epoll_create1 epoll_wait
    epoll_pwait epoll_ctl eventfd2 sendto recvfrom sendmsg recvmsg shutdown getsockname getpeername getsockopt
    close_range sendfile copy_file_range
""")
_FOR_WRITING = _words("mkdir mkdirat rmdir unlink unlinkat rename renameat renameat2")
_FOR_THE_SERVER = _words("""
    clone fork vfork wait4 waitid kill tgkill tkill prctl seccomp memfd_create prlimit64
    landlock_create_ruleset landlock_add_rule landlock_restrict_self
""")

# O_WRONLY, O_RDWR, O_CREAT, O_TRUNC and O_TMPFILE's own bit.
_WRITING_FLAGS = 0o1 | 0o2 | 0o100 | 0o1000 | 0o20000000
# FIOCLEX, FIONCLEX, FIONBIO (asyncio), FIONREAD.
_HARMLESS_IOCTLS = (0x5451, 0x5450, 0x5421, 0x541B)
# F_DUPFD to F_SETLKW, F_DUPFD_CLOEXEC, F_GETPIPE_SZ. Not F_SETOWN and F_SETSIG: with them a program has the
# kernel send any signal to any process (SANDBOX 4c); not F_SETPIPE_SZ, which takes memory beyond the limits.
_HARMLESS_FCNTLS = (*range(8), 1030, 1032)
# Connected kinds only: a datagram socket could send to any other socket of the machine that has a path.
_SOCKET_PAIRS = [
    kind | flags
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET)
    for flags in (0, socket.SOCK_NONBLOCK, socket.SOCK_CLOEXEC, socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
]
_CLONE_THREAD = 0x10000
_PLACEHOLDER_PID = 0x7ABCDEF1

_PERMISSION = bpf.refuse(errno.EPERM)
_MISSING = bpf.refuse(errno.ENOSYS)
_NO_CHILD = bpf.refuse(errno.ECHILD)
_NO_PROCESS = bpf.refuse(errno.EAGAIN)

_Rules = dict[str, bpf.Decision]


def server_filter(may_write: bool) -> bpf.Filter:
    """The filter of a server; `may_write`: files may be opened for writing (what files, other layers say)."""
    rules: _Rules = dict.fromkeys((*_FOR_EVERYONE, *_FOR_THE_SERVER), bpf.ALLOW)
    if may_write:
        rules |= dict.fromkeys((*_FOR_WRITING, "open", "openat"), bpf.ALLOW)
    else:
        refused = bpf.refuse(errno.EACCES)
        rules["open"] = bpf.if_argument_has(1, _WRITING_FLAGS, refused, bpf.ALLOW)
        rules["openat"] = bpf.if_argument_has(2, _WRITING_FLAGS, refused, bpf.ALLOW)
    rules["ioctl"] = bpf.if_argument_in(1, _HARMLESS_IOCTLS, bpf.ALLOW, bpf.refuse(errno.ENOTTY))
    rules["fcntl"] = bpf.if_argument_in(1, _HARMLESS_FCNTLS, bpf.ALLOW, _PERMISSION)
    kinds = bpf.if_argument_in(1, _SOCKET_PAIRS, bpf.ALLOW, _PERMISSION)
    rules["socketpair"] = bpf.only_if_argument_is(0, socket.AF_UNIX, kinds, _PERMISSION)
    # The C library falls back to calls whose arguments a filter can see.
    rules |= {"clone3": _MISSING, "openat2": _MISSING}
    return bpf.Filter(bpf.assemble(_by_number(rules), _PERMISSION))


class ChildFilter:
    """The filter that a child adds, made once in the server; each child writes its own process id into it."""

    def __init__(self) -> None:
        """Assemble the filter."""
        self._filter = bpf.Filter(bpf.assemble(_by_number(_child_rules()), bpf.ALLOW))
        self._places = self._filter.places_of(_PLACEHOLDER_PID)

    def address(self, pid: int) -> None:
        """Write the process id into it."""
        self._filter.write(self._places, pid)

    def install(self, pid: int) -> None:
        """Install it in the process `pid`, which must be this one."""
        self.address(pid)
        self._filter.install()


def _child_rules() -> _Rules:
    own = bpf.if_argument_in(0, [_PLACEHOLDER_PID], bpf.ALLOW, _PERMISSION)
    rules: _Rules = dict.fromkeys(
        ("prctl", "seccomp", "memfd_create", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"),
        _PERMISSION,
    )
    rules |= {"wait4": _NO_CHILD, "waitid": _NO_CHILD, "fork": _NO_PROCESS, "vfork": _NO_PROCESS}
    rules["clone"] = bpf.if_argument_has(0, _CLONE_THREAD, bpf.ALLOW, _NO_PROCESS)
    # Zero would be the whole group for kill, this process for prlimit64.
    rules |= {"kill": own, "tgkill": own, "tkill": _PERMISSION}
    rules["prlimit64"] = bpf.if_argument_in(0, [0, _PLACEHOLDER_PID], bpf.ALLOW, _PERMISSION)
    return rules


def _by_number(rules: _Rules) -> dict[int, bpf.Decision]:
    numbered = {number_of(name): decision for name, decision in rules.items()}
    return {number: decision for number, decision in numbered.items() if number is not None}
