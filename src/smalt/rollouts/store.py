"""Trajectories and contexts in Parquet: shards written atomically, found again after a kill."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from smalt.rollouts.records import (
    CONTEXT_SCHEMA,
    TRAJECTORY_SCHEMA,
    Context,
    Trajectory,
    trajectory_from_row,
    trajectory_row,
)


class StoreError(ValueError):
    """A stored file cannot be read, or is of another schema version."""


class TrajectoryStore:
    """A folder of Parquet shards. A shard is complete or absent; a problem is in one shard or in none."""

    def __init__(self, folder: Path) -> None:
        """The folder is made when it does not exist; half-written files of a killed run are removed."""
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        for leftover in folder.glob("*.tmp"):
            leftover.unlink()

    def shards(self) -> list[Path]:
        """Complete shards, in the order written."""
        return sorted(self.folder.glob("part-*.parquet"))

    def problem_ids(self) -> set[str]:
        """Problems whose trajectories are here."""
        columns = (read_table(shard, TRAJECTORY_SCHEMA, ["problem_id"]) for shard in self.shards())
        return {value for table in columns for value in table.column("problem_id").to_pylist()}

    def sampled_tokens(self) -> int:
        """Tokens that the policy wrote in all trajectories."""
        turns = (read_table(shard, TRAJECTORY_SCHEMA, ["turns"]).column("turns") for shard in self.shards())
        ids = (chunk.flatten().field("completion_ids").flatten() for column in turns for chunk in column.chunks)
        return sum(map(len, ids))

    def append(self, trajectories: Sequence[Trajectory]) -> None:
        """Write one new shard."""
        rows = [trajectory_row(trajectory) for trajectory in trajectories]
        number = len(self.shards())
        write_table(rows, TRAJECTORY_SCHEMA, self.folder / f"part-{number:05d}.parquet")

    def read(self) -> Iterator[Trajectory]:
        """Every trajectory, in the order written."""
        for shard in self.shards():
            for row in read_table(shard, TRAJECTORY_SCHEMA).to_pylist():
                yield trajectory_from_row(row)


def write_contexts(path: Path, contexts: Sequence[Context]) -> None:
    """Write contexts to one file, atomically."""
    write_table([vars(context) for context in contexts], CONTEXT_SCHEMA, path)


def read_contexts(path: Path) -> list[Context]:
    """Contexts in the order written."""
    rows = read_table(path, CONTEXT_SCHEMA).to_pylist()
    return [Context(**{**row, "prompt_ids": tuple(row["prompt_ids"])}) for row in rows]


def write_table(rows: Sequence[dict[str, Any]], schema: pa.Schema, path: Path) -> None:
    """Write `rows` to `path` as a whole or not at all (a full disk leaves no half file)."""
    temporary = path.with_suffix(".tmp")
    try:
        pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read_table(path: Path, schema: pa.Schema, columns: list[str] | None = None) -> pa.Table:
    """Read a file whose schema version must be that of `schema`."""
    try:
        found = (pq.read_schema(path).metadata or {}).get(b"schema", b"none").decode()
        wanted = schema.metadata[b"schema"].decode()
        if found != wanted:
            raise StoreError(f"{path}: schema is {found!r}, this version reads {wanted!r}: collect again")
        return pq.read_table(path, columns=columns)
    except (pa.ArrowInvalid, OSError) as error:
        raise StoreError(f"{path}: not a readable Parquet file ({error}): delete it and run again") from error
