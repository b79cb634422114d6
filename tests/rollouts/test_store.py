import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smalt.rollouts.records import TRAJECTORY_SCHEMA, Context, PublicOutcome, trajectory_from_row, trajectory_row
from smalt.rollouts.store import StoreError, TrajectoryStore, read_contexts, write_contexts
from tests.scripted import trajectory, turn

CONTEXTS = [Context("a", -1, 0, 0.0, (1, 2)), Context("a", 3, 2, 1 / 3, ()), Context("ü", 0, 1, 1.0, (639,) * 500)]


@pytest.fixture
def store(tmp_path):
    return TrajectoryStore(tmp_path / "trajectories")


def test_trajectories_come_back_as_they_were(store):
    rich = turn(1 / 3, public=True, ids=range(1, 300), feedback="Ausgabe: ü\n\u2028 \x00 ```")
    written = [trajectory(rich, turn(0, infra=True, program=None, ids=(5,))), trajectory(1, problem_id="b", sample=7)]
    store.append(written)
    assert list(store.read()) == written


def test_tokens_of_all_turns_are_counted(store):
    assert store.sampled_tokens() == 0
    store.append([trajectory(turn(0, ids=range(7)), turn(1, ids=(3,))), trajectory(turn(0, ids=range(20)))])
    store.append([trajectory(turn(0, ids=(1, 2)))])
    assert store.sampled_tokens() == 30


def test_shards_are_read_in_the_order_written(store):
    for number in range(12):
        store.append([trajectory(0, problem_id=f"p{number}")])
    assert [found.problem_id for found in store.read()] == [f"p{number}" for number in range(12)]
    assert len(store.shards()) == 12
    assert store.problem_ids() == {f"p{number}" for number in range(12)}


def test_log_probabilities_keep_single_precision(store):
    store.append([trajectory(turn(0))])
    row = trajectory_row(trajectory(0))
    row["turns"][0]["logprobs"] = [-math.pi, -math.inf]
    table = pa.Table.from_pylist([row], schema=TRAJECTORY_SCHEMA)
    assert trajectory_from_row(table.to_pylist()[0]).turns[0].logprobs == pytest.approx((-math.pi, -math.inf), rel=1e-7)


def test_lone_surrogates_of_a_program_are_replaced(store):
    outcome = PublicOutcome("runtime_error", "out \udcff", "error \ud800")
    bad = trajectory(turn(0, feedback="feedback \ud800", program="print('\udc80')"))
    object.__setattr__(bad.turns[0], "public", (outcome,))
    object.__setattr__(bad.turns[0], "reply", "reply \udfff")
    store.append([bad])
    [found] = store.read()
    assert found.turns[0].public == (PublicOutcome("runtime_error", "out ?", "error ?"),)
    assert (found.turns[0].reply, found.turns[0].feedback) == ("reply ?", "feedback ?")
    assert found.turns[0].program == "print('?')"


@given(st.text(st.characters(), max_size=20))
def test_any_text_can_be_stored(text):
    row = trajectory_row(trajectory(turn(0, feedback=text, program=text)))
    table = pa.Table.from_pylist([row], schema=TRAJECTORY_SCHEMA)
    found = trajectory_from_row(table.to_pylist()[0]).turns[0].feedback
    assert found == text.encode("utf-8", "replace").decode()


def test_an_empty_store_is_empty(store):
    assert store.shards() == []
    assert store.problem_ids() == set()
    assert list(store.read()) == []


def test_half_written_files_of_a_killed_run_are_removed(store):
    store.append([trajectory(0)])
    (store.folder / "part-00001.tmp").write_bytes(b"half")
    again = TrajectoryStore(store.folder)
    assert [path.name for path in store.folder.iterdir()] == ["part-00000.parquet"]
    again.append([trajectory(0, problem_id="b")])
    assert again.problem_ids() == {"drop-first", "b"}


def test_a_full_disk_leaves_no_half_file(store, monkeypatch):
    store.append([trajectory(0)])
    write = pq.write_table

    def fail(table, path, *args, **options):
        write(table, path)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", fail)
    with pytest.raises(OSError, match="No space"):
        store.append([trajectory(0, problem_id="b")])
    with pytest.raises(OSError, match="No space"):
        write_contexts(store.folder / "contexts.parquet", CONTEXTS)
    assert [path.name for path in store.folder.iterdir()] == ["part-00000.parquet"]
    monkeypatch.undo()
    store.append([trajectory(0, problem_id="b")])
    assert store.problem_ids() == {"drop-first", "b"}


def test_contexts_come_back_as_they_were(tmp_path):
    path = tmp_path / "contexts.parquet"
    write_contexts(path, CONTEXTS)
    assert read_contexts(path) == CONTEXTS
    write_contexts(path, [])
    assert read_contexts(path) == []
    assert [file.name for file in tmp_path.iterdir()] == ["contexts.parquet"]


@pytest.mark.parametrize("version", ["smalt-trajectories/0", None])
def test_another_schema_version_is_refused_by_name(store, version):
    metadata = {"schema": version} if version else None
    table = pa.Table.from_pylist([trajectory_row(trajectory(0))], schema=TRAJECTORY_SCHEMA.with_metadata(metadata))
    pq.write_table(table, store.folder / "part-00000.parquet")
    with pytest.raises(StoreError, match=version or "none") as caught:
        store.problem_ids()
    assert "smalt-trajectories/1" in str(caught.value)
    assert "part-00000.parquet" in str(caught.value)


def test_contexts_are_no_trajectories(tmp_path):
    write_contexts(tmp_path / "part-00000.parquet", CONTEXTS)
    with pytest.raises(StoreError, match="smalt-contexts/1"):
        list(TrajectoryStore(tmp_path).read())


@pytest.mark.parametrize("content", [b"", b"garbage" * 100, b"PAR1"])
def test_a_file_that_is_no_parquet_is_named(store, content):
    (store.folder / "part-00000.parquet").write_bytes(content)
    with pytest.raises(StoreError, match=r"part-00000\.parquet: not a readable Parquet file"):
        list(store.read())


def test_a_truncated_shard_is_named(store):
    store.append([trajectory(0)])
    [shard] = store.shards()
    shard.write_bytes(shard.read_bytes()[:-50])
    with pytest.raises(StoreError, match="not a readable"):
        store.problem_ids()
