"""Tables and networks that are not files here: standard input, URLs, workbooks, odd names."""

from __future__ import annotations

import datetime as dt
import gzip
import http.server
import io
import json
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import robustbn
from robustbn import BayesianNetwork, write_network
from robustbn._core import downloads
from robustbn._core.file_names import plain_path, url_of
from robustbn.cli import main
from robustbn.exceptions import DataError, MissingDependencyError, NetworkError
from tests.commands import as_json, call, start

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

NETWORK = BayesianNetwork(
    {"rain": [], "wet": ["rain"]}, {"rain": ["no", "yes"], "wet": ["dry", "damp", "wet"]}
).with_cpts({"rain": [0.7, 0.3], "wet": [[0.8, 0.15, 0.05], [0.1, 0.3, 0.6]]})


@pytest.fixture
def desk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_network(NETWORK, "net.bif")
    (tmp_path / "edges.csv").write_text("parent,child\nrain,wet\n")
    call("sample", "net.bif", "-n", 500, "-o", "rows.csv")
    return tmp_path


def arrow_stream(table, batch=100):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, batch)
    return sink.getvalue().to_pybytes()


def as_bytes(rows, kind):
    """The rows of a CSV file in another format."""
    table = pv.read_csv(rows)
    lines = "".join(json.dumps(row) + "\n" for row in table.to_pylist())
    if kind == "arrow file":
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        return sink.getvalue().to_pybytes()
    if kind == "parquet":
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        return sink.getvalue().to_pybytes()
    return {
        "csv": rows.read_bytes(),
        "csv.gz": gzip.compress(rows.read_bytes()),
        "jsonl": lines.encode(),
        "arrow stream": arrow_stream(table),
    }[kind]


# --- standard input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", ["csv", "csv.gz", "jsonl", "arrow stream", "arrow file", "parquet"]
)
def test_standard_input_is_known_by_its_first_bytes(desk, kind):
    here = as_json("fit", "net.bif", "rows.csv")
    given = as_bytes(desk / "rows.csv", kind)
    ran = CliRunner().invoke(main, ["fit", "net.bif", "-", "--json"], input=given)
    assert ran.exit_code == 0, ran.output
    found = json.loads(ran.stdout)
    assert found["table"]["path"] == "standard input"
    for name in ("verdict", "moved", "rows_distrusted"):
        assert found[name] == here[name]


def test_a_pipe_is_read_by_a_process_of_its_own(desk):
    """Several passes: states of an edge list, the rows, the table without the bad ones."""
    with (desk / "rows.csv").open() as rows:
        start(
            "fit", "edges.csv", "-", "--clean", "good.csv", "--output-dir", "out", stdin=rows,
            cwd=desk,
        )  # fmt: skip
    assert len((desk / "good.csv").read_text().splitlines()) == 501
    run = json.loads((desk / "out" / "run.json").read_text())
    (read,) = run["inputs"]["table"]
    assert read["path"] == "standard input"
    assert read["bytes"] == (desk / "rows.csv").stat().st_size


@pytest.mark.parametrize("command", ["inspect - net.bif", "score net.bif -", "states edges.csv -"])
def test_every_command_that_reads_a_table_reads_standard_input(desk, command):
    text = (desk / "rows.csv").read_text()
    ran = CliRunner().invoke(main, command.split(), input=text)
    assert ran.exit_code == 0, ran.output
    assert "500" in ran.stdout


def test_corrupt_reads_standard_input_and_a_separator(desk):
    text = (desk / "rows.csv").read_text().replace(",", "\t")
    words = ["corrupt", "net.bif", "-", "--sep", "tab", "-o", "bad.csv", "--json"]
    ran = CliRunner().invoke(main, words, input=text)
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout)["rows_read"] == 500


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (b"", "Standard input is empty"),
        (b'[{"rain": "no"}]', "JSON must have one object"),
        (b"\xff\xff\xff\xff\x10", "Standard input is no Arrow stream, or is truncated"),
        (b"rain;wet\nno;dry\n", "Say so with --sep ';'"),
        (b"rain,wet\nno,dry\n\xff,wet\n", "standard input cannot be read"),
    ],
)
def test_what_is_wrong_with_standard_input_is_told(desk, given, message):
    ran = CliRunner().invoke(main, ["fit", "net.bif", "-"], input=given)
    assert ran.exit_code == 4, ran.output
    assert message in " ".join(ran.stderr.split())


def test_a_stream_whose_categories_change_is_read(desk):
    words = [pa.array(w).dictionary_encode() for w in (["no", "yes"], ["yes", "no"])]
    wet = pa.array(["dry", "wet"])
    schema = pa.schema([("rain", words[0].type), ("wet", pa.string())])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for rain in words:
            writer.write_batch(pa.record_batch([rain, wet], schema=schema))
    given = sink.getvalue().to_pybytes()
    ran = CliRunner().invoke(main, ["inspect", "-", "--json"], input=given)
    assert ran.exit_code == 0, ran.output
    (rain, _) = json.loads(ran.stdout)["table"]["columns"]
    assert {t["value"]: t["rows"] for t in rain["top"]} == {"no": 2, "yes": 2}


# --- odd names ------------------------------------------------------------------------------------


def test_format_says_what_a_file_is_whatever_its_name(desk):
    (desk / "rows.csv").rename(desk / "rows.dat")
    ran = call("fit", "net.bif", "rows.dat", code=4)
    assert "--format csv" in ran.stderr
    assert as_json("fit", "net.bif", "rows.dat", "--format", "csv")["table"]["path"] == "rows.dat"
    table = robustbn.read_table("rows.dat", NETWORK, format="csv")
    assert table.reading.where == "rows.dat"
    assert len(robustbn.fit(NETWORK, "rows.dat", format="csv").row_weights_) == 500


def test_format_is_for_files():
    with pytest.raises(DataError, match="is for files"):
        robustbn.read_table({"rain": ["no"], "wet": ["dry"]}, NETWORK, format="csv")


def test_no_output_may_replace_a_file_that_is_read_by_another_name(desk):
    (desk / "rows.csv").rename(desk / "rows.dat.csv")
    words = ("fit", "net.bif", "rows.dat.csv", "--format", "csv", "--clean", "rows.dat.csv")
    assert "is read by this command" in call(*words, "--force", code=2).stderr


# --- URLs -----------------------------------------------------------------------------------------


@pytest.fixture
def memory(desk):
    """The files of the desk in the memory of fsspec."""
    fsspec = pytest.importorskip("fsspec")
    system = fsspec.filesystem("memory")
    for file in desk.iterdir():
        system.pipe(f"/desk/{file.name}", file.read_bytes())
    yield system
    system.rm("/desk", recursive=True)


def test_networks_and_tables_are_read_from_any_filesystem(memory):
    facts = as_json("fit", "memory://desk/net.bif", "memory://desk/rows.csv")
    assert facts["network"]["path"] == "memory://desk/net.bif"
    assert facts["table"]["path"] == "memory://desk/rows.csv"
    assert facts["table"]["rows"] == 500
    assert robustbn.read_network("memory://desk/net.bif") == NETWORK
    assert robustbn.read_network(Path("memory://desk/net.bif")) == NETWORK
    fit = robustbn.fit("memory://desk/edges.csv", "memory://desk/rows.csv", random_state=0)
    assert fit.reading_.where == "memory://desk/rows.csv"


def test_a_file_that_changed_over_there_is_read_anew(memory):
    assert len(robustbn.read_table("memory://desk/rows.csv", NETWORK)) == 500
    memory.pipe("/desk/rows.csv", b"rain,wet\nno,dry\n")
    assert len(robustbn.read_table("memory://desk/rows.csv", NETWORK)) == 1


def test_folders_and_patterns_elsewhere_are_tables(memory, desk):
    half = (desk / "rows.csv").read_bytes()
    for year in (2023, 2024):
        memory.pipe(f"/desk/all/year={year}/rows.csv", half)
    for name in ("memory://desk/all", "memory://desk/all/*/*.csv"):
        assert len(robustbn.read_table(name, NETWORK)) == 1000
    pq.write_table(pv.read_csv("rows.csv"), "rows.parquet")
    memory.pipe("/desk/hive/year=2024/rows.parquet", (desk / "rows.parquet").read_bytes())
    facts = as_json("inspect", "memory://desk/hive")
    assert [column["name"] for column in facts["table"]["columns"]] == ["rain", "wet", "year"]


def test_what_is_not_there_is_told_by_its_url(memory):
    ran = call("fit", "memory://desk/net.bif", "memory://desk/none.csv", code=4)
    assert "memory://desk/none.csv: there is no such file." in ran.stderr
    ran = call("fit", "memory://desk/none.bif", "rows.csv", code=3)
    assert "memory://desk/none.bif: there is no such file." in ran.stderr
    with pytest.raises(FileNotFoundError):
        robustbn.read_network("memory://desk/none.bif")
    assert "Protocol not known: nowhere" in call("inspect", "nowhere://x/rows.csv", code=4).stderr


def test_a_damaged_file_elsewhere_is_told_by_its_url(memory):
    memory.pipe("/desk/bad.parquet", b"PAR1 and no more")
    memory.pipe("/desk/bad.bif", b"network {")
    memory.pipe("/desk/bad.csv", b'rain,"wet\n')
    for name, code in (("bad.parquet", 4), ("bad.csv", 4)):
        ran = call("inspect", f"memory://desk/{name}", code=code)
        assert f"memory://desk/{name}" in ran.stderr
        assert "robustbn-" not in ran.stderr
    ran = call("inspect", "memory://desk/bad.bif", code=3)
    assert "memory://desk/bad.bif, line 1" in ran.stderr


def test_a_model_elsewhere_judges_rows(memory, desk):
    call("fit", "net.bif", "rows.csv", "--model", "model.json")
    memory.pipe("/desk/model.json", (desk / "model.json").read_bytes())
    facts = as_json("score", "memory://desk/model.json", "memory://desk/rows.csv")
    assert facts["judged"] == "trust"
    assert facts["by"] == "memory://desk/model.json"
    assert robustbn.RobustEstimator.load("memory://desk/model.json").network_.n_nodes == 2


def test_nothing_is_written_elsewhere(memory):
    ran = call("fit", "net.bif", "rows.csv", "-o", "s3://bucket/fitted.bif", code=2)
    assert "s3://bucket/fitted.bif is remote" in ran.stderr
    with pytest.raises(NetworkError, match=r"s3://bucket/net\.bif is remote"):
        write_network(NETWORK, "s3://bucket/net.bif")


@pytest.fixture
def web(desk):
    """A server of the desk's files."""
    pytest.importorskip("aiohttp")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=desk))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_the_web_is_read(web):
    facts = as_json("fit", f"{web}/net.bif", f"{web}/rows.csv?version=2")
    assert facts["table"]["path"] == f"{web}/rows.csv?version=2"
    assert facts["table"]["rows"] == 500
    ran = call("inspect", f"{web}/none.csv", code=4)
    assert f"{web}/none.csv: there is no such file." in ran.stderr


def test_a_server_that_does_not_answer_is_not_a_file_that_is_not_there(desk):
    pytest.importorskip("aiohttp")
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}/rows.csv"
    ran = call("inspect", url, code=4)  # nobody listens there any more
    assert f"{url} cannot be read: Cannot connect to host" in ran.stderr


def test_without_fsspec_the_package_to_install_is_named(desk):
    code = """
import sys
sys.modules["fsspec"] = None
from robustbn.cli import main
main(["fit", "net.bif", "https://example.org/rows.csv"])
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 6
    assert "https://example.org/rows.csv is read with fsspec" in ran.stderr
    assert "pip install 'robustbn[fsspec]'" in ran.stderr


def test_a_protocol_without_its_package_names_it(monkeypatch):
    pytest.importorskip("fsspec")
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(MissingDependencyError, match="s3fs"):
        robustbn.read_network("s3://bucket/net.bif")


def test_a_url_is_never_mangled():
    assert url_of("https://a.org/b.csv") == "https://a.org/b.csv"
    assert url_of(Path("https://a.org/b.csv")) == "https://a.org/b.csv"
    assert url_of("C:/rows.csv") is url_of("rows.csv") is url_of("example:alarm") is None


@pytest.mark.parametrize(
    "url",
    [
        "https://a.org/b/rows.csv?version=a::b",
        "http://[::1]:8000/b/rows.csv",
        "simplecache::https://a.org/b/rows.csv?version=2",
        "s3://bucket/b/rows.csv",
        "zip://rows.csv::rows.zip",
        "simplecache::tar://b/rows.csv::https://a.org/rows.tar.gz",
    ],
)
def test_a_url_is_known_by_the_suffix_of_the_file_that_it_names(url):
    assert plain_path(url).name == "rows.csv"


# --- archives -------------------------------------------------------------------------------------

ROWS = b"rain,wet\nno,dry\nyes,wet\n"


def pack(path, entries):
    """Write an archive; what is no bytes is where a link points to."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in entries:
                archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
        return f"zip://{{}}::{path}"
    with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as archive:
        for name, data in entries:
            entry = tarfile.TarInfo(name)
            if isinstance(data, bytes):
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
            else:
                entry.type, entry.linkname = tarfile.SYMTYPE, data
                archive.addfile(entry)
    return f"tar://{{}}::{path}"


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """A folder of its own for copies, deep enough that names with `..` stay in the test's."""
    pytest.importorskip("fsspec")
    made = []
    (tmp_path / "a/b").mkdir(parents=True)
    monkeypatch.setattr(downloads, "_scratch", made)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "a/b"))
    yield tmp_path / "a/b"
    for folder in made:
        folder.cleanup()


def files_in(folder):
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz"])
def test_an_archive_is_a_table(kind, tmp_path, scratch):
    entries = [("data/1.csv", ROWS), ("data/more/2.csv", ROWS), ("top.csv", ROWS)]
    url = pack(tmp_path / f"rows.{kind}", entries)
    lengths = {"data": 4, "": 6, "*.csv": 2, "data/*.csv": 2, "data/1.csv": 2, "top.csv": 2}
    found = {inner: len(robustbn.read_table(url.format(inner), NETWORK)) for inner in lengths}
    assert found == lengths
    cached = f"simplecache::{url.format('top.csv')}"
    assert len(robustbn.read_table(cached, NETWORK)) == 2
    pack(tmp_path / "outer.zip", [("in", (tmp_path / f"rows.{kind}").read_bytes())])
    if kind == "zip":
        nested = f"zip://data::zip://in::{tmp_path / 'outer.zip'}"
        assert len(robustbn.read_table(nested, NETWORK)) == 4


def test_an_archive_is_unpacked_again_only_once_it_has_changed(tmp_path, scratch):
    url = pack(tmp_path / "rows.zip", [("1.csv", ROWS)]).format("*.csv")
    first = downloads.bring_here(url)
    assert downloads.bring_here(url) == first
    pack(tmp_path / "rows.zip", [("1.csv", ROWS), ("2.csv", ROWS)])
    assert len(robustbn.read_table(url, NETWORK)) == 4


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz"])
@pytest.mark.parametrize("name", ["data/../../../../x.csv", "data/../x.csv", "data/1.csv/../1.csv"])
def test_a_name_in_an_archive_that_leads_out_of_it_is_refused_and_nothing_is_written(
    kind, name, tmp_path, scratch
):
    (tmp_path / "x.csv").write_text("precious")
    url = pack(tmp_path / f"rows.{kind}", [("data/0.csv", ROWS), (name, b"hostile")])
    before = files_in(tmp_path)
    for inner in ("", "data"):
        with pytest.raises(DataError, match=r"\.csv' leads out of the folder"):
            robustbn.read_table(url.format(inner), NETWORK)
        assert files_in(tmp_path) == before


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_an_absolute_name_in_an_archive_is_not_written_there(kind, tmp_path, scratch):
    (tmp_path / "x.csv").write_text("precious")
    entries = [("0.csv", ROWS), (str(tmp_path / "x.csv"), b"hostile")]
    url = pack(tmp_path / f"rows.{kind}", entries).format("")
    before = files_in(tmp_path)
    if kind == "zip":
        with pytest.raises(DataError, match=r"x\.csv' leads out of the folder"):
            robustbn.read_table(url, NETWORK)
    else:  # fsspec does not list it
        assert len(robustbn.read_table(url, NETWORK)) == 2
    outside = {
        file: data for file, data in files_in(tmp_path).items() if scratch not in file.parents
    }
    assert outside == before


def test_a_key_of_a_store_that_leads_out_of_it_is_refused_and_nothing_is_written(
    memory, desk, scratch
):
    memory.pipe("/desk/all/0.csv", ROWS)
    memory.pipe("/desk/all/../../../x.csv", b"hostile")
    before = files_in(desk)
    for url in ("memory://desk/all", "memory://desk/**/*.csv"):
        ran = call("inspect", url, code=4)
        assert "../../../x.csv' leads out of the folder" in " ".join(ran.stderr.split())
    assert files_in(desk) == before


def test_keys_of_a_store_that_would_share_a_copy_are_refused(memory, scratch):
    for key in ("/desk/all/1.csv", "/desk/all//1.csv"):
        memory.pipe(key, ROWS)
    with pytest.raises(DataError, match=r"'1\.csv' appears twice"):
        robustbn.read_table("memory://desk/all", NETWORK)


@pytest.mark.parametrize("target", ["/etc/hostname", "../../../x.csv", "../x.csv"])
def test_a_link_in_an_archive_leads_to_nothing_outside_of_it(target, tmp_path, scratch):
    for place in (tmp_path, scratch):
        (place / "x.csv").write_bytes(ROWS)
    entries = [("data/link", target), ("data/link/1.csv", ROWS), ("data/link.csv", target)]
    for k in range(3):
        url = pack(tmp_path / "rows.tar", [("data/0.csv", ROWS), entries[k]])
        before = files_in(tmp_path)
        if k == 1:
            assert len(robustbn.read_table(url.format("data"), NETWORK)) == 4
            continue
        with pytest.raises(DataError, match="cannot be read"):
            robustbn.read_table(url.format("data"), NETWORK)
        assert files_in(tmp_path) == before


def test_a_link_in_an_archive_is_read_as_the_entry_that_it_names(tmp_path, scratch):
    url = pack(tmp_path / "rows.tar", [("data/1.csv", ROWS), ("data/2.csv", "1.csv")])
    assert len(robustbn.read_table(url.format("data"), NETWORK)) == 4
    assert not [file for file in scratch.rglob("*") if file.is_symlink()]


# --- workbooks ------------------------------------------------------------------------------------


@pytest.fixture
def book(desk):
    openpyxl = pytest.importorskip("openpyxl")
    made = openpyxl.Workbook()
    rows = made.active
    rows.title = "rows"
    rows.append([])
    rows.append(["rain", "wet", "count", "day", "is it"])
    rng = np.random.default_rng(0)
    for k in range(60):
        day = dt.datetime(2024, 3, 1) + dt.timedelta(days=k)
        rain, wet = rng.choice(["no", "yes"]), rng.choice(["dry", "damp", "wet"])
        rows.append([str(rain), str(wet), float(k % 3), day, k % 2 == 0])
    rows.append([None] * 5)
    rows.append([None, "dry", 1.5, None, None])
    made.save(desk / "book.xlsx")
    other = made.create_sheet("other one")
    other.append(["rain", "wet"])
    other.append(["no", "dry"])
    made.save(desk / "two.xlsx")
    return desk


def test_a_workbook_is_read_like_text(book):
    facts = as_json("inspect", "book.xlsx")["table"]
    assert facts["rows"] == 61
    kinds = {column["name"]: column["kind"] for column in facts["columns"]}
    assert kinds == {
        "rain": "label", "wet": "label", "count": "number", "day": "date", "is it": "truth value",
    }  # fmt: skip
    table = robustbn.read_table("book.xlsx", NETWORK)
    assert len(table) == 61
    assert table.reading.n_missing["rain"] == 1
    assert table.reading.where == "book.xlsx"


def test_a_sheet_is_chosen_and_never_guessed(book):
    ran = call("fit", "net.bif", "two.xlsx", code=4)
    assert "has several sheets: 'rows', 'other one'. Say which: --sheet rows." in ran.stderr
    assert as_json("inspect", "two.xlsx", "--sheet", "other one")["table"]["rows"] == 1
    assert len(robustbn.read_table("two.xlsx", NETWORK, sheet=1)) == 61
    with pytest.raises(DataError, match="has no sheet 'third'; it has 'rows', 'other one'"):
        robustbn.read_table("two.xlsx", NETWORK, sheet="third")
    with pytest.raises(DataError, match="not a workbook"):
        robustbn.read_table("rows.csv", NETWORK, sheet="rows")


def test_the_header_of_a_workbook_is_checked_like_that_of_text(book):
    import openpyxl

    made = openpyxl.Workbook()
    made.active.append(["Rain", "wet"])
    made.active.append(["no", "dry", "more"])
    made.save("bad.xlsx")
    assert "sheet Sheet, row 2: column 3 has a value and no name" in call(
        "inspect", "bad.xlsx", code=4
    ).stderr.replace("\n", " ")
    made.active.delete_cols(3)
    made.save("bad.xlsx")
    assert "--rename Rain=rain" in call("fit", "net.bif", "bad.xlsx", code=4).stderr


def test_what_is_no_workbook_is_told(book):
    (book / "bad.xlsx").write_text("rain,wet\n")
    assert "bad.xlsx cannot be read as a workbook" in call("inspect", "bad.xlsx", code=4).stderr


def test_without_a_reader_of_workbooks_it_is_named(book, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'robustbn\[openpyxl\]'"):
        robustbn.read_table("book.xlsx", NETWORK)
