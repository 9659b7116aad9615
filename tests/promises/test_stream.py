"""Tables read in stretches give what tables in memory give."""

from __future__ import annotations

import gzip
import os
import tempfile

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import robustbn
from robustbn import RobustEstimator, Streaming
from robustbn._tables.arrow import scan
from robustbn._tables.files import find_files, make_dataset
from robustbn._tables.sources import open_table
from robustbn.estimator.learning import choose_place
from robustbn.exceptions import CacheError, DataError
from tests.streams import (
    CODES,
    N_ROWS,
    NETWORK,
    as_table,
    as_text,
    assert_identical,
    assert_same,
    everything_in,
    in_memory,
    stream,
    write_folder,
    write_kind,
)

# --- the same answer ------------------------------------------------------------------------------


@pytest.mark.parametrize("n_files", [1, 7, 64])
def test_any_number_of_files_gives_the_tables_of_rows_in_memory(n_files, tmp_path, held, no_memory):
    write_folder(tmp_path / "rows", n_files=n_files)
    assert_same(stream(tmp_path / "rows"), held)


def test_any_order_of_files_gives_the_tables_of_those_rows_in_memory(tmp_path):
    order = np.random.default_rng(0).permutation(7)
    codes = write_folder(tmp_path / "rows", order=order)
    assert_same(stream(tmp_path / "rows"), in_memory(codes))


@pytest.mark.parametrize("n_files", [1, 7, 64])
def test_more_rows_than_are_drawn_give_the_same_tables_too(
    n_files, tmp_path, small_sample, no_memory
):
    write_folder(tmp_path / "rows", n_files=n_files)
    assert_same(stream(tmp_path / "rows"), in_memory(CODES))


def test_a_large_row_group_takes_the_memory_of_a_stretch(tmp_path, monkeypatch):
    monkeypatch.setattr("robustbn._tables.arrow.LARGEST_GROUP", 2**18)
    file, values = tmp_path / "rows.parquet", np.random.default_rng(0).integers(0, 9, 10**6)
    pq.write_table(pa.table({"a": values}), file, row_group_size=len(values))
    held, n_read, before = 0, 0, pa.total_allocated_bytes()
    for (column,) in open_table(file).read([0]):
        held = max(held, pa.total_allocated_bytes() - before)
        np.testing.assert_array_equal(column.values, values[n_read : n_read + len(column.values)])
        n_read += len(column.values)
    assert n_read == len(values)
    assert held < values.nbytes / 2


def test_rows_of_a_large_row_group_are_the_same(tmp_path, monkeypatch):
    words = pa.array(["x", "y", None] * 1_000)
    first = pa.table({"a.b": words, "n": pa.array([1, 2, 3] * 1_000, pa.int32()), "k": words})
    second = pa.table({"n": pa.array([5, None, 3] * 1_000), "a.b": words.dictionary_encode()})
    for year, table, size in ((2024, first, 2_500), (2025, second, 900)):
        (tmp_path / f"year={year}").mkdir()
        pq.write_table(table, tmp_path / f"year={year}/rows.parquet", row_group_size=size)
    dataset = make_dataset(find_files(tmp_path), str(tmp_path), "rows")
    assert dataset.schema.names == ["a.b", "n", "k", "year"]
    for columns in (dataset.schema.names, ["year"], ["k", "n"]):
        whole = list(scan(dataset, columns, 1_024))
        for largest in (1_000, 100):
            with monkeypatch.context() as patch:
                patch.setattr("robustbn._tables.arrow.LARGEST_GROUP", largest)
                parts = list(scan(dataset, columns, 1_024))
            assert [b.num_rows for b in parts] == [b.num_rows for b in whole]
            assert [b.to_pydict() for b in parts] == [b.to_pydict() for b in whole]


def test_row_groups_of_a_large_file_are_read_one_by_one(tmp_path, monkeypatch, held, no_memory):
    monkeypatch.setattr("robustbn._rows.stream.find.PART_ROWS", 3_000)
    pq.write_table(as_table(CODES), tmp_path / "rows.parquet", row_group_size=1_700)
    told = []
    fitted = stream(
        tmp_path / "rows.parquet",
        lambda *what: told.append(what),
        weights_to=tmp_path / "w.parquet",
    )
    assert ("judging rows", 8, 8) in told
    assert_same(fitted, held)
    written = pq.read_table(tmp_path / "w.parquet")
    np.testing.assert_array_equal(written["row"], np.arange(N_ROWS))
    np.testing.assert_array_equal(written["weight"], fitted.row_weights_)


def test_packed_rows_in_memory_change_nothing(tmp_path, monkeypatch, held):
    write_folder(tmp_path / "rows")
    assert_same(stream(tmp_path / "rows"), held)
    monkeypatch.setattr("robustbn._rows.stream.cache.MOST_BYTES", 20_000)  # some of the parts
    assert_same(stream(tmp_path / "rows"), held)


@pytest.mark.parametrize("kind", ["arrow", "csv", "csv.gz", "jsonl"])
def test_every_kind_of_file_can_be_streamed(kind, tmp_path, no_memory):
    codes = CODES[:6000]
    fitted = stream(write_kind(kind, tmp_path / "rows", codes))
    assert_same(fitted, in_memory(codes))


def test_a_dataset_on_another_filesystem_can_be_streamed(tmp_path, held):
    fsspec = pytest.importorskip("fsspec")
    files = fsspec.filesystem("memory")
    for k, piece in enumerate(np.array_split(CODES, 3)):
        with files.open(f"/rows/{k}.parquet", "wb") as file:
            pq.write_table(as_table(piece), file)
    dataset = ds.dataset("/rows", filesystem=files, format="parquet")
    fitted = stream(dataset, weights_to=tmp_path / "weights")
    assert_same(fitted, held)
    assert everything_in(tmp_path / "weights") == ["0.parquet", "1.parquet", "2.parquet"]


def test_a_filtered_dataset_gives_its_rows_only(tmp_path):
    write_folder(tmp_path / "rows")
    chosen = ds.dataset(tmp_path / "rows").filter(ds.field("id") < 1000)
    codes = np.concatenate([piece[:1000] for piece in np.array_split(CODES, 7)])
    assert_same(stream(chosen), in_memory(codes))


def test_folders_may_hold_a_column(tmp_path, held):
    table, node = as_table(CODES), NETWORK.nodes[2]
    pq.write_to_dataset(table, tmp_path / "rows", partition_cols=[node])
    fitted = stream(tmp_path / "rows", weights_to=tmp_path / "weights")
    assert fitted.reading_.n_rows == N_ROWS
    np.testing.assert_array_equal(fitted.result_.plain_counts, held.result_.plain_counts)
    folders = {f.split("/")[0] for f in everything_in(tmp_path / "weights")}
    assert folders == {f"{node}=0", f"{node}=1"}


def test_files_of_other_column_orders_give_the_same_in_memory_and_as_a_stream(tmp_path, held):
    pieces = [as_table(piece).to_pandas() for piece in np.array_split(CODES, 3)]
    names = list(pieces[0].columns)
    pieces[0]["feed"] = "north"
    pieces[1] = pieces[1][names[::-1]]
    pieces[2] = pieces[2].assign(feed="south", more=1)[["more", *names[3:], "feed", *names[:3]]]
    for k, piece in enumerate(pieces):
        piece.to_csv(tmp_path / f"{k}.csv", index=False)
    settings = {"id": "id", "context": ["feed"]}
    fits = [
        robustbn.fit(NETWORK, tmp_path, place=place, random_state=0, **settings)
        for place in ("memory", "stream")
    ]
    for fit in fits:
        assert_same(fit, held)
        assert fit.reading_.ignored == ("id", "feed")
        assert fit.rows()["id"].tolist() == [str(v) for piece in pieces for v in piece["id"]]
    assert fits[0].where().equals(fits[1].where())


@pytest.mark.parametrize("place", ["memory", "stream"])
def test_a_file_that_lacks_a_node_is_named_in_memory_and_as_a_stream(place, tmp_path):
    frame = as_table(CODES[:50]).to_pandas()
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.drop(columns=NETWORK.nodes[2]).to_csv(tmp_path / "b.csv", index=False)
    told = rf"b.csv lacks 1 of the network's columns: '{NETWORK.nodes[2]}'"
    with pytest.raises(DataError, match=told):
        robustbn.fit(NETWORK, tmp_path, place=place)
    with pytest.raises(DataError, match=told):
        robustbn.states_from(tmp_path, [(NETWORK.nodes[2], NETWORK.nodes[1])])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
@pytest.mark.parametrize("place", ["memory", "stream"])
def test_a_pipe_inside_a_folder_is_refused(place, tmp_path):
    as_table(CODES[:50]).to_pandas().to_csv(tmp_path / "a.csv", index=False)
    os.mkfifo(tmp_path / "b.csv")
    for table in (tmp_path, f"{tmp_path}/*.csv"):
        with pytest.raises(DataError, match=r"b.csv is a pipe, .* or take it out of the folder"):
            robustbn.fit(NETWORK, table, place=place)
    with pytest.raises(DataError, match=r"b.csv.* is a pipe"):
        robustbn.read_table(tmp_path, NETWORK, format="csv")


def test_a_relation_of_duckdb_can_be_streamed(tmp_path, held, no_memory):
    write_folder(tmp_path / "rows")
    with duckdb.connect() as connection:
        relation = connection.read_parquet(f"{tmp_path}/rows/*.parquet")
        assert_same(stream(relation), held)


def test_a_function_that_makes_batches_can_be_streamed(held, no_memory):
    table = as_table(CODES)
    assert_same(stream(lambda: iter(table.to_batches(1000))), held)
    assert_same(
        stream(lambda: pa.RecordBatchReader.from_batches(table.schema, table.to_batches())), held
    )


def test_a_function_that_makes_tables_or_frames_can_be_streamed(held, no_memory):
    table = as_table(CODES)
    slices = [table.slice(start, 7000) for start in range(0, N_ROWS, 7000)]
    assert_same(stream(lambda: iter(slices)), held)
    assert_same(stream(lambda: (part.to_pandas() for part in slices)), held)
    with pytest.raises(
        DataError, match="yields a dict; expected record batches, Arrow tables or frames"
    ):
        stream(lambda: iter([{"a": 1}]))


def test_a_stream_that_can_be_read_once_only_is_refused(no_memory):
    table = as_table(CODES)
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    with pytest.raises(DataError, match="only once"):
        stream(reader)
    batches = iter(table.to_batches(max_chunksize=2000))
    with pytest.raises(DataError, match="returns the same iterator at every call"):
        stream(lambda: batches)
    with pytest.raises(DataError, match=r"no batches, .* return a new iterator at every call"):
        stream(lambda: map(as_is, batches))


def as_is(batch):
    return batch


def test_a_function_that_returns_an_exhausted_iterator_again_loses_no_batch(held):
    slices = [as_table(part) for part in np.array_split(CODES, 3)]
    same = iter(slices)
    with pytest.raises(DataError, match="returns the same iterator at every call"):
        stream(lambda: same)
    reader = pa.concat_tables(slices).to_reader()
    with pytest.raises(DataError, match="returns the same iterator at every call"):
        stream(lambda: reader)
    assert_same(stream(lambda: map(as_is, same)), held)  # read once: the packed rows are held


def test_columns_of_later_frames_are_found_by_their_names(held, no_memory):
    slices = [as_table(part) for part in np.array_split(CODES, 3)]
    names = slices[0].column_names
    turned = [
        slices[0],
        slices[1].select(names[::-1]),
        slices[2].append_column("more", slices[2][0]),
    ]
    assert_same(stream(lambda: iter(turned)), held)
    assert_same(stream(lambda: (part.to_pandas() for part in turned)), held)
    found = robustbn.states_from(lambda: iter(turned), [(names[1], names[2])])
    assert found.states == {name: tuple(map(int, NETWORK.states[name])) for name in names[1:3]}
    for wrong in (
        turned[1].drop_columns(names[3]),
        turned[1].append_column(names[3], turned[1][0]),
    ):
        with pytest.raises(
            DataError, match=rf"batch 1 .* columns '{names[3]}', and the first has 1"
        ):
            stream(lambda wrong=wrong: iter([slices[0], wrong]))


def test_other_rows_at_the_second_pass_are_noticed(no_memory):
    table, opened = as_table(CODES), []

    def open_anew():
        opened.append(1)
        return table.slice(0, N_ROWS - (len(opened) > 2)).to_reader()

    with pytest.raises(
        DataError, match=r"has changed while it was read.*24,000 rows, this one 23,999"
    ):
        stream(open_anew)


def test_cuts_are_those_of_all_files(tmp_path):
    rng = np.random.default_rng(0)
    network = robustbn.BayesianNetwork({"x": [], "y": ["x"]}, {"x": range(3), "y": ["0", "1"]})
    x = np.sort(rng.normal(size=4000))
    y = (x + rng.normal(size=4000) > 0).astype(int)
    (tmp_path / "rows").mkdir()
    for k in range(2):
        piece = slice(2000 * k, 2000 * (k + 1))
        pq.write_table(
            pa.table({"x": x[piece], "y": y[piece].astype(str)}), tmp_path / f"rows/{k}.parquet"
        )
    settings = {"bins": {"x": "q3"}, "random_state": 0}
    held = RobustEstimator(network, **settings).fit(tmp_path / "rows")
    streamed = RobustEstimator(network, place="stream", **settings).fit(tmp_path / "rows")
    assert streamed.reading_.config.bins == held.reading_.config.bins
    assert_same(streamed, held)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
@pytest.mark.parametrize("states", [(0, 1), (1, 2), (1, 0), (5, 3), (100, 7), (1, 3, 2)])
def test_numbers_of_a_byte_are_read_as_wider_ones_are(states, dtype):
    network = robustbn.BayesianNetwork({"a": []}, {"a": list(states)})
    values = np.random.default_rng(0).choice(states, 1000)
    wide = robustbn.read_table({"a": values.astype(np.int64)}, network)
    narrow = robustbn.read_table({"a": values.astype(dtype)}, network)
    np.testing.assert_array_equal(narrow.codes, wide.codes)
    np.testing.assert_array_equal(np.array(states)[narrow.codes[:, 0]], values)
    with pytest.raises(DataError, match="row 1000"):
        robustbn.read_table({"a": np.append(values, 99).astype(dtype)}, network)


def test_negative_numbers_of_a_byte_are_states_too():
    network = robustbn.BayesianNetwork({"a": []}, {"a": [-1, 0, 1]})
    read = robustbn.read_table({"a": np.array([-1, 1, 0, -1], np.int8)}, network)
    assert read.codes[:, 0].tolist() == [0, 2, 1, 0]


# --- which tables are streamed --------------------------------------------------------------------


def test_size_decides_what_is_streamed(tmp_path, monkeypatch):
    from robustbn._rows.stream.find import is_large

    write_folder(tmp_path / "rows")
    (tmp_path / "rows.csv").write_text(as_text(CODES))
    (tmp_path / "rows.csv.gz").write_bytes(gzip.compress(as_text(CODES).encode()))
    relation = duckdb.read_parquet(f"{tmp_path}/rows/*.parquet")
    tables = [tmp_path / "rows", tmp_path / "rows.csv", tmp_path / "rows.csv.gz", relation]
    tables.append(ds.dataset(tmp_path / "rows"))
    assert not any(is_large(table, NETWORK) for table in tables)
    monkeypatch.setattr("robustbn._rows.stream.find.physical_bytes", lambda: 4 * (CODES.size - 1))
    assert all(is_large(table, NETWORK) for table in tables)
    estimator = RobustEstimator(NETWORK)
    assert [choose_place(estimator, table) for table in tables] == ["stream"] * len(tables)
    assert choose_place(estimator, CODES) == "memory"


def test_settings_of_streams_are_never_passed_over(tmp_path):
    write_folder(tmp_path / "rows")
    RobustEstimator(NETWORK, random_state=0, streaming=Streaming(weights_to=tmp_path / "w")).fit(
        tmp_path / "rows"
    )
    assert len(everything_in(tmp_path / "w")) == 7


def test_the_one_call_streams_too_with_every_setting_of_reading(tmp_path, held):
    names = [f"Column {node}" for node in NETWORK.nodes]
    (tmp_path / "rows.csv").write_text(
        "\n".join([";".join(names), *as_text(CODES, ";").split("\n")[1:]])
    )
    settings = {"rename": dict(zip(names, NETWORK.nodes, strict=True)), "sep": ";"}
    path = tmp_path / "rows.csv"
    fitted = robustbn.fit(NETWORK, path, place="stream", random_state=0, **settings)
    assert_same(fitted, held)
    with pytest.raises(DataError, match="read into memory already"):
        stream(robustbn.read_table(CODES, NETWORK))


def test_the_one_call_takes_none_for_no_setting_and_a_table_that_was_read(held):
    table = as_table(CODES)
    fitted = robustbn.fit(NETWORK, table, place="stream", random_state=0, rename=None, labels=None)
    assert_same(fitted, held)
    read = robustbn.read_table(CODES, NETWORK)
    assert_same(robustbn.fit(NETWORK, read, random_state=0), held)
    with pytest.raises(DataError, match="already read, so on_missing has no effect"):
        robustbn.fit(NETWORK, read, on_missing="drop")


def test_nothing_of_an_earlier_fit_is_left():
    frame = as_table(CODES[:2000]).to_pandas()
    fitted = robustbn.fit(NETWORK, frame, place="stream", on_missing="drop", random_state=0)
    assert list(fitted.feature_names_in_) == list(NETWORK.nodes)
    fitted.fit(lambda: frame)
    assert not hasattr(fitted, "feature_names_in_")
    frame.loc[3, NETWORK.nodes[0]] = None
    with pytest.raises(DataError, match="1 of 2,000 rows"):
        fitted.set_params(on_missing="error").fit(frame)


def test_weights_are_refused_by_streams(tmp_path):
    write_folder(tmp_path / "rows")
    with pytest.raises(DataError, match="sample_weight"):
        RobustEstimator(NETWORK, place="stream").fit(
            tmp_path / "rows", sample_weight=np.ones(N_ROWS)
        )


# --- the cache ------------------------------------------------------------------------------------


def test_a_cache_is_read_in_place_of_the_files_and_removed(tmp_path, monkeypatch, held):
    write_folder(tmp_path / "rows", n_files=3)
    reads = []
    read = robustbn._rows.stream.parts.CodeStream.read
    monkeypatch.setattr(
        "robustbn._rows.stream.parts.CodeStream.read",
        lambda self, part, tally: reads.append(part) or read(self, part, tally),
    )
    assert_same(stream(tmp_path / "rows", cache=tmp_path / "cache"), held)
    assert reads == [0, 1, 2]
    assert everything_in(tmp_path / "cache") == []


@pytest.mark.parametrize("how", ["flipped", "cut"])
def test_a_cache_that_changed_on_disk_is_refused(how, tmp_path, monkeypatch):
    write_folder(tmp_path / "rows", n_files=3)
    made = []
    make = tempfile.TemporaryFile
    monkeypatch.setattr(
        tempfile, "TemporaryFile", lambda **where: made.append(make(**where)) or made[0]
    )

    def spoil(what, done, total):
        if (what, done) == ("counting rows", 3):
            size = os.fstat(made[0].fileno()).st_size
            if how == "cut":
                os.truncate(made[0].fileno(), size - 1)
            else:
                (byte,) = os.pread(made[0].fileno(), 1, size // 2)
                os.pwrite(made[0].fileno(), bytes([byte ^ 1]), size // 2)

    with pytest.raises(CacheError, match=r"The cache .*cache has changed on disk"):
        stream(tmp_path / "rows", cache=tmp_path / "cache", part=spoil)
    assert everything_in(tmp_path / "cache") == []


def test_a_cache_leaves_alone_whatever_else_is_in_its_folder(tmp_path, held):
    write_folder(tmp_path / "rows", n_files=3)
    (tmp_path / "cache").mkdir()
    names = ["notes.txt", "rows-0badcafe-000000.packed", "rows-2024.packed"]
    for name in names[:2]:
        (tmp_path / "cache" / name).write_text("mine")
    (tmp_path / "cache/rows-2024.packed").symlink_to(tmp_path / "cache/notes.txt")
    seen = []

    def look(what, done, total):
        seen.append(everything_in(tmp_path / "cache"))

    fitted = stream(tmp_path / "rows", cache=tmp_path / "cache", part=look)
    assert_same(fitted, held)
    assert all(found == names for found in [*seen, everything_in(tmp_path / "cache")])
    assert {(tmp_path / "cache" / name).read_text() for name in names} == {"mine"}


def test_two_runs_may_have_caches_in_one_folder(tmp_path, held):
    write_folder(tmp_path / "rows", n_files=3)
    inner = []

    def fit_another(what, done, total):
        if not inner:
            inner.append(None)
            inner[0] = stream(tmp_path / "rows", cache=tmp_path / "cache")

    outer = stream(tmp_path / "rows", cache=tmp_path / "cache", part=fit_another)
    assert_same(outer, held)
    assert_identical(outer, inner[0])


def test_weights_are_not_written_where_a_pattern_would_read_them(tmp_path):
    write_folder(tmp_path / "rows")
    estimator = RobustEstimator(
        NETWORK, streaming=Streaming(weights_to=tmp_path / "rows" / "w.parquet")
    )
    with pytest.raises(DataError, match="would be read as rows next time"):
        estimator.fit(f"{tmp_path}/rows/*.parquet")


def test_copies_are_counted_among_all_rows_though_some_are_drawn(monkeypatch):
    monkeypatch.setattr("robustbn._learn.conductor.SURVEYED", 4000)
    network = robustbn.random_network("tree", 30, random_state=0)
    codes = robustbn.sample(network, 20_000, random_state=0)
    codes[::20] = codes[3]
    fitted = RobustEstimator(network, random_state=0, sample_rows=4000).fit(codes)
    assert fitted.repeats_[0].seen == pytest.approx(1001, rel=0.2)
