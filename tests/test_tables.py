"""Any table gives the same codes; what is odd in it is counted and told."""

from __future__ import annotations

import datetime as dt
import itertools
import os
import sqlite3
import tracemalloc
from decimal import Decimal

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import robustbn
from robustbn import BayesianNetwork, MaximumLikelihoodEstimator, RobustEstimator, read_table
from robustbn._encode.labels import MISSING, UNKNOWN, StateFinder
from robustbn._read.tables import BLOCK_ROWS
from robustbn.exceptions import ConstantColumnWarning, DataError, SmallSampleWarning

NETWORK = BayesianNetwork(
    {"wet": ["rain"], "rain": [], "where": []},
    {"wet": ["dry", "wet"], "rain": ["no", "yes"], "where": ["a,b", "c", "d\ne", "é"]},
)
NODES = NETWORK.nodes
DROP = {"on_unknown": "drop", "on_missing": "drop"}
N_ROWS = 97


def one_node(*states):
    return BayesianNetwork({"a": []}, {"a": list(states)})


def read_one(values, *states, **settings):
    """Codes of a table of one column, with how many values were missing and unknown."""
    table = values if not isinstance(values, list) else {"a": values}
    read = read_table(table, one_node(*states), **settings)
    found = read.reading
    return read.codes[:, 0].tolist(), found.n_missing.get("a", 0), found.n_unknown.get("a", 0)


def draw(n_rows=N_ROWS, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, len(s), n_rows) for s in NETWORK.states.values()], axis=1)
    return codes.astype(np.uint8)


def labelled(codes):
    """The same rows as a pandas frame of text; columns in another order, with two more."""
    columns = {n: np.array(NETWORK.states[n], object)[codes[:, k]] for k, n in enumerate(NODES)}
    frame = pd.DataFrame({n: columns[n].astype(object) for n in ("where", "rain", "wet")})
    frame.insert(1, "id", np.arange(len(frame)))
    frame["note"] = "x"
    return frame


# --- one body for all kinds of table --------------------------------------------------------------


def text(frame):
    return frame.astype(dict.fromkeys(NODES, "str"))


def write(path, save):
    save(path)
    return path


def save_csv(path, frame, sep=",", **settings):
    frame.to_csv(path, sep=sep, index=False, **settings)
    return path


def save_zst(path, frame):
    with pa.CompressedOutputStream(str(path), "zstd") as stream:
        stream.write(frame.to_csv(index=False).encode())
    return path


def save_hive(folder, frame):
    """One folder a value of `rain`; rows that share it stay in order."""
    table = pa.Table.from_pandas(text(frame), preserve_index=False)
    pq.write_to_dataset(table, folder, partition_cols=["rain"])
    return folder


def save_parts(folder, frame, save):
    folder.mkdir()
    for k in range(0, len(frame), 20):
        save(frame.iloc[k : k + 20], folder / f"part-{k:03}")
    (folder / "_SUCCESS").write_text("")
    return folder


def to_arrow(frame):
    return pa.Table.from_pandas(text(frame), preserve_index=False)


def to_dictionaries(frame):
    table = to_arrow(frame)
    for k, name in enumerate(table.column_names):
        if name in NODES:
            table = table.set_column(k, name, table[name].dictionary_encode())
    return table


def uneven(table):
    edges = [0, 1, 1, 4, 50, table.num_rows]
    return pa.concat_tables([table.slice(a, b - a) for a, b in itertools.pairwise(edges)])


def to_polars(frame, **kinds):
    table = pl.from_pandas(text(frame))
    return table.with_columns(pl.col(n).cast(kind) for n, kind in kinds.items())


def sqlite(frame):
    connection = sqlite3.connect(":memory:")
    frame.to_sql("t", connection, index=False)
    return connection


CATEGORICAL = dict.fromkeys(NODES, pl.Categorical)
ENUM = {n: pl.Enum([*reversed(NETWORK.states[n]), "never"]) for n in NODES}

KINDS = {
    "pandas text": lambda f, d: text(f),
    "pandas objects": lambda f, d: f,
    "pandas categories": lambda f, d: f.astype(dict.fromkeys(NODES, "category")),
    "pandas categories that do not occur": lambda f, d: f.assign(
        **{n: pd.Categorical(f[n], ["never", *NETWORK.states[n]]) for n in NODES}
    ),
    "pandas nullable text": lambda f, d: f.astype(dict.fromkeys(NODES, "string")),
    "pandas Arrow text": lambda f, d: f.astype(dict.fromkeys(NODES, "string[pyarrow]")),
    "pandas Arrow dictionaries": lambda f, d: to_dictionaries(f).to_pandas(
        types_mapper=pd.ArrowDtype
    ),
    "pandas with another index": lambda f, d: f.set_index(np.arange(len(f))[::-1] * 7),
    "narwhals": lambda f, d: nw.from_native(f),
    "polars text": lambda f, d: to_polars(f),
    "polars Categorical": lambda f, d: to_polars(f, **CATEGORICAL),
    "polars Enum": lambda f, d: to_polars(f, **ENUM),
    "polars lazy": lambda f, d: to_polars(f).lazy(),
    "polars lazy Categorical": lambda f, d: to_polars(f, **CATEGORICAL).lazy(),
    "polars in chunks": lambda f, d: pl.concat(
        [to_polars(f[:30], **CATEGORICAL), to_polars(f[30:], **CATEGORICAL)], rechunk=False
    ),
    "polars text in chunks": lambda f, d: pl.concat(
        [to_polars(f[:30]), to_polars(f[30:])], rechunk=False
    ),
    "polars objects": lambda f, d: pl.DataFrame(
        [pl.Series(n, f[n].tolist(), dtype=pl.Object) for n in f.columns]
    ),
    "arrow": lambda f, d: to_arrow(f),
    "arrow, uneven chunks": lambda f, d: uneven(to_arrow(f)),
    "arrow dictionaries": lambda f, d: to_dictionaries(f),
    "arrow dictionaries, one a chunk": lambda f, d: pa.concat_tables(
        [to_dictionaries(f[:5]), to_dictionaries(f[5:])]
    ),
    "arrow text views": lambda f, d: to_arrow(f).cast(
        pa.schema([(n, pa.string_view() if n in NODES else t) for n, t in arrow_types(f)])
    ),
    "arrow bytes": lambda f, d: to_arrow(f).cast(
        pa.schema([(n, pa.binary() if n in NODES else t) for n, t in arrow_types(f)])
    ),
    "arrow batch": lambda f, d: to_arrow(f).combine_chunks().to_batches()[0],
    "arrow reader": lambda f, d: uneven(to_arrow(f)).to_reader(),
    "arrow dataset": lambda f, d: ds.dataset([to_arrow(f[:40]), to_arrow(f[40:])]),
    "array of text": lambda f, d: f[list(NODES)].to_numpy().astype(str),
    "array of objects": lambda f, d: f[list(NODES)].to_numpy(),
    "array of bytes": lambda f, d: np.char.encode(f[list(NODES)].to_numpy().astype(str), "utf-8"),
    "array with names": lambda f, d: text(f).to_records(index=False),
    "codes": lambda f, d: codes_of(f),
    "codes in a list": lambda f, d: codes_of(f).tolist(),
    "codes as floats": lambda f, d: codes_of(f).astype(float),
    "codes, masked by nothing": lambda f, d: np.ma.array(codes_of(f)),
    "codes, sparse": lambda f, d: sp.csr_array(codes_of(f)),
    "codes, sparse by column": lambda f, d: sp.csc_matrix(codes_of(f).astype(float)),
    "mapping": lambda f, d: f.to_dict("list"),
    "mapping of arrays": lambda f, d: {n: f[n].to_numpy() for n in f.columns},
    "list of mappings": lambda f, d: f.to_dict("records"),
    "list of tuples": lambda f, d: list(f[list(NODES)].itertuples(index=False, name=None)),
    "DuckDB": lambda f, d: duckdb.connect().from_arrow(to_arrow(f)),
    "csv": lambda f, d: save_csv(d / "t.csv", f),
    "csv, path as text": lambda f, d: str(save_csv(d / "t.csv", f)),
    "csv, all quoted": lambda f, d: save_csv(d / "t.csv", f, quoting=1),
    "csv, CRLF and BOM": lambda f, d: save_csv(
        d / "t.csv", f, lineterminator="\r\n", encoding="utf-8-sig"
    ),
    "csv.gz": lambda f, d: save_csv(d / "t.csv.gz", f),
    "csv.bz2": lambda f, d: save_csv(d / "t.csv.bz2", f),
    "csv.zst": lambda f, d: save_zst(d / "t.csv.zst", f),
    "csv in a folder": lambda f, d: save_parts(
        d / "t", f, lambda part, path: save_csv(f"{path}.csv", part)
    ),
    "tsv": lambda f, d: save_csv(d / "t.tsv", f, sep="\t"),
    "parquet": lambda f, d: write(d / "t.parquet", lambda p: text(f).to_parquet(p)),
    "parquet of categories": lambda f, d: write(
        d / "t.parquet", lambda p: pq.write_table(to_dictionaries(f), p)
    ),
    "parquet folder": lambda f, d: save_parts(
        d / "t", f, lambda part, path: text(part).to_parquet(f"{path}.parquet")
    ),
    "parquet pattern": lambda f, d: (
        save_parts(d / "t", f, lambda part, path: text(part).to_parquet(f"{path}.parquet"))
        / "part-*.parquet"
    ),
    "feather": lambda f, d: write(d / "t.feather", lambda p: feather.write_feather(text(f), p)),
    "arrow file of categories": lambda f, d: write(
        d / "t.arrow", lambda p: feather.write_feather(to_dictionaries(f), p)
    ),
    "jsonl": lambda f, d: write(
        d / "t.jsonl", lambda p: f.to_json(p, orient="records", lines=True)
    ),
    "jsonl.gz": lambda f, d: write(
        d / "t.jsonl.gz", lambda p: f.to_json(p, orient="records", lines=True)
    ),
}
WITHOUT_NAMES = ("codes", "array of", "list of tuples")


def arrow_types(frame):
    return [(field.name, field.type) for field in to_arrow(frame).schema]


def codes_of(frame):
    return np.stack([[NETWORK.states[n].index(v) for v in frame[n]] for n in NODES], axis=1).astype(
        np.uint8
    )


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


# --- which state a value stands for ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("states", "value", "state"),
    [
        (["no", "yes"], "yes", "yes"),
        (["no", "yes"], " yes ", "yes"),
        (["no", "yes "], "yes", "yes "),
        (["no", "yes"], "Yes", UNKNOWN),
        (["no", "yes"], b"yes", "yes"),
        (["no", "yes"], b"\xff", UNKNOWN),
        (["no", "yes"], np.str_("yes"), "yes"),
        (["no", "yes"], True, UNKNOWN),
        (["no", "yes"], 1, UNKNOWN),
        (["no", "yes"], [1], UNKNOWN),
        (["no", "yes"], None, MISSING),
        (["None", "yes"], None, MISSING),
        (["nan", "yes"], float("nan"), MISSING),
        (["<NA>", "yes"], pd.NA, MISSING),
        (["NaT", "yes"], pd.NaT, MISSING),
        (["NaT", "yes"], np.datetime64("NaT"), MISSING),
        (["a", "b"], np.ma.masked, MISSING),
        (["a", "b"], Decimal("NaN"), MISSING),
        (["a", "b"], "NA", UNKNOWN),
        ([0, 1], 1, 1),
        ([0, 1], 1.0, 1),
        ([0, 1], "1", 1),
        ([0, 1], "1.0", 1),
        ([0, 1], " 1 ", 1),
        ([0, 1], "+1", 1),
        ([0, 1], "1e0", 1),
        ([0, 1], "01", UNKNOWN),
        ([0, 1], "1_", UNKNOWN),
        ([0, 1], True, 1),
        ([0, 1], np.bool_(False), 0),
        ([0, 1], np.float32(1), 1),
        ([0, 1], Decimal("1.00"), 1),
        ([0, 1], 1.5, UNKNOWN),
        ([0, 1], float("inf"), UNKNOWN),
        ([0, 1], "9" * 5000, UNKNOWN),
        (["0", "1"], True, "1"),
        (["0", "1"], 1.0, "1"),
        (["0", "1"], Decimal(1), "1"),
        (["01", "02"], 1, UNKNOWN),
        (["01", "1"], "01", "01"),
        (["01", "1"], 1, "1"),
        ([0.1, 0.2], "0.1", 0.1),
        ([0.1, 0.2], Decimal("0.1"), 0.1),
        ([2**53, 2**53 + 1], "9007199254740993", 2**53 + 1),
        ([2**63, 0], np.uint64(2**63), 2**63),
        ([float("inf"), 0], float("inf"), float("inf")),
        ([float("inf"), 0], Decimal("Infinity"), float("inf")),
        ([float("inf"), 0], "1e999", UNKNOWN),
        ([True, False], 1, True),
        ([True, False], "true", True),
        ([True, False], "1", True),
        (["TRUE", "FALSE"], False, "FALSE"),
        (["TRUE", "FALSE"], "true", "TRUE"),
        (["TRUE", "FALSE"], 1, UNKNOWN),
        (["1", "True"], True, "True"),
        (["1", "1.0"], "1", "1"),
        (["1", "1.0"], "1.0", "1.0"),
        (["1", "1.0"], 1, UNKNOWN),
        (["a", " a"], "a", "a"),
        (["a", " a"], " a", " a"),
        (["a", " a"], "a ", UNKNOWN),
        (["2024-05-31", "x"], dt.date(2024, 5, 31), "2024-05-31"),
        (["2024-05-31", "x"], dt.datetime(2024, 5, 31), "2024-05-31"),
        (["2024-05-31", "x"], pd.Timestamp("2024-05-31"), "2024-05-31"),
        (["2024-05-31", "x"], np.datetime64("2024-05-31", "ns"), "2024-05-31"),
        (["2024-05-31", "x"], dt.datetime(2024, 5, 31, 12), UNKNOWN),
        (["2024-05-31 12:00", "x"], dt.datetime(2024, 5, 31, 12), "2024-05-31 12:00"),
        ([dt.date(2024, 5, 31), "x"], "2024-05-31", dt.date(2024, 5, 31)),
        ([dt.date(2024, 5, 31), "x"], pd.Timestamp("2024-05-31"), dt.date(2024, 5, 31)),
        (["2024-06-31", "x"], "2024-06-31", "2024-06-31"),
        ([("a", 1), "x"], ("a", 1), ("a", 1)),
    ],
)
def test_a_value_stands_for_the_state_that_the_rules_say(states, value, state):
    code = state if state in (MISSING, UNKNOWN) and state not in states else states.index(state)
    assert StateFinder(states).find(value) == code


@pytest.mark.parametrize(
    ("states", "value", "state"),
    [
        (["no", "yes"], "YES", "yes"),
        (["No", "yes"], " no ", "No"),
        (["yes", "Yes"], "Yes", "Yes"),
        (["yes", "Yes"], "YES", UNKNOWN),
        (["nan", "None"], None, MISSING),
    ],
)
def test_case_is_ignored_only_where_it_leaves_one_state(states, value, state):
    code = states.index(state) if state in states else state
    assert StateFinder(states, ignore_case=True).find(value) == code


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("f", 1),
        (" f ", 1),
        ("m", 0),
        (1, 0),
        ("1", 0),
        (1.0, 0),
        (2, 1),
        ("male", 0),
        (3, UNKNOWN),
        (None, 1),
        (float("nan"), 1),
    ],
)
def test_labels_come_first_and_follow_the_same_rules(value, code):
    labels = {"m": "male", "f": "female", 1: "male", "2": "female", None: "female"}
    assert StateFinder(["male", "female"], labels).find(value) == code


@pytest.mark.parametrize(
    "table",
    [
        {"a": ["x", None, "y"]},
        pd.DataFrame({"a": pd.Categorical(["x", None, "y"])}),
        pd.DataFrame({"a": pd.array(["x", None, "y"], "string")}),
        pl.DataFrame({"a": ["x", None, "y"]}, schema={"a": pl.Categorical}),
        pl.DataFrame({"a": ["x", None, "y"]}),
        pa.table({"a": pa.array(["x", None, "y"]).dictionary_encode()}),
    ],
)
def test_a_label_for_missing_values_holds_in_every_kind_of_table(table):
    assert read_one(table, "x", "y", labels={"a": {None: "y"}}) == ([0, 1, 1], 0, 0)


@pytest.mark.parametrize("words", [["", "NA", "None", "nan", "null", " NULL ", "N/A", "<NA>"]])
def test_words_for_missing_are_missing_in_text_files_only(words, tmp_path):
    pd.DataFrame({"a": [*words, "x"], "b": 1}).to_csv(tmp_path / "t.csv", index=False)
    assert read_one(tmp_path / "t.csv", "x", "y", **DROP) == ([0], len(words), 0)
    assert read_one([*words, "x"], "x", "y", **DROP) == ([0], 0, len(words))


def test_a_state_that_is_such_a_word_is_a_state(tmp_path):
    pd.DataFrame({"a": ["NA", "None", "", "x", "null"], "b": 1}).to_csv(
        tmp_path / "t.csv", index=False
    )
    read = read_one(tmp_path / "t.csv", "NA", "None", "", "x", **DROP)
    assert read == ([0, 1, 2, 3], 1, 0)


@pytest.mark.parametrize("states", [[0, 1], ["0", "1"], [False, True], ["false", "TRUE"], [0.0, 1]])
def test_truth_values_stand_for_numbers_and_words(states):
    for table in (
        pd.DataFrame({"a": [True, False]}),
        pd.DataFrame({"a": pd.array([True, False], "boolean")}),
        pl.DataFrame({"a": [True, False]}),
        pa.table({"a": [True, False]}),
        pd.DataFrame({"a": np.array([True, False], object)}),
        {"a": np.array([True, False])},
    ):
        assert read_one(table, *states) == ([1, 0], 0, 0)


def test_truth_values_are_no_yes_and_no():
    with pytest.raises(DataError, match=r"True.*States: 'no', 'yes'.*labels=\{'a': \{0: 'no', 1"):
        read_one([True, True], "no", "yes")
    labels = {"a": {True: "yes", False: "no"}}
    assert read_one([True, False], "no", "yes", labels=labels) == ([1, 0], 0, 0)


@pytest.mark.parametrize(
    ("values", "states"),
    [
        (np.array([-100, 100], np.int8), range(-100, 101)),
        (np.array([-1, -128, 127], np.int8), range(-128, 128)),
        (np.array([2**64 - 1, 0], np.uint64), [0, 2**64 - 1]),
        (np.array([2**64 - 1, 2**64 - 2], np.uint64), [2**64 - 2, 2**64 - 1]),
        (np.array([-(2**63), 2**63 - 1]), [2**63 - 1, -(2**63)]),
        (np.array([-32768, 32767, 5], np.int16), [5, -32768, 32767]),
        (np.array([1e300, -0.5]), [-0.5, 1e300]),
        (np.array([1e300, 3], object), [3, 1e300]),
    ],
)
def test_numbers_of_any_size_are_told_apart(values, states):
    states = list(states)
    codes = [states.index(v) for v in values.tolist()]
    for table in (pd.DataFrame({"a": values}), {"a": values}, {"a": values.tolist()}):
        assert read_one(table, *states) == (codes, 0, 0)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"a": pd.to_datetime(["2024-01-02", None, "2024-01-01"])}),
        pd.DataFrame({"a": [dt.date(2024, 1, 2), None, dt.date(2024, 1, 1)]}),
        pl.DataFrame({"a": [dt.date(2024, 1, 2), None, dt.date(2024, 1, 1)]}),
        pl.DataFrame({"a": [dt.datetime(2024, 1, 2), None, dt.datetime(2024, 1, 1)]}),
        {"a": np.array(["2024-01-02", "NaT", "2024-01-01"], "M8[ns]")},
        {"a": np.array(["2024-01-02", "NaT", "2024-01-01"], "M8[D]")},
        pd.DataFrame({"a": ["2024-01-02", None, "2024-01-01"]}),
    ],
)
@pytest.mark.parametrize(
    "states", [["2024-01-01", "2024-01-02"], [dt.date(2024, 1, 1), dt.date(2024, 1, 2)]]
)
def test_dates_stand_for_dates(table, states):
    assert read_one(table, *states, **DROP) == ([1, 0], 1, 0)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"a": pd.array([1, None, 0], "Int64")}),
        pd.DataFrame({"a": [1, np.nan, 0]}),
        pd.DataFrame({"a": np.array([1, np.nan, 0], object)}),
        pd.DataFrame({"a": np.array([1, pd.NA, 0], object)}),
        pd.DataFrame({"a": np.array(["1", None, "0"], object)}),
        pd.DataFrame({"a": pd.array([True, None, False], "boolean")}),
        pd.DataFrame({"a": pd.Categorical([1, None, 0])}),
        pd.DataFrame({"a": pd.Categorical([1.0, None, 0.0])}),
        pd.DataFrame({"a": pd.arrays.SparseArray([1, np.nan, 0])}),
        pd.DataFrame({"a": pd.array([1, None, 0], pd.ArrowDtype(pa.int8()))}),
        pl.DataFrame({"a": [1, None, 0]}),
        pl.DataFrame({"a": [1.0, float("nan"), 0.0]}),
        pl.DataFrame({"a": pl.Series([Decimal(1), None, Decimal(0)])}),
        pa.table({"a": pa.array([1, None, 0], pa.uint64())}),
        pa.table({"a": pa.array([1, None, 0], pa.decimal128(10, 2))}),
        pa.table({"a": pa.array([1, None, 0], pa.int8()).dictionary_encode()}),
        pa.table({"a": pa.DictionaryArray.from_arrays([1, 2, 0], pa.array([0, 1, None]))}),
        np.array([[1.0], [np.nan], [0.0]]),
        np.ma.array([[1], [7], [0]], mask=[[0], [1], [0]]),
        np.ma.array(np.array([[1], [7], [0]], np.uint8), mask=[[0], [1], [0]]),
        [[1], [None], [0]],
        {"a": np.ma.array([1, 7, 0], mask=[0, 1, 0])},
        [{"a": 1}, {"b": 3}, {"a": 0}],
    ],
    ids=lambda table: type(table).__name__,
)
def test_missing_values_of_every_kind_are_counted(table):
    read = read_table(table, one_node(0, 1), on_missing="drop")
    assert read.codes[:, 0].tolist() == [1, 0]
    assert read.kept.tolist() == [0, 2]
    assert read.reading.n_missing == {"a": 1}
    np.testing.assert_array_equal(read.spread(np.array([5.0, 6.0])), [5.0, np.nan, 6.0])
    with pytest.raises(DataError, match=r"column 'a': 1 of 3 rows \(33.33%\) have no value"):
        MaximumLikelihoodEstimator(one_node(0, 1)).fit(table)


def test_a_category_may_be_missing_from_the_first_row_on():
    series = pl.Series([None, "y", None, "x"], dtype=pl.Categorical)
    assert read_one(pl.DataFrame({"a": series}), "x", "y", **DROP) == ([1, 0], 2, 0)


@pytest.mark.parametrize(
    "table",
    [
        {"a": [None, None]},
        pd.DataFrame({"a": [None, None]}),
        pd.DataFrame({"a": pd.Categorical([None, None], ["x"])}),
        pl.DataFrame({"a": [None, None]}),
        pl.DataFrame({"a": [None, None]}, schema={"a": pl.Categorical}),
        pl.DataFrame({"a": [None, None]}, schema={"a": pl.Enum(["x"])}),
        pa.table({"a": pa.nulls(2)}),
        pa.table({"a": pa.nulls(2, pa.dictionary(pa.int8(), pa.string()))}),
        pa.table({"a": pa.nulls(2, pa.string())}),
    ],
    ids=lambda table: type(table).__name__,
)
def test_a_column_may_be_missing_altogether(table):
    assert read_one(table, "x", "y", **DROP) == ([], 2, 0)
    with pytest.raises(DataError, match=r"no rows \(N = 0\)"):
        MaximumLikelihoodEstimator(one_node("x", "y"), on_missing="drop").fit(table)


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
        "The mapping: 1 rows read. 2 of 3 rows were left out: 1 missing and 1 unknown values. "
        "2 columns are no nodes: 'b', 'c'."
    )
    assert "1 column is no node: 'b'." in str(
        read_table({"a": ["x"], "b": [1]}, one_node("x", "y")).reading
    )


# --- intervals ------------------------------------------------------------------------------------


NUMBERS = {
    "pandas": lambda v: pd.DataFrame({"a": v}),
    "nullable": lambda v: pd.DataFrame({"a": pd.array(v, "Float64")}),
    "objects": lambda v: pd.DataFrame({"a": np.array(v, object)}),
    "category": lambda v: pd.DataFrame({"a": pd.Categorical(v)}),
    "decimals": lambda v: {"a": [Decimal(x) for x in v]},
    "text": lambda v: {"a": [str(x) for x in v]},
    "polars": lambda v: pl.DataFrame({"a": v}),
    "lazy": lambda v: pl.LazyFrame({"a": v}),
    "arrow": lambda v: pa.table({"a": v}),
    "array": lambda v: np.array(v, float)[:, None],
    "DuckDB": lambda v: duckdb.connect().from_arrow(pa.table({"a": v})),
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_are_cut_at_the_edges_and_an_edge_is_above(kind):
    values = [1.0, 17.5, 18.0, 64.0, 65.0, 99.0]
    for bins in ([18, 65], np.array([18.0, 65.0])):
        read = read_one(NUMBERS[kind](values), "young", "adult", "old", bins={"a": bins})
        assert read == ([0, 0, 1, 1, 2, 2], 0, 0)


@pytest.mark.parametrize("kind", NUMBERS)
def test_edges_are_found_in_every_kind_of_table(kind):
    values = np.random.default_rng(0).permutation(40).astype(float).tolist()
    expected = {"q4": np.quantile(values, [0.25, 0.5, 0.75]), 4: [9.75, 19.5, 29.25]}
    for bins, edges in expected.items():
        read = read_table(NUMBERS[kind](values), one_node(*"abcd"), bins={"a": bins})
        np.testing.assert_array_equal(read.reading.config.bins["a"], edges)
        np.testing.assert_array_equal(
            read.codes[:, 0], np.searchsorted(edges, values, side="right")
        )


def test_whole_numbers_and_text_in_a_file_are_cut_alike(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n7,x\n,x\n030,x\n1e2,x\nabc,x\n1_0,x\n")
    read = read_one(tmp_path / "t.csv", "lo", "mid", "hi", bins={"a": [18, 65]}, **DROP)
    assert read == ([0, 1, 2], 1, 2)
    with pytest.raises(
        DataError, match=r"'a': 2 of 6 rows .* is no number, .* row 4: 'abc', '1_0'"
    ):
        read_one(tmp_path / "t.csv", "lo", "mid", "hi", bins={"a": "q3"})


def test_later_rows_are_cut_at_the_edges_found_in_fit():
    rng = np.random.default_rng(0)
    network = BayesianNetwork({"a": [], "b": ["a"]}, {"a": range(4), "b": ["n", "y"]})
    frame = pd.DataFrame({"a": rng.normal(size=4000), "b": rng.choice(["n", "y"], 4000)})
    fit = RobustEstimator(network, bins={"a": "q4"}, random_state=0).fit(frame)
    edges = np.quantile(frame["a"], [0.25, 0.5, 0.75])
    np.testing.assert_array_equal(fit.reading_.config.bins["a"], edges)
    later = frame[frame["a"] > 0.5]
    np.testing.assert_array_equal(fit.weights(later), fit.row_weights_[later.index])
    assert fit.log_likelihood(later) < 0
    coded = pd.DataFrame({"a": np.searchsorted(edges, later["a"], side="right"), "b": later["b"]})
    plain = RobustEstimator(network, random_state=0).fit(
        pd.DataFrame({"a": np.searchsorted(edges, frame["a"], side="right"), "b": frame["b"]})
    )
    assert fit.log_likelihood(later) == pytest.approx(plain.log_likelihood(coded))


def test_without_a_network_states_are_what_occurs(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n x,10\nx ,\ny,9\nNA,10\n")
    fit = MaximumLikelihoodEstimator(on_missing="drop").fit(tmp_path / "t.csv")
    assert dict(fit.network_.states) == {"a": ("x", "y"), "b": ("10", "9")}
    assert fit.reading_.n_missing == {"a": 1, "b": 1}
    frame = pd.DataFrame({"a": np.arange(300.0), "b": [0, 1] * 150})
    fit = MaximumLikelihoodEstimator(bins={"a": "q3"}).fit(frame)
    assert [len(s) for s in fit.network_.states.values()] == [3, 2]
    assert MaximumLikelihoodEstimator(bins=[10]).fit(frame).network_.states["a"] == (0, 1)
    with pytest.raises(DataError, match=r"column 'a': 300 different values .* bins='q5'"):
        MaximumLikelihoodEstimator().fit(frame)
    with pytest.raises(DataError, match="read once only"):
        MaximumLikelihoodEstimator().fit(pa.table({"a": ["x"]}).to_reader())
    table = read_table({"a": ["x", "y"]}, one_node("x", "y", "z"))
    assert MaximumLikelihoodEstimator().fit(table).network_.states["a"] == ("x", "y", "z")


# --- arrays of numbers ----------------------------------------------------------------------------


def test_numbers_in_arrays_are_codes_and_in_frames_states():
    assert read_one(np.array([[1], [0]]), "x", "y") == ([1, 0], 0, 0)
    assert read_one([1, 0], "x", "y", codes=True) == ([1, 0], 0, 0)
    assert read_one(["1", 0.0], "x", "y", codes=True) == ([1, 0], 0, 0)
    assert read_one([1, 2], 1, 2) == ([0, 1], 0, 0)
    assert read_one(np.array([[1], [2]]), 1, 2, codes=False) == ([0, 1], 0, 0)


@pytest.mark.parametrize(
    ("array", "states"),
    [
        (np.array([[1], [1]]), [1, 2]),
        (np.array([[1], [1]]), ["1", "0"]),
        (np.array([[True], [False]]), [True, False]),
        (np.array([[1.0]]), [1, 5]),
        (sp.csr_array(np.array([[True]])), [1, 0]),
        ([[1], [1]], [1, 2]),
    ],
)
def test_numbers_that_could_be_codes_or_other_states_are_refused(array, states):
    with pytest.raises(DataError, match=r"could be the state .* or the position of .*codes=False"):
        MaximumLikelihoodEstimator(one_node(*states)).fit(array)
    table = read_table(array, one_node(*states), codes=True)
    assert table.codes[0, 0] == 1


def test_uint8_arrays_are_codes_whatever_the_states():
    network = one_node(1, 2)
    codes = np.array([[1], [0]], np.uint8)
    assert MaximumLikelihoodEstimator(network).fit(codes).counts_.tolist() == [1, 1]
    assert read_table(codes, network).codes[:, 0].tolist() == [1, 0]
    labels = {"a": {7: 1, 9: 2}}
    table = read_table(np.array([[7], [9], [9]], np.uint8), network, labels=labels)
    fit = MaximumLikelihoodEstimator(network).fit(table)
    assert fit.counts_.tolist() == [1, 2]
    fit.log_likelihood(np.array([[7], [9]], np.uint8))  # read as in fit, by labels


def test_a_table_that_was_read_is_for_its_network_alone():
    table = read_table({"a": ["x"]}, one_node("x", "y"))
    assert MaximumLikelihoodEstimator(one_node("x", "y")).fit(table).counts_.tolist() == [1, 0]
    with pytest.raises(DataError, match="other nodes or states; read it again"):
        MaximumLikelihoodEstimator(one_node("y", "x")).fit(table)


# --- errors that say what to do -------------------------------------------------------------------


YES = ["no", "yes"]


@pytest.mark.parametrize(
    ("table", "settings", "message"),
    [
        ({"b": [1]}, {}, r"lacks 1 of the network's columns: 'a'. It has 'b'. Add the column, or"),
        ({" A": ["no"]}, {}, r"lacks .*'a'. It has ' A'. Did you mean rename=\{' A': 'a'\}"),
        ({"b": [1]}, {"rename": {"c": "a"}}, r"rename=\{'c': 'a'\}: there is no column 'c'"),
        ({"b": [1]}, {"rename": {"b": "z"}}, "there is no node 'z'"),
        ({"a": [1], "b": [1]}, {"rename": {"b": "a"}}, "two columns for node 'a': number 0 and"),
        (pd.DataFrame([["no", "no"]], columns=["a", "a"]), {}, "two columns for node 'a'"),
        (
            {"a": ["no", "maybe", "maybe"]},
            {},
            r"The mapping, column 'a': 2 of 3 rows \(66.67%\) have a value that is no state of the "
            r"node, the first at row 1: 'maybe'. States: 'no', 'yes'. .*labels=\{'a': .*"
            r"on_unknown='drop'",
        ),
        ({"a": ["yess"]}, {}, r"Did you mean 'yes' by 'yess'\? Say so with labels=\{'a'"),
        ({"a": ["YES"]}, {}, "differ from a state in case only: use ignore_case=True"),
        ({"a": [0, 1]}, {}, r"positions of the states: .*codes=True, .*\{'a': \{0: 'no', 1: 'yes'"),
        ({"a": [0.0, 1.0]}, {}, r"positions of the states: .*codes=True"),
        ({"a": ["0", "1"]}, {}, r"positions of the states: .*codes=True"),
        ({"a": np.arange(99) / 7}, {}, r"look continuous: .* bins=\{'a': \[...\]\}, 1 inner edge"),
        (np.array([[0.5]]), {}, r"Code 0.5 at row 0.*bins=\{'a': \[...\]\} or bins=\{'a': 'q2'\}"),
        (np.array([[2]]), {}, r"Code 2 at row 0, column 0 \('a'\) .* 0 to 1. .*codes=False"),
        ({"a": [None]}, {}, r"1 of 1 rows \(100.00%\) have no value, .* row 0 .*on_missing='drop'"),
        (
            {"a": ["no", "?"]},
            {"on_unknown": "missing"},
            "'a': 1 of 2 rows .* have no value or an unknown one, the first at row 1",
        ),
        ({"a": [[1], [2]]}, {}, r"no state of the node, the first at row 0: '\[1\]'"),
        ({"a": ["no"]}, {"labels": {"z": {}}}, "labels names 'z', which the network does not have"),
        ({"a": ["no"]}, {"labels": {"a": {1: "on"}}}, r"labels\['a'\] leads to 'on', no state"),
        ({"a": ["no"]}, {"labels": {"a": {1: "no"}}, "bins": {"a": [1]}}, "both bins and labels"),
        ({"a": [1]}, {"bins": {"z": [1]}}, "bins names 'z', which the network does not have"),
        (
            {"a": [1]},
            {"bins": {"a": [1, 2]}},
            r"bins\['a'\] cuts into 3 intervals .* 2 states: 'no'",
        ),
        (
            pa.table({"a": [1]}).to_reader(),
            {"bins": {"a": "q2"}},
            "can be read once only, so the intervals of 'a' cannot be found first: give .* edges",
        ),
        (np.zeros((2, 3)), {}, "has 3 columns; the network has 1 nodes"),
        (np.zeros(2), {}, "two dimensions.*found 1 dimension"),
        ([["no"], ["no", "yes"]], {}, "rows are not all equally long: they have 1 to 2 values"),
        ({"a": ["no"], "b": [1, 2]}, {}, "columns are not equally long"),
        ({"a": "no"}, {}, "Column 'a' of the mapping must be a list or an array; found str"),
        (pd.Series(YES, name="a"), {}, r"pandas Series is one column.*series.to_frame\(\)"),
        (pl.Series("a", YES), {}, r"polars Series is one column"),
        (None, {}, "A table is a data frame, an array, .* found NoneType"),
        (7, {}, "A table is a data frame, an array, .* found int"),
        ("select a from t", {}, "no such file or folder. For a query, .* connection=..."),
        ("select * from t", {}, "no file matches this pattern. For a query, .* connection=..."),
        (
            "select b",
            {"connection": sqlite3.connect(":memory:")},
            "The query fails: no such column",
        ),
        ("select b", {"connection": duckdb.connect()}, "The query fails: "),
        ("select 1", {"connection": 3}, "DuckDB connection, or one with a cursor.*found int"),
        ({"a": []}, {"connection": duckdb.connect()}, "the table is an SQL query; found dict"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_to_do(table, settings, message):
    with pytest.raises(DataError, match=message):
        read_table(table, one_node(*YES), **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"on_unknown": "ignore"},
            "on_unknown is one of 'error', 'drop', 'missing'; found 'ignore'",
        ),
        ({"on_missing": "fill"}, "on_missing is one of 'error', 'drop'; found 'fill'"),
        ({"bins": {"a": "5"}}, r"bins\['a'\] is a list of increasing inner edges.*'q5'.*Found '5'"),
        ({"bins": {"a": [2, 1]}}, r"increasing inner edges, .* Found \[2, 1\]"),
        ({"bins": 0}, "bins is a list .* Found 0"),
        ({"bins": {"a": None}}, r"bins\['a'\] is a list .* Found None"),
        ({"labels": {"a": ["x"]}}, r"labels\['a'\] is a mapping"),
        ({"rename": "a"}, "rename is a mapping"),
        ({"sep": "::"}, "sep is one character.*found '::'"),
        ({"encoding": "klingon"}, "encoding is the name of one.*found 'klingon'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        read_table({"a": ["no"]}, one_node(*YES), **settings)


def test_a_share_of_ten_is_taken_for_ten_per_cent_and_refused():
    with pytest.raises(
        ValueError, match=r"contamination is the share .*found 10. Did you mean 0.10"
    ):
        robustbn.fit(one_node(*YES), {"a": YES * 50}, contamination=10)
    with pytest.raises(TypeError, match=r"fit\(\) has no setting 'epsilon'; it has .*bins"):
        robustbn.fit(one_node(*YES), {"a": YES * 50}, epsilon=0.1)


def test_few_rows_and_constant_columns_are_told():
    with pytest.warns(SmallSampleWarning, match=r"4 rows are few .* 1 free .* 100 rows would"):
        RobustEstimator(one_node(*YES), random_state=0).fit({"a": [*YES, *YES]})
    with pytest.warns(ConstantColumnWarning, match=r"Column 'a' is 'no' in every row.*n_eff = 0"):
        MaximumLikelihoodEstimator(one_node(*YES)).fit({"a": ["no"] * 100})


# --- files that are not what they seem ------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"", r"t.csv is empty \(0 bytes\): there is not even a header"),
        ("t.parquet", b"", "t.parquet is empty"),
        ("t.csv", b"\n\n", "t.csv has no header: all of its lines are blank"),
        ("t.csv", b"a;b\nno;1\n", r"t.csv has one column, 'a;b': .* separated by ';'. .* sep=';'"),
        ("t.tsv", b"a,b\nno,1\n", r"t.tsv has one column, 'a,b'.* sep=','"),
        ("t.csv", b"a\tb\nno\t1\n", r"t.csv has one column.* sep='\\t'"),
        ("t.csv", b"a,b\nno,1\nyes\n", "Expected 2 columns, got 1: yes. A line has more or fewer"),
        ("t.csv", b"a,a\nno,1\n", "t.csv has two columns for node 'a': number 0 and number 1"),
        ("t.csv", b"b\nno\n", "t.csv lacks 1 of the network's columns: 'a'"),
        ("t.csv", "a,b\nno,é\n".encode("latin-1"), "another encoding: .* encoding='latin-1'"),
        ("t.csv", "a,é\nno,1\n".encode("latin-1"), "another encoding: .* encoding='latin-1'"),
        ("t.csv", "a,b\nno,1\n".encode("utf-16"), "another encoding"),
        (
            "t.csv.gz",
            b"a,b\nno,1\n",
            "t.csv.gz cannot be read: .*truncated, or not be what its name",
        ),
        ("t.parquet", b"PAR1 and no more", "t.parquet cannot be read: .*truncated, or not be"),
        ("t.feather", b"ARROW1 and no more", "t.feather cannot be read: .*truncated, or not be"),
        ("t.jsonl", b'{"a": "no"', "t.jsonl cannot be read: "),
        (
            "t.jsonl",
            b'{"a": "no"}\n{"a": 1}\n',
            "t.jsonl cannot be read: .*all text or all numbers",
        ),
        ("t.pkl", b"anything", "t.pkl is refused: files of this kind may run code"),
        ("t.joblib", b"anything", "t.joblib is refused"),
        ("t.xlsx", b"anything", r"t.xlsx is not a table that can be read; known are .csv"),
        ("t", b"anything", "is not a table that can be read; known are"),
    ],
)
def test_files_that_cannot_be_read_are_named_with_the_reason(name, content, message, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        MaximumLikelihoodEstimator(one_node(*YES)).fit(tmp_path / name)


def test_a_truncated_parquet_file_is_named(tmp_path):
    pq.write_table(pa.table({"a": ["no"] * 5000}), tmp_path / "t.parquet")
    whole = (tmp_path / "t.parquet").read_bytes()
    (tmp_path / "t.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"t.parquet cannot be read: .*It may be truncated"):
        read_table(tmp_path / "t.parquet", one_node(*YES))


def test_an_error_in_the_middle_of_a_file_names_the_file(tmp_path):
    lines = "a,b\n" + "no,1\n" * 3_000_000 + "no\n"
    (tmp_path / "t.csv").write_text(lines)
    with pytest.raises(DataError, match=r"t.csv cannot be read: .*Expected 2 columns"):
        read_table(tmp_path / "t.csv", one_node(*YES))


def test_folders_say_what_is_wrong_with_them(tmp_path):
    network = one_node(*YES)
    with pytest.raises(DataError, match="is a folder without files"):
        read_table(tmp_path, network)
    (tmp_path / "one.csv").write_text("a,b\nno,1\n")
    (tmp_path / "two.csv").write_text("b,a\n1,no\n")
    with pytest.raises(DataError, match=r"two.csv: its columns differ from those of .*one.csv"):
        read_table(tmp_path, network)
    with pytest.raises(DataError, match=r"no such file or folder. Did you mean .*one.csv"):
        read_table(tmp_path / "onee.csv", network)
    with pytest.raises(DataError, match=r"no file matches this pattern"):
        read_table(tmp_path / "*.parquet", network)
    (tmp_path / "three.tsv").write_text("a\nno\n")
    with pytest.raises(DataError, match=r"several kinds \(.csv, .tsv\). Name one, .*csv"):
        read_table(tmp_path, network)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a\nno\n")
    path.chmod(0)
    with pytest.raises(DataError, match=r"t.csv: no permission to read it"):
        read_table(path, one_node(*YES))


@pytest.mark.parametrize("content", [b"a,b", b"a,b\n", b"a,b\r\n", b"\xef\xbb\xbfa,b\n"])
def test_a_header_without_rows_is_a_table_without_rows(content, tmp_path):
    (tmp_path / "t.csv").write_bytes(content)
    read = read_table(tmp_path / "t.csv", one_node(*YES))
    assert (len(read), read.reading.n_read, read.reading.ignored) == (0, 0, ("b",))
    with pytest.raises(DataError, match=r"no rows \(N = 0\).*check the file"):
        MaximumLikelihoodEstimator(one_node(*YES)).fit(tmp_path / "t.csv")


@pytest.mark.parametrize(
    "content",
    [
        b"a,b\nno,1\nyes,2",
        b"\n\na,b\nno,1\n\nyes,2\n\n",
        b'"a",b\r\n"no",1\r\n yes ,2\r\n',
        b'"b\nc",a\n1,no\n2,yes\n',
        b"  a , b\nno,1\nyes,2\n",
    ],
)
def test_text_files_may_be_untidy(content, tmp_path):
    (tmp_path / "t.csv").write_bytes(content)
    assert read_one(tmp_path / "t.csv", *YES) == ([0, 1], 0, 0)


def test_a_blank_line_of_one_column_is_a_missing_value(tmp_path):
    (tmp_path / "t.csv").write_text("a\nno\n\nyes\n")
    assert read_one(tmp_path / "t.csv", *YES, **DROP) == ([0, 1], 1, 0)


def test_separator_and_encoding_are_kept_for_later_files(tmp_path):
    (tmp_path / "t.csv").write_bytes("a;b\nné;1\noui;2\n".encode("latin-1"))
    settings = {"sep": ";", "encoding": "latin-1"}
    table = read_table(tmp_path / "t.csv", one_node("né", "oui"), **settings)
    fit = MaximumLikelihoodEstimator(one_node("né", "oui")).fit(table)
    assert fit.log_likelihood(tmp_path / "t.csv") == pytest.approx(2 * np.log(0.5))


def test_dask_frames_are_refused_with_what_to_do():
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(pd.DataFrame({"a": YES}), npartitions=1)
    with pytest.raises(DataError, match=r"Dask .*Call .compute\(\)"):
        read_table(frame, one_node(*YES))


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
