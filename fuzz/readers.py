"""Files with bytes changed at random, of every kind that is read: our error, or something read."""

from __future__ import annotations

import random
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

import robustbn
from robustbn.exceptions import RobustBNError

NETWORK = robustbn.BayesianNetwork(
    {"a": [], "b": ["a"]},
    {"a": ["no", "yes"], "b": ["x", "y", "z"]},
    {"a": [0.3, 0.7], "b": [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]},
)
NETWORK_KINDS = ("json", "bif", "xmlbif", "net", "xdsl", "uai", "json.gz", "bif.gz")


def draw_table(n: int = 120) -> pa.Table:
    """Return rows of the network, with a number, a list and a word beside it."""
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {
        node: rng.choice(states, n) for node, states in NETWORK.states.items()
    }
    return pa.table({**columns, "c": rng.random(n), "l": [[1, 2]] * n, "w": ["é"] * n})


def write_tables(folder: Path) -> list[Path]:
    """Write the same table in every format; return the files."""
    table = draw_table()
    words = table
    for k, node in enumerate(NETWORK.nodes):
        words = words.set_column(k, node, table[node].dictionary_encode())
    flat = table.drop_columns("l").to_pandas()
    feather.write_feather(table, folder / "t.arrow", compression="uncompressed", chunksize=50)
    feather.write_feather(words, folder / "w.arrow", compression="uncompressed", chunksize=50)
    feather.write_feather(words, folder / "z.feather", compression="zstd", chunksize=50)
    pq.write_table(words, folder / "t.parquet", row_group_size=50)
    flat.to_csv(folder / "t.csv", index=False)
    flat.to_csv(folder / "t.csv.gz", index=False)
    flat.to_csv(folder / "t.tsv", index=False, sep="\t")
    flat.to_json(folder / "t.jsonl", orient="records", lines=True)
    flat.to_excel(folder / "t.xlsx", index=False)
    return sorted(folder.glob("?.*"))


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Return bytes with a few others, moved, repeated or missing."""
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        k, how = rng.randrange(len(changed)), rng.randrange(12)
        if how == 0:
            del changed[k : k + rng.randrange(1, 9)]
        elif how == 1:
            end = k + rng.randrange(1, 40)
            changed[k:k] = changed[k:end]
        else:
            odd = [0, 255, 127, 128, rng.randrange(256), changed[k] ^ (1 << rng.randrange(8))]
            changed[k] = rng.choice(odd)
        if not changed:
            return b"\0"
    return bytes(changed[: rng.randrange(len(changed))] if rng.random() < 0.05 else changed)


def _targets(folder: Path) -> Iterator[tuple[Path, Callable[[Path], object]]]:
    """Yield files, and what reads them."""
    for path in write_tables(folder):
        yield path, lambda p: robustbn.read_table(p, NETWORK, on_unknown="missing", keep=("c",))
    for kind in NETWORK_KINDS:
        path = folder / f"net.{kind}"
        robustbn.write_network(NETWORK, path, numbered=kind == "uai")
        yield path, lambda p: robustbn.read_network(p)


def run(n: int, seed: int) -> int:
    """Read `n` changed files; return how many gave another error than ours."""
    n_wrong = 0
    with tempfile.TemporaryDirectory() as scratch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        targets = [(p, p.read_bytes(), read) for p, read in _targets(Path(scratch))]
        for k in range(n):
            rng = random.Random(f"{seed} {k}")  # noqa: S311
            path, data, read = rng.choice(targets)
            path.write_bytes(mutate(data, rng))
            try:
                read(path)
            except RobustBNError:
                continue
            except Exception as error:
                n_wrong += 1
                print(f"{path.name} {seed} {k}: {type(error).__name__}: {str(error)[:200]}")
    return n_wrong
