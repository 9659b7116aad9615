"""No fault of a table that is read in stretches goes unnoticed, and none leaves anything behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
from contextlib import closing

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import LocalFileSystem

import robustbn
from robustbn import RobustEstimator
from robustbn._rows.stream.parts import make_ahead
from robustbn.exceptions import DataError
from tests.streams import (
    CODES,
    N_ROWS,
    NETWORK,
    as_table,
    assert_identical,
    assert_same,
    everything_in,
    in_memory,
    stream,
    write_folder,
    write_kind,
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
