"""Runs one untrusted program on its inputs and says how each run ended.

A warm server, kept apart from the caller by every layer the machine allows (`isolation`), forks one child per
program, or per input where runs must not see each other. Expected outputs never come here, inputs are handed
over one at a time when their runs begin, and a child reports answers, not verdicts: there is nothing to steal
and nothing to forge. `smalt sandbox doctor` shows the layers of this machine.

What it protects against, at level "minimum" and above: endless loops, sleepers and floods of memory, output,
threads and files; crashes of the interpreter; reading or changing the host's files, environment, processes
and network; starting processes; signals and traces; leftovers of one program reaching another; forged results
of other inputs and forged failures of the sandbox; anything left behind, also when the caller is killed. From
level "strong" on programs do not even see the machine. Below "minimum" the sandbox refuses to start.

What it does not protect against: bugs in the kernel (run the whole in gVisor or a virtual machine if you
expect attacks on it); timing and cache side channels; what the machine's load tells; a program that recognises
that it is being tested. In a batch, runs of one program share a process, so an earlier input can influence a
later run of the same program: confirm failures separately. Test code without an entry point shares a process
with the program it judges, which can then forge its end: such executions are marked `is_low_trust`. Clock,
urandom and id() are real, so programs that use them may differ from run to run.

What programs may do: compute, use threads, read the interpreter's library and installed packages, and write
files in their working folder, in memory and small, where there is an empty root (elsewhere: nowhere).
Installed packages, but for this one, are readable: keep answers out of them.
"""
