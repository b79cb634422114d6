"""What programs cannot do, with all layers and with some of them switched off; levels and refusals."""

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from smalt.sandbox.execution import Outcome
from smalt.sandbox.forkserver import ForkServerSandbox
from smalt.sandbox.isolation import Isolation, IsolationSettings, IsolationTooWeakError, Layer, Level
from smalt.sandbox.worker.layers import landlock
from tests.sandbox.conftest import Run, guardians, runner

TIERS = {
    "all layers": set(),
    "no namespaces": {Layer.NAMESPACES},
    "no namespaces, same user": {Layer.NAMESPACES, Layer.OWN_USER},
    "no landlock": {Layer.LANDLOCK},
    "no control group": {Layer.CONTROL_GROUP},
}
FORBIDDEN = {
    "read a host file": "open(CANARY).read()",
    "read a file that everybody has": "open('/etc/passwd').read()",
    "list the host": "os.listdir(os.path.dirname(CANARY))",
    "read another process": "open(f'/proc/{os.getppid()}/environ', 'rb').read() or 1 / 0",
    "write a host file": "open(CANARY + '.x', 'w')",
    "change a host file": "open(CANARY, 'a')",
    "remove a host file": "os.unlink(CANARY)",
    "rename a host file": "os.rename(CANARY, CANARY + '.x')",
    "make a host file public": "os.chmod(CANARY, 0o777)",
    "shared memory": "open('/dev/shm/smalt-test', 'w')",
    "connect": "socket.create_connection(('127.0.0.1', PORT))",
    "listen": "socket.socket().bind(('127.0.0.1', 0))",
    "datagram pair": "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)",
    "unix socket": "socket.socket(socket.AF_UNIX)",
    "fork": "os.fork()",
    "spawn": "os.posix_spawn('/bin/true', ['true'], {})",
    "execute": "os.execv('/bin/true', ['true'])",
    "subprocess": "subprocess.run(['true'])",
    "kill the parent": "os.kill(os.getppid(), 9)",
    "kill all": "os.kill(-1, 9)",
    "kill the group": "os.killpg(0, 9)",
    "signal through a socket": "fcntl.fcntl(0, 8, os.getppid())",
    "choose that signal": "fcntl.fcntl(0, 10, 9)",
    "limits of the parent": "resource.prlimit(os.getppid(), resource.RLIMIT_CPU, (1, 1))",
    "higher limits": "resource.setrlimit(resource.RLIMIT_AS, (-1, -1))",
    "memory outside the limits": "os.memfd_create('x')",
    "larger pipes": "fcntl.fcntl(os.pipe()[0], 1031, 1 << 20)",
    "become root": "os.setuid(1) or os.setuid(0)",
    "real-time scheduling": "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))",
    "other processors": "os.sched_setaffinity(0, [0])",
    "trace": "call('ptrace', 16, os.getppid(), 0, 0)",
    "read memory": "call('process_vm_readv', os.getppid(), 0, 0, 0, 0, 0)",
    "io_uring": "call('io_uring_setup', 8, ctypes.create_string_buffer(256))",
    "userfaultfd": "call('userfaultfd', 1)",
    "bpf": "call('bpf', 0, 0, 0)",
    "new namespaces": "call('unshare', 0x10000000)",
    "mount": "call('mount', 0, 0, 0, 0, 0)",
    "process by clone": "call('clone', 17, 0, 0, 0, 0)",
    "process by clone3": "call('clone3', ctypes.create_string_buffer(88), 88)",
    "queued signal": "call('rt_sigqueueinfo', os.getppid(), 9, ctypes.create_string_buffer(128))",
    "signal by descriptor": "call('pidfd_open', os.getppid(), 0)",
    "shared segments": "call('shmget', 0, 4096, 0o1600)",
    "message queues": "call('msgget', 0, 0o1600)",
    "keys": "call('add_key', b'user', b'x', b'y', 1, -3)",
    "another filter": "call('seccomp', 1, 0, 0)",
    "a handle": "call('open_by_handle_at', -1, 0, 0)",
}
PRELUDE = """
import ctypes, fcntl, os, resource, socket, subprocess, sys
CANARY, PORT = input().split()
NUMBERS = dict(ptrace=101, process_vm_readv=310, io_uring_setup=425, userfaultfd=323, bpf=321, unshare=272, mount=165,
    clone=56, clone3=435, rt_sigqueueinfo=129, pidfd_open=434, shmget=29, msgget=68, add_key=248, seccomp=317,
    open_by_handle_at=304)
def call(name, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(NUMBERS[name], *arguments) < 0:
        raise OSError(ctypes.get_errno(), name)
"""


@pytest.fixture(scope="module", params=TIERS)
def tier(request: pytest.FixtureRequest) -> Iterator[ForkServerSandbox]:
    without = TIERS[request.param]
    if landlock.abi_version() == 0 and Layer.NAMESPACES in without:
        pytest.skip("below the minimum without Landlock")
    with ForkServerSandbox(1, settings=IsolationSettings(frozenset(without))) as sandbox:
        yield sandbox


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="system call numbers of x86_64")
def test_forbidden_things(tier: ForkServerSandbox, tmp_path: Path) -> None:
    """All in one program: what succeeds is printed."""
    import socket

    canary = tmp_path / "canary"
    canary.write_text("CANARY-CONTENT")
    for path in (canary, *canary.parents[:3]):
        if path.stat().st_uid == os.geteuid():
            path.chmod(0o755)
    tries = "".join(
        f"try: print({name!r}, ({code},)[0])\nexcept (OSError, ValueError, RuntimeError): pass\n"
        for name, code in FORBIDDEN.items()
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        spy = f"{canary} {server.getsockname()[1]}"
        (execution,) = runner(tier)(PRELUDE + tries + "print('end')", spy, cpu_seconds=5, wall_seconds=60)
        assert (execution.outcome, execution.error, execution.stdout) == (Outcome.OK, "", "end\n")
    assert canary.read_text() == "CANARY-CONTENT"
    assert list(tmp_path.iterdir()) == [canary]
    assert not Path("/dev/shm/smalt-test").exists()


def test_the_callers_descriptors_stay_out(tier: ForkServerSandbox, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("SECRET-CONTENT")
    with secret.open() as file:
        os.set_inheritable(file.fileno(), True)
        with ForkServerSandbox(1) as sandbox:
            program = "import os\nfor n in range(2000):\n    try: print(os.pread(n, 99, 0))\n    except OSError: pass"
            assert "SECRET" not in runner(sandbox)(program)[0].stdout


def test_threads_are_bounded(tier: ForkServerSandbox) -> None:
    if os.geteuid() == 0 and Layer.OWN_USER not in tier.isolation.present:
        pytest.skip("the kernel does not count root's threads; the control group does, where there is one")
    program = """
import threading, time
threading.stack_size(1 << 15)
count = 0
try:
    while count < 5000:
        threading.Thread(target=time.sleep, args=(300,), daemon=True).start()
        count += 1
except RuntimeError:
    print('bounded')
"""
    # Enough address space, for which a thread would wait for ever otherwise.
    assert "bounded" in runner(tier)(program, cpu_seconds=20, wall_seconds=60, memory_mb=8000)[0].stdout
    assert runner(tier)("print(1)")[0].stdout == "1\n"


def test_memory_in_sockets_and_pipes_is_bounded(run: Run) -> None:
    program = """
import os, socket
held, kept = 0, []
try:
    while True:
        a, b = socket.socketpair()
        a.setblocking(False)
        kept += [a, b]
        try:
            while True: held += a.send(bytes(1 << 16))
        except BlockingIOError: pass
except OSError:
    print(held < 64 << 20)
"""
    assert run(program, cpu_seconds=5, wall_seconds=60)[0].stdout == "True\n"


def test_the_scratch_folder_is_small_and_emptied(run: Run) -> None:
    fill = "import os\nfor n in range(10**5):\n    with open(f'f{n}', 'wb') as file: file.write(bytes(1 << 19))"
    assert run(fill)[0].error_type == "OSError"
    many = "import os\nfor n in range(10**5): os.mkdir(f'd{n}')"
    assert run(many)[0].error_type == "OSError"
    assert run("import os, tempfile\nprint(os.listdir(), tempfile.mkstemp()[0] > 2)")[0].stdout == "[] True\n"


def test_without_an_empty_root_nothing_can_be_written() -> None:
    with ForkServerSandbox(1, settings=IsolationSettings(frozenset({Layer.NAMESPACES}))) as sandbox:
        run = runner(sandbox)
        assert run("import os\nprint(os.listdir())\nopen('x', 'w')")[0].error_type == "PermissionError"
        assert run("print(open('/dev/null').read())")[0].stdout == "\n"


def test_programs_of_all_tiers_work(tier: ForkServerSandbox) -> None:
    program = "import numpy, decimal, csv, sqlite3, zoneinfo, threading\nprint(input(), numpy.ones(2).sum())"
    for is_separate in (False, True):
        for execution in runner(tier)(program, "a", "b", is_separate=is_separate, wall_seconds=60):
            assert (execution.outcome, execution.error, execution.stdout[2:]) == (Outcome.OK, "", "2.0\n")


def test_levels() -> None:
    seccomp = dict.fromkeys((Layer.LIMITS, Layer.NO_NEW_PRIVILEGES, Layer.SECCOMP), "")
    blind = dict.fromkeys((Layer.NAMESPACES, Layer.EMPTY_ROOT, Layer.OWN_USER), "")
    assert Isolation().level is Level.NONE
    assert Isolation(seccomp).level is Level.NONE
    assert Isolation(seccomp | {Layer.LANDLOCK: ""}).level is Level.MINIMUM
    assert Isolation(seccomp | {Layer.EMPTY_ROOT: ""}).level is Level.MINIMUM
    assert Isolation(blind | {Layer.LANDLOCK: ""}).level is Level.NONE
    assert Isolation(seccomp | blind).level is Level.STRONG
    assert Isolation(seccomp | blind | {Layer.LANDLOCK: ""}).level is Level.FULL


def test_a_required_level_that_is_not_reached_is_refused_with_the_remedy() -> None:
    settings = IsolationSettings(frozenset({Layer.SECCOMP, Layer.LANDLOCK}))
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(IsolationTooWeakError, match=r"level 'none'.*'minimum' is required(.|\n)*seccomp: switched off"):
        ForkServerSandbox(2, settings=settings)
    with pytest.raises(IsolationTooWeakError, match="to get it: root, or unprivileged user namespaces"):
        ForkServerSandbox(1, require=Level.FULL, settings=IsolationSettings(frozenset({Layer.NAMESPACES})))
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_replaced_server_is_checked_again() -> None:
    with ForkServerSandbox(1) as sandbox:
        sandbox._require = Level.NONE
        worker = sandbox._workers[0]
        worker._plain._settings = IsolationSettings(frozenset({Layer.SECCOMP}))
        worker._plain.kill()
        with pytest.raises(IsolationTooWeakError):
            runner(sandbox)("print(1)")
        assert guardians(sandbox)


PRIVATE = "the interpreter or the checkout cannot be read by an unprivileged user"


def opened_to_others() -> list[str]:
    """Return a command prefix that makes the interpreter readable to all, in a mount namespace of its own."""
    folders = [Path(sys.base_prefix), *Path(sys.base_prefix).parents]
    private = [folder for folder in folders if not folder.stat().st_mode & stat.S_IXOTH]
    if not private:
        return []
    if any(Path(path).is_relative_to(private[-1]) for path in (__file__, sys.prefix)):
        pytest.skip(PRIVATE)
    steps = 'mount --bind "$1" /mnt && mount -t tmpfs -o mode=755 none "$2" && mkdir -p "$1" && mount --bind /mnt "$1"'
    return ["unshare", "-m", "sh", "-c", f'{steps} && shift 2 && exec "$@"', "sh", sys.base_prefix, str(private[-1])]


QUICK = ["-k", "(forbidden or tiers_work) and (all or same) or always or separate_runs_share"]


@pytest.mark.skipif(os.geteuid() != 0, reason="not root: all tests run unprivileged anyway")
@pytest.mark.parametrize("selection", [QUICK, pytest.param([], marks=pytest.mark.slow)], ids=["quick", "thorough"])
def test_the_same_holds_for_an_unprivileged_user(selection: list[str]) -> None:
    unprivileged = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    here = Path(__file__)
    files = [str(here), *(str(here.with_name(name)) for name in ("test_split.py", "test_separation.py"))]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        options = ["-q", "-x", "-p", "no:cacheprovider", "--basetemp", f"{folder}/pytest", *selection]
        command = [*opened_to_others(), *unprivileged, sys.executable, "-m", "pytest", *options, *files]
        environment = {**os.environ, "TMPDIR": folder, "HOME": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        ended = subprocess.run(
            command, cwd=here.parents[2], env=environment, capture_output=True, text=True, check=False
        )
    if "Permission denied" in ended.stderr and not ended.stdout:
        pytest.skip(PRIVATE)
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-2000:]
