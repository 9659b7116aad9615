"""Any table gives the same codes; what is odd in it is counted and told."""

from __future__ import annotations

import tracemalloc

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import robustbn
from robustbn import BayesianNetwork, MaximumLikelihoodEstimator, read_table
from robustbn._tables.sources import BLOCK_ROWS
from robustbn.exceptions import DataError, RepeatedHeaderWarning
from tests.tables import (
    DROP,
    KINDS,
    N_ROWS,
    NETWORK,
    NODES,
    WITHOUT_NAMES,
    draw,
    labelled,
    one_node,
    read_one,
    save_csv,
    save_hive,
    sqlite,
    text,
)

# --- one body for all kinds of table --------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_gives_the_same_codes(kind, tmp_path):
    codes = draw()
    read = read_table(KINDS[kind](labelled(codes), tmp_path), NETWORK)
    np.testing.assert_array_equal(read.codes, codes)
    assert read.codes.dtype == np.uint8
    assert read.kept is None
    assert (read.reading.n_read, read.reading.n_rows) == (N_ROWS, N_ROWS)
    assert not read.reading.n_missing
    assert not read.reading.n_unknown
    has_names = not kind.startswith(WITHOUT_NAMES)
    assert read.reading.ignored == (("id", "note") if has_names else ())


@pytest.mark.parametrize("order", [["wet", "rain", "where"], ["where", "wet", "rain"]])
def test_queries_give_the_same_codes(order):
    codes = draw()
    frame = labelled(codes)[order]
    names = ", ".join(f'"{name}"' for name in order)
    query = f"SELECT {names}, 1 AS extra FROM t"  # noqa: S608
    database = duckdb.connect()
    database.register("t", text(frame))
    for connection in (sqlite(frame), database):
        read = read_table(query, NETWORK, connection=connection)
        np.testing.assert_array_equal(read.codes, codes)
        assert read.reading.ignored == ("extra",)


def test_folders_named_after_values_are_columns(tmp_path):
    codes = draw()
    save_hive(tmp_path / "t", labelled(codes))
    order = np.argsort(codes[:, NODES.index("rain")], kind="stable")
    for path in (tmp_path / "t", tmp_path / "t" / "rain=*" / "*.parquet"):
        np.testing.assert_array_equal(read_table(path, NETWORK).codes, codes[order])
    only = read_table(
        tmp_path / "t" / "rain=yes", BayesianNetwork({"wet": []}, {"wet": ["dry", "wet"]})
    )
    assert len(only) == (codes[:, NODES.index("rain")] == 1).sum()


def test_values_of_folders_are_text_and_keep_their_zeros(tmp_path):
    for value in ("01", "1"):
        folder = tmp_path / f"a={value}"
        folder.mkdir()
        pq.write_table(pa.table({"b": [0]}), folder / "x.parquet")
    assert read_one(tmp_path, "1", "01") == ([1, 0], 0, 0)


def test_a_folder_of_one_file_has_its_values_too(tmp_path):
    (tmp_path / "t" / "a=y").mkdir(parents=True)
    (tmp_path / "t" / "_temporary").mkdir()
    pq.write_table(pa.table({"b": [0, 1]}), tmp_path / "t" / "a=y" / "x.parquet")
    pq.write_table(pa.table({"b": [0, 1]}), tmp_path / "t" / "_temporary" / "x.parquet")
    assert read_one(tmp_path / "t", "x", "y") == ([1, 1], 0, 0)


LARGE = 2 * BLOCK_ROWS + 77


@pytest.mark.parametrize(
    "kind",
    [
        "pandas text",
        "pandas categories",
        "polars text",
        "polars Categorical",
        "polars lazy",
        "arrow, uneven chunks",
        "arrow dictionaries, one a chunk",
        "arrow reader",
        "array of objects",
        "DuckDB",
        "csv",
        "parquet",
    ],
)
def test_many_rows_are_read_in_stretches_and_stay_in_order(kind, tmp_path):
    codes = draw(LARGE)
    frame = labelled(codes)
    read = read_table(KINDS[kind](frame, tmp_path), NETWORK)
    np.testing.assert_array_equal(read.codes, codes)
    frame.loc[[5, BLOCK_ROWS, LARGE - 1], "rain"] = ["??", "NA", "?"]
    read = read_table(KINDS[kind](frame, tmp_path), NETWORK, **DROP)
    np.testing.assert_array_equal(read.codes, np.delete(codes, [5, BLOCK_ROWS, LARGE - 1], axis=0))
    np.testing.assert_array_equal(read.codes, codes[read.kept])
    is_text = kind == "csv"
    assert read.reading.n_unknown == {"rain": 2 if is_text else 3}
    assert read.reading.n_missing == ({"rain": 1} if is_text else {})


def test_quoted_lines_may_be_broken_anywhere(tmp_path):
    """A value with a line break at every place where a file could be cut into blocks."""
    n = 250_000
    states = ["x" * 30 + "\n" + "y" * 30, "z,z"]
    codes = np.random.default_rng(0).integers(0, 2, n)
    pv.write_csv(pa.table({"a": np.array(states)[codes], "b": codes}), tmp_path / "t.csv")
    content = (tmp_path / "t.csv").read_bytes()
    assert len(content) > 2**23
    for end in (b"\n", b""):
        (tmp_path / "t.csv").write_bytes(content.rstrip(b"\n") + end)
        read = read_table(tmp_path / "t.csv", one_node(*states))
        np.testing.assert_array_equal(read.codes[:, 0], codes)


@pytest.mark.parametrize("kind", ["pandas objects", "polars Enum", "arrow", "codes", "mapping"])
def test_inputs_are_left_as_they_were(kind, tmp_path):
    frame = labelled(draw())
    table, again = KINDS[kind](frame, tmp_path), KINDS[kind](frame.copy(), tmp_path)
    if isinstance(table, np.ndarray):
        table.flags.writeable = False
    MaximumLikelihoodEstimator(NETWORK).fit(table)
    read_table(table, NETWORK, **DROP)
    if isinstance(table, pd.DataFrame):
        pd.testing.assert_frame_equal(table, again)
    elif isinstance(table, np.ndarray):
        np.testing.assert_array_equal(table, again)
    elif isinstance(table, dict):
        assert table == again
    else:
        assert table.equals(again)


@pytest.mark.parametrize("kind", ["category", "enum", "categorical", "dictionary"])
def test_categories_need_little_memory_beside_the_codes(kind, alarm):
    n = 300_000
    codes = robustbn.sample(alarm, n, random_state=0)
    states = [list(s) for s in alarm.states.values()]
    if kind == "category":
        table = pd.DataFrame(
            {
                node: pd.Categorical.from_codes(codes[:, k].astype(np.int8), states[k])
                for k, node in enumerate(alarm.nodes)
            }
        )
    else:
        table = pa.table(
            {
                node: pa.DictionaryArray.from_arrays(codes[:, k].astype(np.int32), states[k])
                for k, node in enumerate(alarm.nodes)
            }
        )
    if kind == "enum":
        table = pl.from_arrow(table).with_columns(
            pl.col(node).cast(pl.String).cast(pl.Enum(states[k]))
            for k, node in enumerate(alarm.nodes)
        )
    elif kind == "categorical":
        table = pl.from_arrow(table).cast(pl.Categorical)
    read_table(table.head(10) if kind != "dictionary" else table.slice(0, 10), alarm)  # imports
    tracemalloc.start()
    read = read_table(table, alarm)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    np.testing.assert_array_equal(read.codes, codes)
    assert peak <= 1.3 * codes.nbytes


def test_a_stream_needs_little_memory_beside_the_codes(tmp_path):
    codes = draw(20 * BLOCK_ROWS)
    table = pa.table({n: codes[:, k] for k, n in enumerate(NODES)})
    read_table(table.slice(0, 9).to_reader(), NETWORK, codes=True)
    tracemalloc.start()
    read = read_table(table.to_reader(BLOCK_ROWS), NETWORK, codes=True)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    np.testing.assert_array_equal(read.codes, codes)
    assert peak <= 2 * codes.nbytes


# --- counts --------------------------------------------------------------------------------------


@st.composite
def odd_tables(draw):
    """Two columns of states, unknown values and missing ones, in one of several kinds of frame."""
    values = st.sampled_from(["x", "y", "z", "??", "no such state", None])
    rows = draw(st.lists(st.tuples(values, values), max_size=30))
    kind = draw(st.sampled_from(["objects", "category", "polars", "Categorical", "arrow", "dict"]))
    return rows, kind


def build(rows, kind):
    columns = {name: [row[k] for row in rows] for k, name in enumerate(("a", "b"))}
    match kind:
        case "objects":
            return pd.DataFrame({n: np.array(v, object) for n, v in columns.items()})
        case "category":
            return pd.DataFrame({n: pd.Categorical(v) for n, v in columns.items()})
        case "polars":
            return pl.DataFrame(columns, schema={"a": pl.String, "b": pl.String})
        case "Categorical":
            return pl.DataFrame(columns, schema={"a": pl.Categorical, "b": pl.Categorical})
        case "arrow":
            return pa.table({n: pa.array(v, pa.string()) for n, v in columns.items()})
        case _:
            return columns


@given(
    odd_tables(), st.sampled_from(["error", "drop", "missing"]), st.sampled_from(["error", "drop"])
)
def test_what_is_counted_and_kept_equals_brute_force(case, on_unknown, on_missing):
    rows, kind = case
    states = ("y", "x", "z")
    network = BayesianNetwork({"a": [], "b": ["a"]}, {"a": states, "b": states})
    missing = {n: c for k, n in enumerate("ab") if (c := sum(r[k] is None for r in rows))}
    unknown = {
        n: c
        for k, n in enumerate("ab")
        if (c := sum(r[k] is not None and r[k] not in states for r in rows))
    }
    fails = bool(unknown) and on_unknown == "error"
    fails |= on_missing == "error" and bool(missing or (unknown and on_unknown == "missing"))
    table, settings = build(rows, kind), {"on_unknown": on_unknown, "on_missing": on_missing}
    if fails:
        with pytest.raises(DataError, match=r"\d+ of \d+ rows"):
            read_table(table, network, **settings)
        return
    read = read_table(table, network, **settings)
    kept = [k for k, row in enumerate(rows) if all(v in states for v in row)]
    assert read.codes.tolist() == [[states.index(v) for v in rows[k]] for k in kept]
    assert (list(range(len(rows))) if read.kept is None else read.kept.tolist()) == kept
    assert dict(read.reading.n_missing) == missing
    assert dict(read.reading.n_unknown) == unknown
    assert read.reading.n_read == len(rows)
    assert read.reading.n_dropped == len(rows) - len(kept)


def test_the_reading_tells_what_was_left_out_and_ignored():
    table = {"a": ["x", None, "?"], "b": [1, 2, 3], "c": [1, 2, 3]}
    reading = read_table(table, one_node("x", "y"), **DROP).reading
    assert str(reading) == (
        "The mapping: 3 rows read. 2 of them were left out, with 1 missing and 1 unknown values. "
        "2 columns are not nodes: 'b', 'c'."
    )
    assert "1 column is not a node: 'b'." in str(
        read_table({"a": ["x"], "b": [1]}, one_node("x", "y")).reading
    )


# --- a header in the middle -----------------------------------------------------------------------

RAINY = [("rain", "wet")]


def _with_headers(path, *, mark="", change=str):
    """Write 90 rows with the header again after 40 and after 70 of them."""
    lines = ["id,rain,wet", *(f"{k},{'no,dry' if k % 3 else 'yes,wet'}" for k in range(90))]
    for at in (71, 41):
        lines.insert(at, mark + change(lines[0]))
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize(("mark", "change"), [("", str), ("\ufeff", str), ("", str.upper)])
def test_a_header_line_in_the_middle_of_a_file_is_no_state(tmp_path, mark, change):
    path = _with_headers(tmp_path / "t.csv", mark=mark, change=change)
    with pytest.warns(
        RepeatedHeaderWarning,
        match=r"t\.csv: 2 lines repeat the header and are left out: rows 40, 71",
    ):
        found = robustbn.states_from(path, RAINY)
    assert dict(found.states) == {"rain": ("no", "yes"), "wet": ("dry", "wet")}
    assert found.n_rows == 90
    assert not any(column.n_missing for column in found.columns)


@pytest.mark.filterwarnings("error", "ignore::robustbn.exceptions.RepeatedHeaderWarning")
@pytest.mark.parametrize(
    ("place", "settings"),
    [
        ("memory", {}),
        ("memory", {"others": {"rain": "yes"}, "on_missing": "error"}),
        ("stream", {}),
        ("memory", {"on_missing": "state"}),
    ],
)
def test_a_header_line_in_the_middle_is_left_out_where_states_are_given(tmp_path, place, settings):
    path = _with_headers(tmp_path / "t.csv")
    network = BayesianNetwork(
        {"rain": [], "wet": ["rain"]}, {"rain": ["no", "yes"], "wet": ["dry", "wet"]}
    )
    fit = robustbn.fit(network, path, random_state=0, place=place, **settings)
    assert (fit.reading_.n_read, fit.reading_.n_rows) == (92, 90)
    assert not fit.reading_.n_missing
    assert not fit.reading_.n_unknown
    assert "92 rows read. 2 of them were left out." in str(fit.reading_)
    assert np.flatnonzero(np.isnan(fit.row_weights_)).tolist() == [40, 71]
    assert fit.reading_.why_dropped == "the header is repeated"
    if place == "memory":
        assert list(fit.rows()["why"][[40, 71]]) == ["left out: the header is repeated"] * 2


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("lines", ["rain,snow", "rain"])
def test_a_row_that_says_what_the_header_says_is_a_row_where_others_say_so_too(tmp_path, lines):
    one, two = lines.split(","), ["none"] * len(lines.split(","))
    rows = [one, [one[0], *two[1:]], [two[0], *one[1:]], two] * 3
    (tmp_path / "t.csv").write_text("\n".join(",".join(row) for row in [one, *rows]))
    network = BayesianNetwork(dict.fromkeys(one, ()), {name: ("none", name) for name in one})
    assert len(read_table(tmp_path / "t.csv", network)) == 12


# --- one call -------------------------------------------------------------------------------------


def test_one_call_reads_the_network_and_the_table(tmp_path):
    frame = labelled(draw(3000))
    robustbn.write_network(NETWORK.with_cpts(_uniform()), tmp_path / "n.json")
    frame.loc[7, "rain"] = "??"
    save_csv(tmp_path / "t.csv", frame, sep=";")
    fit = robustbn.fit(
        tmp_path / "n.json", tmp_path / "t.csv", 0.1, sep=";", on_unknown="drop", random_state=0
    )
    assert fit.contamination == 0.1
    assert fit.reading_.n_dropped == 1
    assert np.flatnonzero(np.isnan(fit.row_weights_)).tolist() == [7]
    assert fit.network_.nodes == NODES


def _uniform():
    sizes = [len(NETWORK.states[n]) for n in NODES]
    cells = NETWORK.layout.cells_per_node
    return np.repeat(1 / np.array(sizes, float), cells)
