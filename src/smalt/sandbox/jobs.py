"""A job on its way to a server: the files of inputs and results, and the requests for the inputs still missing."""

from __future__ import annotations

import marshal
import os
import re
from collections.abc import Iterator
from types import TracebackType

from smalt.sandbox.execution import CallInput, CodeInput, Job, ProgramInput, StdinInput
from smalt.sandbox.worker.requests import Kind, Record, Request, Row, read_records, row_bytes, table_bytes
from smalt.sandbox.worker.values import ValueEncodingError

_MIB = 1 << 20
# Test code that looks into the program's process: its streams, patched names, its source or objects.
_NEEDS_SHARED = re.compile(
    r"sys\.std|redirect_std|\bcapsys\b|\bmock\b|\bpatch\(|\binspect\b|\bgc\.|globals\(|\binput\s*="
)


def encode_inputs(job: Job) -> tuple[bytes, list[tuple[Kind, bytes]]]:
    """Return program and inputs as a child reads them.

    In this direction the data is trusted, and marshal keeps all plain types. Raises ValueEncodingError for
    call arguments of other types.
    """
    try:
        inputs = [_encode_input(item) for item in job.inputs]
    except ValueError as error:
        raise ValueEncodingError(f"call arguments must be plain data: {error}") from None
    return job.program.encode("utf-8", "surrogatepass"), inputs


def _encode_input(item: ProgramInput) -> tuple[Kind, bytes]:
    match item:
        case StdinInput(stdin):
            # Programs that read line by line may count on the final newline.
            data = stdin.encode("utf-8", "surrogatepass")
            return Kind.STDIN, data + b"\n" if data and not data.endswith(b"\n") else data
        case CallInput(entry_point, args):
            return Kind.CALL, marshal.dumps((entry_point, args))
        case CodeInput(code, entry_point):
            can_split = entry_point is not None and not _NEEDS_SHARED.search(code)
            return Kind.SPLIT_CODE if can_split else Kind.CODE, marshal.dumps((code, entry_point))


class JobFiles:
    """The two files of a job, in memory; to be used in a `with` block."""

    def __init__(self, job: Job) -> None:
        """Write the inputs. Raises ValueEncodingError, OSError."""
        self._job = job
        program, inputs = encode_inputs(job)
        self._program_bytes = len(program)
        self._read = 0
        self.inputs = os.memfd_create("inputs", os.MFD_CLOEXEC)
        self.results = os.memfd_create("results", os.MFD_CLOEXEC)
        try:
            self._write(program, inputs)
        except BaseException:
            self.close()
            raise

    def _write(self, program: bytes, inputs: list[tuple[Kind, bytes]]) -> None:
        offset = table_bytes(len(inputs)) + len(program)
        rows = []
        for kind, data in inputs:
            rows.append(row_bytes(Row(kind, offset, len(data))))
            offset += len(data)
        content = memoryview(b"".join([*rows, program, *(data for _, data in inputs)]))
        position = 0
        while position < len(content):
            position += os.pwrite(self.inputs, content[position:], position)

    def request(self, first: int, cpu_left: float, wall_left: float) -> Request:
        """Return the request for the inputs from `first` on, which have so much time together."""
        job = self._job
        return Request(
            first=first,
            input_count=len(job.inputs),
            program_bytes=self._program_bytes,
            is_separate=job.is_separate,
            stop_at_first_failure=job.stop_at_first_failure,
            cpu_seconds=job.limits.cpu_seconds,
            cpu_seconds_total=cpu_left,
            wall_seconds=job.limits.wall_seconds,
            wall_seconds_total=wall_left,
            memory_bytes=job.limits.memory_mb * _MIB,
            output_bytes=job.limits.output_bytes,
        )

    def new_records(self) -> Iterator[Record]:
        """Yield the records that came since the last call."""
        size = os.fstat(self.results).st_size
        data = bytearray()
        while len(data) < size - self._read:
            part = os.pread(self.results, size - self._read - len(data), self._read + len(data))
            if not part:
                break
            data += part
        self._read = size
        return read_records(bytes(data))

    def close(self) -> None:
        """Free the memory."""
        os.close(self.inputs)
        os.close(self.results)

    def __enter__(self) -> JobFiles:
        """Return the files."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close them."""
        self.close()
