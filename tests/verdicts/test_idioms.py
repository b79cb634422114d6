"""Honest ways to write a program, each of which some grader in use rejects. All must pass.

Every program adds the numbers of the second line of its input. `tests/sandbox/test_stdio.py` holds the plainest.
"""

from __future__ import annotations

import pytest

from tests.verdicts.conftest import Judge, printed

STDIN = "3\n1 2 3\n"

READING = {
    "input": "input()\nprint(sum(map(int, input().split())))",
    "stdin.buffer.read": "import sys\nprint(sum(map(int, sys.stdin.buffer.read().split()[1:])))",
    "stdin.buffer.readline": "import sys\nr = sys.stdin.buffer.readline\nr()\nprint(sum(map(int, r().split())))",
    "stdin.buffer.readlines": "import sys\nprint(sum(map(int, sys.stdin.buffer.readlines()[1].split())))",
    "stdin.buffer, iterated": "import sys\nnext(sys.stdin.buffer)\n"
    "for l in sys.stdin.buffer: print(sum(map(int, l.split())))",
    "stdin.buffer.raw": "import sys\nprint(sum(map(int, sys.stdin.buffer.raw.readall().split()[1:])))",
    "stdin, iterated": "import sys\nlines = [line for line in sys.stdin]\nprint(sum(map(int, lines[1].split())))",
    "next(stdin)": "import sys\nn = int(next(sys.stdin))\nprint(sum(map(int, next(sys.stdin).split())))",
    "iter(readline)": "import sys\nlines = list(iter(sys.stdin.readline, ''))\nprint(sum(map(int, lines[1].split())))",
    "input is readline": "import sys\ninput = sys.stdin.readline\nn = int(input())\n"
    "print(sum(map(int, input().split())))",
    "input is a lambda": "import sys\ninput = lambda: sys.stdin.readline().rstrip()\ninput()\n"
    "print(sum(map(int, input().split())))",
    "read().split() as iterator": "import sys\nit = iter(sys.stdin.read().split())\nn = int(next(it))\n"
    "print(sum(int(next(it)) for _ in range(n)))",
    "open(0).read": "print(sum(map(int, open(0).read().split()[1:])))",
    "open(0, 'rb')": "print(sum(map(int, open(0, 'rb').read().split()[1:])))",
    "with open(0)": "with open(0) as f:\n    f.readline()\n    print(sum(map(int, f.readline().split())))",
    "*open(0)": "_, numbers = [*open(0)]\nprint(sum(map(int, numbers.split())))",
    "stdin = open(0)": "import sys\nsys.stdin = open(0)\ninput()\nprint(sum(map(int, input().split())))",
    "/dev/stdin": "lines = open('/dev/stdin').readlines()\nprint(sum(map(int, lines[1].split())))",
    "/dev/stdin, a path": "import pathlib\n"
    "d = pathlib.Path('/dev/stdin').read_text().split()\nprint(sum(map(int, d[1:])))",
    "/dev/stdin, the bytes of a path": "from pathlib import Path\n"
    "print(sum(map(int, Path('/dev/stdin').read_bytes().split()[1:])))",
    "/dev/stdin by io.open": "import io\n"
    "with io.open(b'/dev/stdin') as f: f.readline(); print(sum(map(int, f.readline().split())))",
    "/dev/stdin by os.open": "import os\n"
    "d = os.read(os.open('/dev/stdin', os.O_RDONLY), 99).split()\nprint(sum(map(int, d[1:])))",
    "/dev/stdin exists": "import os\n"
    "assert os.path.exists('/dev/stdin') and os.access('/dev/stdin', os.R_OK)\nprint(6)",
    "numpy.loadtxt of /dev/stdin": "import numpy as np\nprint(int(np.loadtxt('/dev/stdin', skiprows=1).sum()))",
    "numpy.fromfile of /dev/stdin": "import numpy as np\nprint(int(np.fromfile('/dev/stdin', int, sep=' ')[1:].sum()))",
    "fileinput of /dev/stdin": "import fileinput\n"
    "l = [*fileinput.input('/dev/stdin')]\nprint(sum(map(int, l[1].split())))",
    "os.read(0, size)": "import os\nprint(sum(map(int, os.read(0, os.fstat(0).st_size).split()[1:])))",
    "os.read(0) in pieces": "import os\nd = b''\nwhile True:\n    p = os.read(0, 2)\n    if not p: break\n    d += p\n"
    "print(sum(map(int, d.split()[1:])))",
    "BytesIO over os.read": "import os, io, sys\ninput = io.BytesIO(os.read(0, os.fstat(0).st_size)).readline\n"
    "input()\n"
    "print(sum(map(int, input().split())))",
    "fileno": "import sys, os\nprint(sum(map(int, os.read(sys.stdin.fileno(), 1 << 20).split()[1:])))",
    "mmap of 0": "import mmap\nm = mmap.mmap(0, 0, access=mmap.ACCESS_READ)\nprint(sum(map(int, m[:].split()[1:])))",
    "seek and read again": "import sys\nsys.stdin.read()\nsys.stdin.seek(0)\n"
    "print(sum(map(int, sys.stdin.read().split()[1:])))",
    "StringIO for stdin": "import sys, io\nsys.stdin = io.StringIO(sys.stdin.read())\ninput()\n"
    "print(sum(map(int, input().split())))",
    "reconfigure": "import sys\nsys.stdin.reconfigure(encoding='ascii')\ninput()\n"
    "print(sum(map(int, input().split())))",
    "until the end of the file": "s = 0\ntry:\n    input()\n    while True: s += sum(map(int, input().split()))\n"
    "except EOFError:\n    print(s)",
    "from sys import stdin, stdout": "from sys import stdin, stdout\nstdin.readline()\n"
    "stdout.write(str(sum(map(int, stdin.readline().split()))))",
    "fileinput": "import fileinput\nl = [line for line in fileinput.input()]\nprint(sum(map(int, l[1].split())))",
    "eval of the input": "input()\nprint(sum(eval(input().replace(' ', ','))))",
    "numpy.fromstring": "import sys, numpy as np\n"
    "print(int(np.array(sys.stdin.read().split()[1:], dtype=np.int64).sum()))",
    "numpy.loadtxt": "import sys, numpy as np\nprint(int(np.loadtxt(sys.stdin, skiprows=1, dtype=int).sum()))",
    "input.txt, if there were one": "import os, sys\nif os.path.exists('input.txt'): sys.stdin = open('input.txt')\n"
    "input()\nprint(sum(map(int, input().split())))",
    "LOCAL, if it were set": "import os, sys\nif os.environ.get('LOCAL'): sys.stdin = open('in')\nprint(6)",
}

WRITING = {
    "print(end='')": "print(6, end='')",
    "print(flush)": "print(6, flush=True)",
    "print(file=stdout)": "import sys\nprint(6, file=sys.stdout)",
    "stdout.write": "import sys\nsys.stdout.write('6\\n')",
    "stdout.writelines": "import sys\nsys.stdout.writelines(['6', '\\n'])",
    "stdout.buffer.write": "import sys\nsys.stdout.buffer.write(b'6\\n')",
    "os.write(1)": "import os\nos.write(1, b'6\\n')",
    "os.write after print": "import os\nprint(end='', flush=True)\nos.write(sys.stdout.fileno() if False else 1, b'6')",
    "open(1, 'w')": "open(1, 'w').write('6\\n')",
    "/dev/stdout": "open('/dev/stdout', 'w').write('6\\n')",
    "/dev/stdout, a path": "from pathlib import Path\nPath('/dev/stdout').write_text('6')",
    "/dev/stdout by os.open": "import os\nos.write(os.open('/dev/stdout', os.O_WRONLY | os.O_CREAT, 0o666), b'6')",
    "/dev/stdout and /dev/stderr": "print(6, file=open('/dev/stdout', 'w'))\n"
    "print('seen', file=open('/dev/stderr', 'w'))",
    "__stdout__": "import sys\nsys.__stdout__.write('6\\n')",
    "a new wrapper": "import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer, write_through=True)\nprint(6)",
    "StringIO for stdout": "import io, sys\no = sys.stdout\nsys.stdout = b = io.StringIO()\nprint(6)\nsys.stdout = o\n"
    "print(b.getvalue(), end='')",
    "redirect_stdout": "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()) as b: print(6)\n"
    "print(b.getvalue())",
    "print is write": "import sys\nprint = lambda x: sys.stdout.write(str(x) + '\\n')\nprint(6)",
    "a noisy standard error": "import sys\nprint('debug' * 50_000, file=sys.stderr)\nprint(6)",
    "a warning": "import warnings\nwarnings.warn('old')\nprint(6)",
    "logging": "import logging\nlogging.basicConfig(level=10)\nlogging.info('x')\nprint(6)",
    "pprint": "import pprint\npprint.pprint(6)",
    "the fast writer of contests": """
import os, sys
from io import BytesIO, IOBase
class FastIO(IOBase):
    newlines = 0
    def __init__(self, file):
        self._fd = file.fileno()
        self.buffer = BytesIO()
        self.writable = "x" in file.mode or "r" not in file.mode
        self.write = self.buffer.write if self.writable else None
    def read(self):
        while True:
            b = os.read(self._fd, max(os.fstat(self._fd).st_size, 8192))
            if not b: break
            ptr = self.buffer.tell()
            self.buffer.seek(0, 2), self.buffer.write(b), self.buffer.seek(ptr)
        return self.buffer.read()
    def flush(self):
        if self.writable:
            os.write(self._fd, self.buffer.getvalue())
            self.buffer.truncate(0), self.buffer.seek(0)
class IOWrapper(IOBase):
    def __init__(self, file):
        self.buffer = FastIO(file)
        self.flush = self.buffer.flush
        self.writable = self.buffer.writable
        self.write = lambda s: self.buffer.write(s.encode("ascii"))
        self.read = lambda: self.buffer.read().decode("ascii")
sys.stdin, sys.stdout = IOWrapper(sys.stdin), IOWrapper(sys.stdout)
numbers = sys.stdin.read().split()
print(sum(map(int, numbers[1:])))
""",
}

ENDING = {
    "exit()": "print(6)\nexit()",
    "exit(0)": "print(6)\nexit(0)",
    "quit()": "print(6)\nquit()",
    "sys.exit()": "import sys\nprint(6)\nsys.exit()",
    "sys.exit(None)": "import sys\nprint(6)\nsys.exit(None)",
    "sys.exit(main())": "import sys\ndef main():\n    print(6)\n    return 0\nsys.exit(main())",
    "raise SystemExit": "print(6)\nraise SystemExit",
    "exit in a function": "def f():\n    print(6)\n    exit()\nf()\nprint(7)",
    "exit in try": "try:\n    print(6)\n    exit()\nexcept Exception:\n    print(7)",
    "os._exit(0)": "import os\nprint(6, flush=True)\nos._exit(0)",
    "atexit": "import atexit\natexit.register(print, 6)",
    "atexit as a decorator": "import atexit, sys\nout = []\n@atexit.register\ndef flush():\n"
    "    sys.stdout.write(''.join(out))\nout.append('6')",
    "atexit replaces stdout": "import atexit, io, sys\nreal = sys.stdout\nsys.stdout = io.StringIO()\n"
    "atexit.register(lambda: real.write(sys.stdout.getvalue()))\nprint(6)",
    "__del__": "class A:\n    def __del__(self): print(6)\na = A()",
    "__del__ in a cycle, with globals": "import os\nclass A:\n    def __init__(self): self.me = lambda: self\n"
    "    def __del__(self): os.write(1, text)\na, text = A(), b'6'",
    "an IOBase in a cycle": "import io, os\nclass Out(io.IOBase):\n    def __init__(self):\n        self.parts = []\n"
    "        self.write = lambda s: self.parts.append(s)\n    def flush(self):\n"
    "        os.write(1, ''.join(self.parts).encode())\n        self.parts.clear()\nout = Out()\nout.write('6')",
    "a file left open beside a function": "def f(): pass\nout = open(1, 'w')\nout.write('6')",
    "a file in a cycle": "class A:\n    def __init__(self):\n        self.file, self.me = open(1, 'w'), self\n"
    "a = A()\na.file.write('6')",
    "a file in a class that typing keeps": "from typing import List\nclass A:\n    file = open(1, 'w')\n"
    "def f(x: List[A]): pass\nlines = open(1, 'w')\nlines.write('6')",
    "a finalizer": "import weakref\nclass A: pass\na = A()\nweakref.finalize(a, print, 6)",
    "a thread that goes on": "import threading, time\ndef f():\n    time.sleep(0.05)\n    print(6)\n"
    "threading.Thread(target=f).start()",
    "__main__": "def main():\n    print(6)\nif __name__ == '__main__':\n    main()",
    "__main__ and exit": "import sys\ndef main():\n    print(6)\nif __name__ == '__main__':\n    sys.exit(main())",
}

LANGUAGE = {
    "future first": "from __future__ import annotations\ndef f(x: Missing) -> Also: return x\nprint(f(6))",
    "a docstring before future": '"""Adds."""\nfrom __future__ import annotations\nprint(6)',
    "global": "c = 0\ndef f():\n    global c\n    c += 6\nf()\nprint(c)",
    "a global in a comprehension": "n = 6\nprint([n for _ in range(1)][0])",
    "a class that sees its globals": "n = 6\nclass A:\n    def f(self): return [n for _ in range(1)][0]\n"
    "print(A().f())",
    "class Solution": "class Solution:\n    def add(self, x): return sum(x)\ninput()\n"
    "print(Solution().add(map(int, input().split())))",
    "nonlocal": "def f():\n    n = 0\n    def g():\n        nonlocal n\n        n += 6\n    g()\n    return n\n"
    "print(f())",
    "deep recursion": "import sys\nsys.setrecursionlimit(10**6)\ndef f(n): return n and 1 + f(n - 1)\n"
    "print(f(40000) - 39994)",
    "deep recursion in a thread": "import sys, threading\nsys.setrecursionlimit(10**7)\nthreading.stack_size(2**27)\n"
    "def main():\n    def f(n): return n and 1 + f(n - 1)\n    print(f(40000) - 39994)\n"
    "t = threading.Thread(target=main)\nt.start()\nt.join()",
    "deep recursion in a cache": "import sys, functools\nsys.setrecursionlimit(10**6)\n@functools.lru_cache(None)\n"
    "def f(n): return n and 1 + f(n - 1)\nprint(f(20000) - 19994)",
    "int_max_str_digits": "import sys\nsys.set_int_max_str_digits(0)\nprint(len(str(10**6000)) - 5995)",
    "threads": "import threading\nr = []\nts = [threading.Thread(target=r.append, args=(2,)) for _ in range(3)]\n"
    "[t.start() for t in ts]\n[t.join() for t in ts]\nprint(sum(r))",
    "a pool of threads": "from concurrent.futures import ThreadPoolExecutor\n"
    "with ThreadPoolExecutor(3) as p: print(sum(p.map(int, '123')))",
    "asyncio": "import asyncio\nasync def f(x):\n    await asyncio.sleep(0)\n    return x\nasync def main():\n"
    "    print(sum(await asyncio.gather(f(1), f(2), f(3))))\nasyncio.run(main())",
    "dataclass": "from dataclasses import dataclass, field\n@dataclass(order=True)\nclass A:\n    x: int\n"
    "    y: list = field(default_factory=list)\nprint(A(6).x)",
    "dataclass with slots and future": "from __future__ import annotations\nfrom dataclasses import dataclass\n"
    "@dataclass(slots=True)\nclass A:\n    x: int | None = 6\nprint(A().x)",
    "enum": "from enum import Enum, auto\nclass E(Enum):\n    A = auto()\nprint(E.A.value + 5)",
    "namedtuple": "from typing import NamedTuple\nclass P(NamedTuple):\n    x: int\nprint(P(6).x)",
    "pickle of an own class": "import pickle\nclass A:\n    x = 6\nprint(pickle.loads(pickle.dumps(A())).x)",
    "deepcopy of an own class": "import copy\nclass A: pass\na = A()\na.x = 6\nprint(copy.deepcopy(a).x)",
    "typing.get_type_hints": "from typing import get_type_hints\nclass A:\n    x: int\n"
    "print(len(get_type_hints(A)) + 5)",
    "import of itself": "import __main__\nn = 6\nprint(__main__.n)",
    "inspect": "import inspect\ndef f(a, b): pass\nprint(len(inspect.signature(f).parameters) + 4)",
    "exec and eval": "d = {}\nexec('x = 6', d)\nprint(eval('x', d))",
    "exec in its own names": "exec('x = 6')\nprint(x)",
    "match": "match [1, 6]:\n    case [1, x]: print(x)",
    "walrus": "print([y for x in range(1, 3) if (y := x * 3) > 3][0])",
    "decimal": "from decimal import Decimal, getcontext\ngetcontext().prec = 50\nprint(int(Decimal(36).sqrt()))",
    "a context of signals": "import signal\nsignal.signal(signal.SIGINT, signal.SIG_DFL)\nprint(6)",
    "the clock": "import time, datetime\ntime.perf_counter(), datetime.datetime.now(), time.localtime()\nprint(6)",
    "random, seeded": "import random\nrandom.seed(1)\nrandom.shuffle([1, 2])\nprint(6)",
    "secrets and uuid": "import secrets, uuid, os\nsecrets.token_hex(), uuid.uuid4(), os.urandom(4)\nprint(6)",
    "gc": "import gc\ngc.disable()\ngc.collect()\ngc.freeze()\nprint(6)",
    "a larger stack, asked for": "import resource\ntry:\n"
    "    resource.setrlimit(resource.RLIMIT_STACK, (1 << 28, 1 << 28))\n"
    "except (ValueError, OSError):\n    pass\nprint(6)",
    "a file of its own": "open('a.txt', 'w').write('6')\nprint(open('a.txt').read())",
    "a temporary file": "import tempfile\nwith tempfile.TemporaryFile('w+') as f:\n    f.write('6')\n"
    "    f.seek(0)\n    print(f.read())",
    "sqlite in memory": "import sqlite3\nprint(sqlite3.connect(':memory:').execute('select 6').fetchone()[0])",
    "compression and digests": "import zlib, hashlib, base64\nhashlib.sha256(b'x').hexdigest()\n"
    "print(zlib.decompress(zlib.compress(b'6')).decode())",
    "ctypes": "import ctypes\nprint(ctypes.CDLL(None).abs(-6))",
    "multiprocessing, imported": "import multiprocessing, subprocess, socket\nprint(6)",
    "numpy": "import numpy as np\nprint(int(np.linalg.norm([6.0, 0]).round()), )",
    "numpy, random and large": "import numpy as np\nr = np.random.default_rng(0)\na = r.random((300, 300))\n"
    "(a @ a).sum()\nprint(6)",
    "tabs and form feeds": "if 1:\n\tprint(6)\n\x0c",
    "CRLF line ends": "x = 3\r\nif x:\r\n    print(2 * x)\r\n",
    "a byte order mark": "\ufeffprint(6)",
    "names of other scripts": "größe = 6\nprint(größe)",
    "a coding line": "# -*- coding: utf-8 -*-\nprint(6)",
    "a shebang": "#!/usr/bin/env python3\nprint(6)",
    "no newline at the end": "print(6)#",
}
LANGUAGE["huge integers"] = "n = 3 ** 40000\nassert len(str(n)) == 19085 and int(str(n)) == n\nprint(6)"
IDIOMS = READING | WRITING | ENDING | LANGUAGE


@pytest.mark.parametrize("name", IDIOMS)
def test_idiom(judge: Judge, name: str) -> None:
    grade = judge(IDIOMS[name], printed("6\n", STDIN), printed("6", STDIN.rstrip("\n")))
    assert grade.passes_all, [(result.status, result.output, result.error) for result in grade.public]


def test_there_are_at_least_the_28_idioms_that_other_graders_were_tried_on() -> None:
    assert len(IDIOMS) == sum(map(len, (READING, WRITING, ENDING, LANGUAGE))) >= 28
