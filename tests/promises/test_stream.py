"""Tables read in stretches give what tables in memory give, and no fault goes unnoticed."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
from contextlib import closing
from dataclasses import fields

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import LocalFileSystem

import robustbn
from robustbn import RobustEstimator, Streaming, random_network, sample
from robustbn._learn.places import Watch
from robustbn._rows.stream.parts import make_ahead
from robustbn._tables.arrow import scan
from robustbn._tables.files import find_files, make_dataset
from robustbn._tables.sources import open_table
from robustbn.adversary import corrupt
from robustbn.estimator.learning import choose_place, fit_to
from robustbn.exceptions import CacheError, DataError

N_ROWS = 24_000
NETWORK = random_network("tree", 12, random_state=3)
TRUTH = sample(NETWORK, N_ROWS, random_state=3)
CODES = corrupt(TRUTH, NETWORK, "flipped", eps=0.15, random_state=3)[0]


def as_table(codes, names=NETWORK.nodes):
    columns = {n: pa.array(codes[:, k].astype(str)) for k, n in enumerate(names)}
    return pa.table({"id": np.arange(len(codes)), **columns})


def write_folder(folder, codes=CODES, n_files=7, order=None, **settings):
    """Write rows as Parquet files; return the rows in the order in which they will be read."""
    folder.mkdir(parents=True, exist_ok=True)
    pieces = np.array_split(codes, n_files)
    pieces = pieces if order is None else [pieces[k] for k in order]
    for k, piece in enumerate(pieces):
        pq.write_table(as_table(piece), folder / f"part-{k:03}.parquet", **settings)
    return np.concatenate(pieces)


def stream(table, part=None, **settings):
    """Fit to a table in stretches; `part` is told of every part."""
    names = [each.name for each in fields(Streaming) if each.name in settings]
    streaming = Streaming(**{name: settings.pop(name) for name in names})
    settings = {"random_state": 0, "place": "stream"} | settings
    fit = RobustEstimator(NETWORK, streaming=streaming, **settings)
    fit_to(fit, table, watch=None if part is None else Watch(part=part))
    return fit


def in_memory(codes, **settings):
    return RobustEstimator(NETWORK, random_state=0, **settings).fit(codes)


def assert_same(streamed, held, atol=1e-9):
    np.testing.assert_allclose(
        streamed.network_.probabilities, held.network_.probabilities, atol=atol
    )
    np.testing.assert_allclose(streamed.counts_, held.counts_, rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(streamed.row_weights_, held.row_weights_, atol=1e-6)
    assert streamed.contamination_ == pytest.approx(held.contamination_, abs=1e-9)


def assert_identical(a, b):
    np.testing.assert_array_equal(a.counts_, b.counts_)
    np.testing.assert_array_equal(a.network_.probabilities, b.network_.probabilities)
    np.testing.assert_array_equal(a.row_weights_, b.row_weights_)
    assert a.contamination_ == b.contamination_


def everything_in(folder):
    return sorted(str(f.relative_to(folder)) for f in folder.rglob("*"))


@pytest.fixture
def no_memory(monkeypatch):
    """No packed rows are held, so that every pass reads the files."""
    monkeypatch.setattr("robustbn._rows.stream.cache.MOST_BYTES", 0)


@pytest.fixture
def small_sample(monkeypatch):
    """Fewer rows are drawn than there are."""
    monkeypatch.setattr("robustbn._learn.conductor.SURVEYED", 9_000)
    monkeypatch.setattr("robustbn._core.config.LEAST_SAMPLE", 6_000)
    monkeypatch.setattr("robustbn._core.config.ROWS_A_PARAMETER", 1)


@pytest.fixture(scope="module")
def held():
    return in_memory(CODES)


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


def as_text(codes, sep=","):
    lines = [sep.join(NETWORK.nodes), *(sep.join(map(str, row)) for row in codes.tolist())]
    return "\n".join(lines) + "\n"


def write_kind(kind, folder, codes):
    folder.mkdir()
    for k, piece in enumerate(np.array_split(codes, 2)):
        file = folder / f"part-{k}.{kind}"
        if kind == "arrow":
            feather.write_feather(as_table(piece), file)
        elif kind == "csv":
            file.write_text(as_text(piece))
        elif kind == "csv.gz":
            file.write_bytes(gzip.compress(as_text(piece).encode()))
        else:
            rows = (dict(zip(NETWORK.nodes, map(str, row), strict=True)) for row in piece.tolist())
            file.write_text("\n".join(map(json.dumps, rows)))
    return folder


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


# --- rows that are left out, and wrong values -----------------------------------------------------


@pytest.mark.parametrize("in_a_folder", [False, True])
def test_rows_that_are_left_out_are_counted_and_keep_their_place(
    in_a_folder, tmp_path, monkeypatch
):
    monkeypatch.setattr("robustbn._rows.stream.cache.MOST_BYTES", 0)
    columns = as_table(CODES).to_pydict()
    for row in (5, 9_000, 23_999):
        columns[NETWORK.nodes[1]][row] = None
    table = pa.table(columns)
    (tmp_path / "rows").mkdir()
    for k in range(4):
        pq.write_table(table.slice(6_000 * k, 6_000), tmp_path / f"rows/{k}.parquet")
    cache = {"cache": tmp_path / "cache"} if in_a_folder else {}
    fitted = stream(tmp_path / "rows", on_missing="drop", weights_to=tmp_path / "w", **cache)
    held = RobustEstimator(NETWORK, random_state=0, on_missing="drop").fit(tmp_path / "rows")
    assert_same(fitted, held)
    assert fitted.reading_.n_dropped == 3
    assert fitted.reading_.n_missing == {NETWORK.nodes[1]: 3}
    assert np.flatnonzero(np.isnan(fitted.row_weights_)).tolist() == [5, 9_000, 23_999]
    written = ds.dataset(tmp_path / "w").to_table()
    np.testing.assert_array_equal(written["weight"], fitted.row_weights_)
    assert len(fitted.rows()) == N_ROWS


def test_rows_left_out_and_more_rows_than_are_drawn_give_nearly_the_same(
    tmp_path, small_sample, no_memory
):
    columns = as_table(CODES).to_pydict()
    columns[NETWORK.nodes[1]][7] = None
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    fitted = stream(tmp_path / "rows.parquet", on_missing="drop")
    held = RobustEstimator(NETWORK, random_state=0, on_missing="drop").fit(
        tmp_path / "rows.parquet"
    )
    np.testing.assert_array_equal(fitted.result_.plain_counts, held.result_.plain_counts)
    np.testing.assert_allclose(
        fitted.network_.probabilities, held.network_.probabilities, atol=0.02
    )


@pytest.mark.parametrize("value", [None, "maybe"])
def test_a_wrong_value_is_told_with_its_file_and_row(value, tmp_path, no_memory):
    write_folder(tmp_path / "rows", n_files=3)
    columns = as_table(np.array_split(CODES, 3)[1]).to_pydict()
    columns[NETWORK.nodes[4]][77] = value
    pq.write_table(pa.table(columns), tmp_path / "rows/part-001.parquet")
    for on_error in ("raise", "skip"):  # a wrong value is no damage
        with pytest.raises(DataError, match=r"part-001\.parquet, column .*first at row 77"):
            stream(
                tmp_path / "rows",
                on_error=on_error,
                weights_to=tmp_path / "w",
                on_missing="error",
            )
    assert everything_in(tmp_path) == ["rows", *(f"rows/part-00{k}.parquet" for k in range(3))]


def test_a_wrong_value_is_told_with_its_row_in_the_file_not_in_its_row_group(tmp_path, monkeypatch):
    monkeypatch.setattr("robustbn._rows.stream.find.PART_ROWS", 3_000)
    columns = as_table(CODES).to_pydict()
    columns[NETWORK.nodes[4]][20_077] = "maybe"
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet", row_group_size=3_000)
    with pytest.raises(DataError, match="first at row 20077"):
        stream(tmp_path / "rows.parquet")


# --- damaged files --------------------------------------------------------------------------------


def damage(file, how, row_group=0):
    data = bytearray(file.read_bytes())
    if how == "footer":
        data = data[: len(data) // 2]
    elif how == "empty":
        data = b""
    else:  # bytes in the middle of a column of the network; the footer is good
        column = pq.read_metadata(file).row_group(row_group).column(3)
        start, n_bytes = column.data_page_offset, column.total_compressed_size
        for k in range(start + n_bytes // 3, start + n_bytes // 2):
            data[k] ^= 0xFF
    file.write_bytes(data)


@pytest.mark.parametrize("how", ["footer", "pages", "empty"])
@pytest.mark.parametrize("draws_all", [True, False])
def test_a_damaged_file_is_named_or_skipped(how, draws_all, tmp_path, request):
    if not draws_all:
        request.getfixturevalue("small_sample")
    write_folder(tmp_path / "rows", n_files=5, write_page_checksum=True)
    damage(tmp_path / "rows/part-002.parquet", how)
    with pytest.raises(DataError, match=r"part-002\.parquet"):
        stream(tmp_path / "rows", weights_to=tmp_path / "w", cache=tmp_path / "cache")
    assert everything_in(tmp_path / "cache") == [] if (tmp_path / "cache").exists() else True
    assert not (tmp_path / "w").exists()
    fitted = stream(tmp_path / "rows", weights_to=tmp_path / "w", on_error="skip")
    others = np.concatenate([p for k, p in enumerate(np.array_split(CODES, 5)) if k != 2])
    assert_same(fitted, in_memory(others))
    assert [name[-16:] for name in fitted.reading_.skipped] == ["part-002.parquet"]
    assert "1 file could not be read and was skipped" in str(fitted.reading_)
    assert fitted.reading_.n_read == len(others)
    assert everything_in(tmp_path / "w") == [f"part-00{k}.parquet" for k in (0, 1, 3, 4)]
    path = tmp_path / "model.json"
    fitted.save(path)
    assert RobustEstimator.load(path).reading_.skipped == fitted.reading_.skipped


def test_a_file_damaged_in_a_late_row_group_is_skipped_as_a_whole(tmp_path, monkeypatch):
    monkeypatch.setattr("robustbn._rows.stream.find.PART_ROWS", 1_000)
    write_folder(tmp_path / "rows", n_files=4, write_page_checksum=True, row_group_size=1_000)
    damage(tmp_path / "rows/part-001.parquet", "pages", row_group=4)
    fitted = stream(tmp_path / "rows", on_error="skip", weights_to=tmp_path / "w")
    others = np.concatenate([p for k, p in enumerate(np.array_split(CODES, 4)) if k != 1])
    assert_same(fitted, in_memory(others))
    assert len(everything_in(tmp_path / "w")) == 3


def test_when_no_file_can_be_read_it_is_an_error(tmp_path):
    write_folder(tmp_path / "rows", n_files=2)
    for k in range(2):
        damage(tmp_path / f"rows/part-00{k}.parquet", "footer")
    with pytest.raises(DataError, match="No file can be read"):
        stream(tmp_path / "rows", on_error="skip")


def test_a_damaged_file_of_text_is_named_or_skipped(tmp_path):
    folder = write_kind("csv.gz", tmp_path / "rows", CODES[:6000])
    file = folder / "part-1.csv.gz"
    file.write_bytes(file.read_bytes()[:-4000])
    with pytest.raises(DataError, match=r"part-1\.csv\.gz"):
        stream(folder)
    assert_same(stream(folder, on_error="skip"), in_memory(CODES[:3000]))


def test_on_error_is_checked(tmp_path):
    write_folder(tmp_path / "rows")
    with pytest.raises(ValueError, match="on_error is 'raise' or 'skip'"):
        stream(tmp_path / "rows", on_error="ignore")


@pytest.mark.parametrize("how", ["cut", "flipped"])
def test_a_damaged_arrow_file_is_named_or_skipped(how, tmp_path):
    folder = write_kind("arrow", tmp_path / "rows", CODES[:6000])
    data = bytearray((folder / "part-1.arrow").read_bytes())
    if how == "flipped":
        for k in range(len(data) // 2, len(data) * 3 // 4):
            data[k] ^= 0xFF
    (folder / "part-1.arrow").write_bytes(data[:-500] if how == "cut" else data)
    with pytest.raises(DataError, match=r"part-1\.arrow"):
        stream(folder)
    assert_same(stream(folder, on_error="skip"), in_memory(CODES[:3000]))


# --- weights --------------------------------------------------------------------------------------


def test_weights_are_written_beside_the_data_in_its_partitioning(tmp_path, no_memory):
    write_folder(tmp_path / "rows", n_files=3)
    before = {f.name: f.read_bytes() for f in (tmp_path / "rows").iterdir()}
    fitted = stream(tmp_path / "rows", weights_to=tmp_path / "weights")
    assert {f.name: f.read_bytes() for f in (tmp_path / "rows").iterdir()} == before
    assert everything_in(tmp_path / "weights") == sorted(before)
    start = 0
    for name in sorted(before):
        written = pq.read_table(tmp_path / "weights" / name)
        assert written.column_names == ["row", "weight", "is_suspicious"]
        n = pq.read_metadata(tmp_path / "rows" / name).num_rows
        mine = fitted.row_weights_[start : start + n]
        np.testing.assert_array_equal(written["row"], np.arange(n))
        np.testing.assert_array_equal(written["weight"], mine)
        np.testing.assert_array_equal(written["is_suspicious"], mine < 0.5)
        start += n
    with pytest.raises(DataError, match="exists already"):
        stream(tmp_path / "rows", weights_to=tmp_path / "weights")


def test_weights_are_not_written_among_the_rows(tmp_path):
    write_folder(tmp_path / "rows", n_files=2)
    with pytest.raises(DataError, match="would be read as rows"):
        stream(tmp_path / "rows", weights_to=tmp_path / "rows/weights")
    stream(tmp_path / "rows", weights_to=tmp_path / "rows/_weights")
    assert stream(tmp_path / "rows").reading_.n_rows == N_ROWS


@pytest.mark.parametrize("name", ["../../there/x.parquet", "../x.parquet", "/part-000.parquet"])
def test_names_in_a_dataset_that_lead_out_of_its_folder_get_no_weights(name, tmp_path):
    (tmp_path / "a/b").mkdir(parents=True)
    write_folder(tmp_path / "a/b/rows", CODES[:4000], n_files=2)
    for place in ("there/x.parquet", "a/b/x.parquet", "a/there/x.parquet"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        pq.write_table(as_table(CODES[2000:4000]), tmp_path / place)
    names = [f"{tmp_path}/a/b/rows/{each}" for each in ("part-000.parquet", name)]
    table = ds.FileSystemDataset.from_paths(
        names,
        schema=as_table(CODES).schema,
        format=ds.ParquetFileFormat(),
        filesystem=LocalFileSystem(),
    )
    assert table.files == names
    assert stream(table).reading_.n_rows == 4000
    before = everything_in(tmp_path)
    with pytest.raises(DataError, match="Weights cannot be written by the names of these files"):
        stream(table, weights_to=tmp_path / "a/b/w")
    assert everything_in(tmp_path) == before


def test_a_file_without_rows_gets_a_file_without_weights(tmp_path):
    write_folder(tmp_path / "rows", n_files=2)
    pq.write_table(as_table(CODES[:0]), tmp_path / "rows/part-0005.parquet")
    stream(tmp_path / "rows", weights_to=tmp_path / "w")
    assert pq.read_metadata(tmp_path / "w/part-0005.parquet").num_rows == 0


def test_too_many_weights_to_hold_are_still_written(tmp_path, monkeypatch):
    write_folder(tmp_path / "rows", n_files=2)
    held = stream(tmp_path / "rows")
    monkeypatch.setattr("robustbn._rows.stream.data.MOST_WEIGHTS_HELD", 1000)
    fitted = stream(tmp_path / "rows", weights_to=tmp_path / "w")
    assert not hasattr(fitted, "row_weights_")
    with pytest.raises(robustbn.exceptions.NotFittedError, match="too many"):
        fitted.rows()
    with pytest.raises(DataError, match="too many rows to return one value per row"):
        RobustEstimator(NETWORK, place="stream").fit_predict(tmp_path / "rows")
    np.testing.assert_array_equal(
        ds.dataset(tmp_path / "w").to_table()["weight"], held.row_weights_
    )
    assert fitted.summary() is not None


# --- a process that ends --------------------------------------------------------------------------

CHILD = """
import os, resource, signal, sys
import robustbn._rows.stream.cache, robustbn._rows.stream.data, robustbn._rows.stream.find
from robustbn import RobustEstimator
from robustbn._learn.places import Watch
from robustbn._rows.stream.parts import make_ahead
from robustbn._tables.files import find_files, make_dataset
from robustbn._tables.arrow import scan
from robustbn._tables.sources import open_table
from robustbn import read_network
from robustbn import Streaming, read_network
from robustbn.estimator.learning import fit_to
robustbn._rows.stream.data.SAVE_SECONDS = 0.0
robustbn._rows.stream.cache.MOST_BYTES = 0
folder, settings, when = sys.argv[1], eval(sys.argv[2]), eval(sys.argv[3])

def told(what, done, total):
    if (what, done) == when:
        os.kill(os.getpid(), signal.SIGKILL)

if when == "full":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, 2_000))
network = read_network(folder + "/network.json")
settings = {"place": "stream", "random_state": 0, "streaming": Streaming(**settings)}
fit_to(RobustEstimator(network, **settings), folder + "/rows", watch=Watch(part=told))
"""


def run_child(folder, settings, when):
    robustbn.write_network(NETWORK, folder / "network.json")
    return subprocess.run(
        [
            sys.executable,
            "-W",
            "ignore",
            "-c",
            textwrap.dedent(CHILD),
            str(folder),
            repr(settings),
            repr(when),
        ],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_function_is_run_by_the_thread_that_fits():
    callers = set()

    def batches():
        callers.add(threading.get_ident())
        yield as_table(CODES[:2_000])
        callers.add(threading.get_ident())
        yield as_table(CODES[2_000:4_000])

    stream(batches)
    assert callers == {threading.get_ident()}


def test_ctrl_c_on_a_function_that_is_stuck_ends_it_there():
    ended, its, own = [], *os.pipe()

    def batches():
        yield as_table(CODES[:2_000])
        threading.Timer(0.2, lambda: signal.pthread_kill(main, signal.SIGINT)).start()
        try:
            os.read(its, 1)
        except KeyboardInterrupt:
            ended.append("there")
            raise

    main = threading.main_thread().ident
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            stream(batches)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert ended == ["there"]
    os.close(its)
    os.close(own)


def test_a_source_that_is_stuck_is_not_waited_for(monkeypatch):
    monkeypatch.setattr("robustbn._rows.stream.parts.GRACE_S", 0.05)
    goes_on = threading.Event()

    def items():
        yield 1
        goes_on.wait(60)

    with closing(make_ahead(items(), 2)) as made:
        assert next(made) == 1
        (reader,) = [t for t in threading.enumerate() if t.name == "robustbn-reader"]
    assert reader.is_alive()
    goes_on.set()
    reader.join(60)
    assert not reader.is_alive()


def test_an_interrupt_leaves_nothing_behind_and_the_next_run_gives_the_same(tmp_path):
    write_folder(tmp_path / "rows", n_files=3)
    settings = {"weights_to": tmp_path / "w", "cache": tmp_path / "cache"}

    def stop(what, done, total):
        if (what, done) == ("judging rows", 2):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stream(tmp_path / "rows", part=stop, **settings)
    assert everything_in(tmp_path / "cache") == []
    assert sorted(f.name for f in tmp_path.iterdir()) == ["cache", "rows"]
    fitted = stream(tmp_path / "rows", **settings)
    assert_identical(fitted, stream(tmp_path / "rows"))
    assert len(everything_in(tmp_path / "w")) == 3


@pytest.mark.parametrize("when", [("counting rows", 3), ("judging rows", 3)])
def test_a_run_that_was_killed_leaves_no_weights_and_the_next_gives_the_same(
    when, tmp_path, no_memory
):
    write_folder(tmp_path / "rows", n_files=5)
    settings = {"weights_to": str(tmp_path / "w")}
    killed = run_child(tmp_path, settings, when)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not (tmp_path / "w").exists()
    again = stream(tmp_path / "rows", **settings)
    assert_identical(again, stream(tmp_path / "rows"))
    written = ds.dataset(tmp_path / "w").to_table()
    np.testing.assert_array_equal(written["weight"], again.row_weights_)
    assert len(everything_in(tmp_path / "w")) == 5
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("place", ["weights_to", "cache"])
def test_a_full_disk_is_told_and_leaves_nothing_behind(place, tmp_path):
    write_folder(tmp_path / "rows", n_files=2)
    ended = run_child(tmp_path, {place: str(tmp_path / "full")}, "full")
    assert ended.returncode == 1
    last = ended.stderr.strip().splitlines()[-1]
    assert re.search("full.* cannot be written: .*File too large", last), ended.stderr
    left = everything_in(tmp_path / "full") if (tmp_path / "full").exists() else []
    assert left == []
    assert not list(tmp_path.glob(".*"))


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
