"""Dates as people write them, categories that have an order, and files that are compressed."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import robustbn
from robustbn import read_table, states_from, write_network
from robustbn._tables.date_forms import day_of, find_orders
from robustbn.exceptions import DataError
from tests.commands import as_json, call

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
EDGES = [("since", "town")]


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2024-03-07", "2024-03-07"),
        ("2024/03/07", "2024-03-07"),
        ("2024/3/7 12:30", "2024-03-07"),
        ("7.3.2024", "2024-03-07"),
        ("7 Mar 2024", "2024-03-07"),
        ("07-MAR-2024", "2024-03-07"),
        ("7 March 2024 09:15:00", "2024-03-07"),
        ("Mar 7, 2024", "2024-03-07"),
        ("March 7 2024", "2024-03-07"),
        ("Sept 7, 2024", "2024-09-07"),
        ("2024-3-7", "2024-03-07"),
        ("2024 Mar 7", "2024-03-07"),
        ("7. 3. 2024", "2024-03-07"),
        ("03/07/2024", None),
        ("20240307", None),
        ("31 Jun 2024", None),
        ("7 Marble 2024", None),
        ("7 Mayor 2024", None),
        ("1.2.3", None),
        ("2024", None),
    ],
)
def test_a_day_is_read_where_its_form_leaves_no_doubt(text, day):
    assert day_of(text) == day


def test_what_comes_first_may_be_said():
    assert day_of("03/07/2024", "dmy") == "2024-07-03"
    assert day_of("03-07-2024 10:00", "mdy") == "2024-03-07"
    assert day_of("20240307", "ymd") == day_of(20240307, "ymd") == "2024-03-07"
    assert day_of("13/07/2024", "mdy") is None


@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan, np.float32("inf"), 20240307.5])
def test_a_number_that_is_not_whole_is_no_day(number):
    assert day_of(number, "ymd") is None


def test_what_comes_first_is_told_by_a_number_above_twelve():
    assert find_orders(["03/07/2024", "25/12/2024"]) == {"dmy"}
    assert find_orders(["03/07/2024", "12/25/2024"]) == {"mdy"}
    assert find_orders(["03/07/2024", "04/07/2024"]) == {"dmy", "mdy"}
    assert find_orders(["25/12/2024", "12/25/2024"]) == set()
    assert find_orders(["05/05/2024"]) == {"dmy"}


def days(n=400):
    return pd.Timestamp("2020-01-05") + pd.to_timedelta(np.arange(n) * 4, "D")


def frame(texts, n=400):
    return pd.DataFrame({"since": texts, "town": np.array(["Ulm", "Kiel"])[np.arange(n) % 2]})


@pytest.mark.parametrize(
    "form", ["%d/%m/%Y", "%m/%d/%Y", "%d %b %Y", "%b %d, %Y", "%Y/%m/%d", "%d.%m.%Y", "%Y%m%d"]
)
def test_dates_in_any_usual_form_become_the_periods_of_iso_dates(form, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    iso, other = frame(days().strftime("%Y-%m-%d")), frame(days().strftime(form))
    wanted, found = states_from(iso, EDGES), states_from(other, EDGES)
    assert found.states == wanted.states
    assert found.states["since"][0] == "2020"
    codes = read_table(iso, wanted.network).codes
    assert np.array_equal(read_table(other, found.network).codes, codes)
    found.network.write("net.json")  # the file says how its dates are read
    other.to_csv("rows.csv", index=False)
    assert np.array_equal(read_table("rows.csv", robustbn.read_network("net.json")).codes, codes)


def test_dates_that_could_be_either_are_told_and_not_guessed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts = [f"{1 + k % 12:02d}/{1 + k % 11:02d}/202{k % 4}" for k in range(400)]
    frame(texts).assign(more=1).to_csv("rows.csv", index=False)
    (tmp_path / "edges.csv").write_text("since,town\n")
    with pytest.raises(DataError, match="day and month of its dates are ambiguous") as error:
        states_from("rows.csv", EDGES)
    assert "dates={'since': 'dmy'}" in str(error.value)
    ran = call("fit", "edges.csv", "rows.csv", code=4)
    assert "--dates since:dmy (12/01/2023 is 2023-01-12)" in " ".join(ran.stderr.split())
    assert "--dates since:mdy" in ran.stderr
    facts = as_json("inspect", "rows.csv", "edges.csv", code=4)
    assert "--dates since:dmy" in facts["problems"][0]["remedy"]
    assert "are ambiguous" in call("inspect", "rows.csv").stdout
    for order in ("dmy", "mdy"):
        found = as_json("states", "edges.csv", "rows.csv", "--dates", f"since:{order}")
        since = found["columns"][0]
        assert since["period"] == f"year {order}"
        call("fit", "edges.csv", "rows.csv", "--dates", order)
    assert (
        "NODE:ORDER" in call("states", "edges.csv", "rows.csv", "--dates", "x:abc", code=2).stderr
    )
    bad = call("states", "edges.csv", "rows.csv", "--dates", "sinc:dmy", code=4)
    assert "Did you mean 'since'?" in bad.stderr


def test_a_number_is_a_day_only_where_that_is_clear_or_asked():
    numbers = [20240101 + k % 3 for k in range(400)]
    assert states_from(frame(numbers), EDGES).columns[0].kind == "number"
    found = states_from(frame(numbers), EDGES, dates={"since": "ymd"})
    assert found.columns[0].kind == "date"
    assert found.states["since"] == ("2024-01-01", "2024-01-02", "2024-01-03")
    assert len(read_table(frame(numbers), found.network)) == 400
    prices = [20240101 + 7 * k for k in range(400)]
    assert states_from(frame(prices), EDGES).columns[0].kind == "number"


def test_the_days_of_more_time_stamps_than_can_be_counted_are_counted():
    moments = pd.Timestamp("2020-01-05") + pd.to_timedelta(np.arange(20_000) * 7919, "s")
    iso = frame(moments.strftime("%Y-%m-%d %H:%M:%S"), 20_000)
    other = frame(moments.strftime("%d/%m/%Y %H:%M:%S"), 20_000)
    assert states_from(other, EDGES).states == states_from(iso, EDGES).states


def test_bad_rows_are_placed_by_days_that_leave_no_doubt():
    network = robustbn.BayesianNetwork({"town": []}, {"town": ["Ulm", "Kiel"]})

    def context(texts):
        (column,) = read_table(frame(texts), network).aside.context
        return column

    iso = context(days().strftime("%Y-%m-%d"))
    for form in ("%d/%m/%Y", "%d %b %Y", "%d.%m.%Y"):
        other = context(days().strftime(form))
        assert other.groups.is_ordered
        assert other.groups.labels == iso.groups.labels
        assert np.array_equal(other.codes, iso.codes)
    doubtful = context([f"{1 + k % 12:02d}/{1 + k % 11:02d}/2024" for k in range(400)])
    assert not doubtful.groups.is_ordered


# --- categories that have an order ----------------------------------------------------------------


def test_the_order_of_categories_is_that_of_the_states(tmp_path):
    order = ["small", "tiny", "huge", "none"]
    values = ["tiny", "huge", "small", "small"] * 50
    pandas = pd.DataFrame(
        {"size": pd.Categorical(values, order, ordered=True), "town": ["Ulm"] * 200}
    )
    pandas.to_parquet(tmp_path / "rows.parquet", row_group_size=60)
    tables = {
        "pandas": pandas,
        "arrow": pa.Table.from_pandas(pandas),
        "parquet": tmp_path / "rows.parquet",
        "polars": pl.DataFrame(
            {"size": pl.Series(values, dtype=pl.Enum(order)), "town": ["Ulm"] * 200}
        ),
    }
    for name, table in tables.items():
        found = states_from(table, [("size", "town")])
        assert found.states["size"] == ("small", "tiny", "huge"), name
    loose = pandas.assign(size=pd.Categorical(values, order))
    assert states_from(loose, [("size", "town")]).states["size"] == ("huge", "small", "tiny")


def test_ordered_numbers_are_states_in_their_order():
    values = pd.Categorical([30, 10, 20, 10] * 50, [30, 10, 20], ordered=True)
    found = states_from(pd.DataFrame({"x": values, "y": ["a"] * 200}), [("x", "y")])
    assert found.states["x"] == (30, 10, 20)


# --- files that are compressed --------------------------------------------------------------------


@pytest.fixture
def desk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    network = robustbn.random_network("tree", 5, random_state=0)
    write_network(network, "net.json")
    call("sample", "net.json", "-n", 300, "-o", "rows.csv")
    call("sample", "net.json", "-n", 300, "-o", "rows.parquet")
    return tmp_path


@pytest.mark.parametrize(
    ("end", "mark"), [(".gz", b"\x1f\x8b"), (".zst", b"\x28\xb5\x2f\xfd"), (".bz2", b"BZh")]
)
def test_clean_compresses_as_its_name_says(desk, end, mark):
    name = f"good.csv{end}"
    call("fit", "net.json", "rows.csv", "--clean", name, "--drop-distrusted")
    assert (desk / name).read_bytes().startswith(mark)
    assert as_json("inspect", name)["table"]["rows"] == 300
    call("fit", "net.json", name, "--clean", "again.csv", "--drop-distrusted")
    assert (desk / "again.csv").read_bytes() == (desk / "rows.csv").read_bytes()


def test_clean_compresses_lines_of_json_and_files_of_rows_too(desk):
    rows = pq.read_table("rows.parquet").to_pylist()
    (desk / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    call("fit", "net.json", "rows.jsonl", "--clean", "good.jsonl.gz", "--weights", "w.csv.gz")
    assert len(gzip.decompress((desk / "good.jsonl.gz").read_bytes()).splitlines()) == 300
    assert len(gzip.decompress((desk / "w.csv.gz").read_bytes()).splitlines()) == 301


@pytest.mark.parametrize(
    ("name", "codec"),
    [("good.parquet", "GZIP"), ("good.zstd.parquet", "ZSTD"), ("good.snappy.parquet", "SNAPPY")],
)
def test_parquet_keeps_its_codec_unless_the_name_says_another(desk, name, codec):
    pq.write_table(pq.read_table("rows.parquet"), "packed.parquet", compression="gzip")
    call("fit", "net.json", "packed.parquet", "--clean", name)
    assert pq.read_metadata(name).row_group(0).column(0).compression == codec


def test_another_format_than_that_of_the_table_is_refused(desk):
    ran = call("fit", "net.json", "rows.csv", "--clean", "good.parquet.gz", code=2)
    assert "must end in one of .csv" in ran.stderr
