"""Small files that hold much are refused before they fill the memory; honest ones are read."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from robustbn import read_table
from robustbn._core import downloads
from robustbn._core.downloads import RATIO_SETTING
from robustbn._tables.ipc import count_unpacked_bytes
from robustbn.exceptions import DataError
from tests.tables import one_node

MOST_MEGABYTES = 300
FAR_MORE = "far more than expected for its size"
MANY = 12_000_000


def zstd(data):
    return pa.compress(data, "zstd", asbytes=True)


def workbook(rows):
    """A workbook with so many bytes of rows more than it needs."""
    book, plain, packed = openpyxl.Workbook(write_only=True), io.BytesIO(), io.BytesIO()
    sheet = book.create_sheet()
    sheet.append(["a"])
    book.save(plain)
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(packed, "w", 8) as target:
        for name in source.namelist():
            more = rows if name.endswith("sheet1.xml") else b""
            data = source.read(name).replace(b"</sheetData>", more + b"</sheetData>")
            target.writestr(name, data)
    return packed.getvalue()


def parquet(table, **settings):
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", **settings)
    return sink.getvalue()


def arrow(table):
    sink = io.BytesIO()
    feather.write_feather(table, sink, compression="zstd")
    return sink.getvalue()


BOMBS = {
    "rows.csv.gz": (lambda: gzip.compress(b"a\n" + b"no\n" * MANY, 1), FAR_MORE),
    "rows.csv.zst": (lambda: zstd(b"a\n" + b"no\n" * MANY), FAR_MORE),
    "rows.csv.bz2": (
        lambda: bz2.compress(b"a\n") + bz2.compress(b"no\n" * (MANY // 100)) * 101,
        FAR_MORE,
    ),
    "header.csv.gz": (lambda: gzip.compress(b"a" * MANY, 1), "first line has more than"),
    "blank.csv.gz": (lambda: gzip.compress(b"\n" * MANY, 1), "first 10,000 lines are blank"),
    "rows.jsonl.gz": (lambda: gzip.compress(b'{"a": "no"}\n' * (MANY // 4), 1), FAR_MORE),
    "deep.jsonl": (lambda: b'{"a":' * 100_000, "nested more than 500 deep"),
    "lists.jsonl": (lambda: b'{"a":\n' + b"[\n" * 400_000, "nested more than 500 deep"),
    "rows.xlsx": (lambda: workbook(b"<row><c/></row>" * (MANY // 8)), FAR_MORE),
    "page.parquet": (
        lambda: parquet(pa.table({"a": ["n" * MANY] * 3}), use_dictionary=False),
        FAR_MORE,
    ),
    "runs.parquet": (
        lambda: parquet(pa.table({"a": pa.array(np.zeros(3 * MANY, bool))})),
        "more than 33,554,432 rows, far more",
    ),
    "page.arrow": (lambda: arrow(pa.table({"a": ["n" * MANY] * 3})), FAR_MORE),
    "net.bif.gz": (lambda: gzip.compress(b" " * MANY, 1), FAR_MORE),
    "net.json.gz": (lambda: gzip.compress(b"[]," * MANY, 1), FAR_MORE),
    "net.xdsl.gz": (lambda: gzip.compress(b"<smile>" + b"<n/>" * 2_000_000, 1), "more tags than"),
    "model.json.gz": (lambda: gzip.compress(b"[" + b"1," * MANY, 1), FAR_MORE),
}


OPEN_EACH = """
import json, os, pathlib, resource, sys
import pyarrow.csv, pyarrow.dataset, pyarrow.feather, pyarrow.json, pyarrow.parquet
import robustbn
from robustbn import read_network, read_table
from robustbn.exceptions import RobustBNError

column = robustbn.BayesianNetwork({"a": []}, {"a": ["no", "yes"]})

def open_any(path):
    if path.name.startswith("net"):
        return read_network(path)
    if path.name.startswith("model"):
        return robustbn.RobustEstimator.load(path)
    return read_table(path, column)

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

for path in map(pathlib.Path, sys.argv[1:]):
    if os.fork():  # a process of its own: what another file took is not counted
        os.wait()
        continue
    before = peak()
    try:
        open_any(path)
    except RobustBNError as error:
        print(json.dumps([path.name, peak() - before, str(error)]), flush=True)
    os._exit(0)
"""


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """Megabytes that each file took, and what was said of it."""
    folder = tmp_path_factory.mktemp("bombs")
    for name, (make, _) in BOMBS.items():
        (folder / name).write_bytes(make())
        assert (folder / name).stat().st_size < 10**6
    command = [sys.executable, "-c", OPEN_EACH, *(str(folder / name) for name in BOMBS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return {name: (used, said) for name, used, said in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_that_holds_much_is_refused_in_little_memory(name, opened):
    megabytes, said = opened[name]
    assert BOMBS[name][1] in said
    assert megabytes <= MOST_MEGABYTES


def test_an_honest_file_is_read_and_the_bound_can_be_raised(tmp_path, monkeypatch):
    rows = 12_000_000
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a\n" + b"no\n" * rows, 1))
    with pytest.raises(DataError, match=f"{RATIO_SETTING}=10000"):
        read_table(tmp_path / "t.csv.gz", one_node("no", "yes"))
    monkeypatch.setenv(RATIO_SETTING, "1000")
    assert len(read_table(tmp_path / "t.csv.gz", one_node("no", "yes"))) == rows
    (tmp_path / "t.csv").write_bytes(b"a\n" + b"no\n" * rows)
    monkeypatch.delenv(RATIO_SETTING)
    assert len(read_table(tmp_path / "t.csv", one_node("no", "yes"))) == rows


def tar_gz(entries):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for entry, data in entries:
            archive.addfile(entry, io.BytesIO(data))
    return packed.getvalue()


def entry(name, size=0, link=""):
    made = tarfile.TarInfo(name)
    made.size, made.linkname = size, link
    made.type = tarfile.LNKTYPE if link else tarfile.REGTYPE
    return made


def zip_of(entries):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return packed.getvalue()


MUCH = b"a\n" + b"no\n" * 300_000
ARCHIVES = {
    "one large file": ("zip", "t/1.csv", lambda: zip_of([("t/1.csv", MUCH)])),
    "files that are large together": (
        "zip", "t", lambda: zip_of([(f"t/{k}.csv", MUCH[:150_002]) for k in range(9)]),
    ),
    "a large file in a compressed tar": (
        "tar", "t", lambda: tar_gz([(entry("t/1.csv", len(MUCH)), MUCH)]),
    ),
    "many headers in a compressed tar": (
        "tar", "t", lambda: tar_gz([(entry(f"t/{k}.csv"), b"") for k in range(2000)]),
    ),
    "many links to one file of a tar": (
        "tar", "t", lambda: tar_gz(
            [(entry("t/0.csv", 60_002), MUCH[:60_002])]
            + [(entry(f"t/{k}.csv", link="t/0.csv"), b"") for k in range(1, 50)]
        ),
    ),
    "an archive in an archive": (
        "zip", "1.csv::zip://in.zip", lambda: zip_of([("in.zip", zip_of([("1.csv", MUCH)]))]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ARCHIVES)
@pytest.mark.parametrize("before", ["", "simplecache::"])
def test_a_small_archive_that_holds_much_is_refused_and_nothing_of_it_is_kept(
    name, before, tmp_path, monkeypatch
):
    pytest.importorskip("fsspec")
    protocol, inner, make = ARCHIVES[name]
    file = tmp_path / f"all.{'tar.gz' if protocol == 'tar' else 'zip'}"
    file.write_bytes(make())
    monkeypatch.setattr(downloads, "OF_TABLE", (100, 2**16))
    (tmp_path / "scratch").mkdir()
    make_folder = partial(tempfile.mkdtemp, dir=tmp_path / "scratch")
    monkeypatch.setattr(downloads, "make_scratch", lambda: Path(make_folder()))
    url, network = f"{before}{protocol}://{inner}::{file}", one_node("no", "yes")
    with pytest.raises(DataError, match=f"all.*{FAR_MORE}"):
        read_table(url, network)
    kept = [found for found in (tmp_path / "scratch").rglob("*") if found.suffix != ".zip"]
    assert not [found for found in kept if found.is_file()]
    monkeypatch.setenv(RATIO_SETTING, "10000")
    if name != "many headers in a compressed tar":  # which are empty files
        assert len(read_table(url, network)) >= 300_000


def test_brackets_in_text_and_long_lists_are_no_depth(tmp_path):
    lines = ['{"a": "no", "note": "' + "{[" * 5000 + '\\" ["}', '{"a": "no", "note": ""}'] * 3
    (tmp_path / "t.jsonl").write_text("\n".join(lines))
    assert len(read_table(tmp_path / "t.jsonl", one_node("no", "yes"))) == 6
    (tmp_path / "t.jsonl").write_text('{"a": "no", "l": [' + "[1]," * 5000 + "[1]]}\n")
    assert len(read_table(tmp_path / "t.jsonl", one_node("no", "yes"))) == 1


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
def test_an_arrow_file_says_how_much_it_holds(compression, tmp_path):
    table = pa.table({"a": pa.array(["x", "y"] * 5000).dictionary_encode(), "b": range(10_000)})
    feather.write_feather(table, tmp_path / "t.arrow", compression=compression, chunksize=1000)
    held = table.nbytes
    assert held <= count_unpacked_bytes(tmp_path / "t.arrow") <= 1.2 * held


def test_columns_of_nothing_and_of_runs_are_read_quickly(tmp_path):
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([3, 5], pa.int32()), pa.array(["no", "yes"]))
    read = read_table(pa.table({"a": runs}), one_node("no", "yes"))
    assert read.codes[:, 0].tolist() == [0, 0, 0, 1, 1]
    feather.write_feather(pa.table({"a": pa.nulls(9)}), tmp_path / "t.arrow")
    assert read_table(tmp_path / "t.arrow", one_node("no", "yes")).reading.n_missing == {"a": 9}
