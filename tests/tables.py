"""The same rows as every kind of table that can be read."""

from __future__ import annotations

import itertools
import sqlite3

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
import scipy.sparse as sp

from robustbn import BayesianNetwork, random_network, read_table, sample

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


def draw_feeds(n_rows):
    """Return a tree, rows of which feed-3's are noise from 7 March on, which those are, and rng."""
    network = random_network("tree", 20, random_state=0)
    rng = np.random.default_rng(0)
    rows = sample(network, n_rows, random_state=0)
    feed = rng.choice(["feed-1", "feed-2", "feed-3", "feed-4"], n_rows)
    day = pd.Timestamp("2024-02-01") + pd.to_timedelta(np.arange(n_rows) * 60 // n_rows, "D")
    is_bad = (feed == "feed-3") & (day >= pd.Timestamp("2024-03-07"))
    noise = np.column_stack([rng.permutation(column) for column in rows.T])
    rows = np.where(is_bad[:, None], noise, rows)
    frame = pd.DataFrame(
        {n: np.array(network.states[n], object)[rows[:, k]] for k, n in enumerate(network.nodes)}
    )
    frame["feed"], frame["day"] = feed, day
    frame["uid"] = [f"u{k:05d}" for k in range(n_rows)]
    frame["sensor"] = rng.integers(0, 200, n_rows)
    return network, frame, is_bad, rng
