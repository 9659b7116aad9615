"""Where rows are worked on: in memory, in a stream, or on a Dask cluster."""

from __future__ import annotations

import os
from typing import Any

from robustbn._core.allocate import physical_bytes
from robustbn._core.config import Streaming
from robustbn._rows.stream.find import is_relation
from robustbn.exceptions import SettingError
from robustbn.network import BayesianNetwork

PLACES = ("memory", "stream", "dask")
HELD_SHARE = 0.25  # codes of rows that take more than this of the memory are not held
COMPRESSION = 16  # a compressed text file may hold this many times as much text


def find_place(
    table: Any, network: BayesianNetwork | None, wanted: str | None, streaming: Streaming
) -> str:
    """Return one of `PLACES`: the one that is wanted, or where the table belongs by its size."""
    if wanted not in (None, *PLACES):
        raise SettingError(f"Unknown place {wanted!r}; choose one of {', '.join(PLACES)}.")
    if wanted == "dask" or is_on_dask(table):
        return "dask"
    if wanted == "stream" or streaming != Streaming():
        return "stream"
    if wanted == "memory" or network is None or not _is_elsewhere(table):
        return "memory"
    return "stream" if is_large(table, network) else "memory"


def is_on_dask(table: Any) -> bool:
    """Whether a table is a Dask collection; imports nothing."""
    return type(table).__module__.partition(".")[0] in ("dask", "dask_expr")


def _is_elsewhere(table: Any) -> bool:
    """Whether a table lies in files or a database."""
    is_named = isinstance(table, str | os.PathLike) or callable(table)
    return is_named or hasattr(table, "count_rows") or "duckdb" in type(table).__module__


def is_large(table: Any, network: BayesianNetwork) -> bool:
    """Whether the codes of a table in files or a database would take much of the memory."""
    limit = HELD_SHARE * physical_bytes()
    if isinstance(table, str | os.PathLike):
        from robustbn._core.file_names import COMPRESSIONS
        from robustbn._tables.files import find_files, is_packed, open_file
        from robustbn._tables.here import find_here

        table = find_here(table)
        files = find_files(table)
        if not is_packed(files):  # text: a value takes two bytes or more
            sizes = [
                f.stat().st_size * (COMPRESSION if f.suffix in COMPRESSIONS else 1) for f in files
            ]
            return sum(sizes) / 2 > limit
        source = open_file(str(table), sep=None, encoding="utf-8")
        return (source.n_rows or 0) * network.n_nodes > limit
    if type(table).__module__.startswith("pyarrow") and hasattr(table, "count_rows"):
        return bool(table.count_rows() * network.n_nodes > limit)
    if is_relation(table):
        return bool(table.aggregate("count(*)").fetchall()[0][0] * network.n_nodes > limit)
    return callable(table)
