"""Queries: DuckDB by Arrow, any other database by its cursor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from robustbn._core.protocols import Column
from robustbn._tables.sources import BLOCK_ROWS, Source
from robustbn.exceptions import DataError


def open_query(query: Any, connection: Any) -> Source:
    """Return the source of an SQL query on a connection."""
    if not isinstance(query, str):
        raise DataError(
            f"With connection=..., the table is an SQL query; found {type(query).__name__}."
        )
    if type(connection).__module__.partition(".")[0] in ("duckdb", "_duckdb"):
        from robustbn._tables.arrow import open_arrow

        try:
            relation = connection.sql(query)
        except Exception as error:
            raise DataError(f"The query fails: {error}") from error
        if relation is None:
            raise DataError(f"The query returns no table: {query!r}.")
        return open_arrow(relation)
    return _open_cursor(query, connection)


def _open_cursor(query: str, connection: Any) -> Source:
    """Return the source of a query on any database with cursors (PEP 249)."""
    if not hasattr(connection, "cursor"):
        raise DataError(
            "connection is a DuckDB connection, or one with a cursor() as databases have; found "
            f"{type(connection).__name__}."
        )
    cursor = connection.cursor()
    try:
        cursor.execute(query)
    except Exception as error:  # each database has errors of its own
        raise DataError(f"The query fails: {error}") from error
    if not cursor.description:
        raise DataError(f"The query returns no table: {query!r}.")
    names = tuple(str(column[0]) for column in cursor.description)

    def read(positions: Sequence[int]) -> Iterator[list[Column]]:
        while rows := cursor.fetchmany(BLOCK_ROWS):
            columns = list(zip(*rows, strict=True))
            yield [Column(_objects(columns[k])) for k in positions]
        cursor.close()

    return Source(names, len(names), None, "python", "The query", read, is_once=True)


def _objects(values: Sequence[Any]) -> np.ndarray[Any, Any]:
    array = np.empty(len(values), object)
    array[:] = values
    return array
