"""Whatever a caller holds or names, as a source of columns in stretches of rows."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robustbn._core.protocols import Column
from robustbn._tables.values import as_objects
from robustbn.exceptions import DataError

BLOCK_ROWS = 2**16


class UnreadableError(DataError):
    """A file is damaged, or is not what its name says."""


@dataclass(frozen=True, eq=False)
class Source:
    """A table somewhere.

    Parameters
    ----------
    names : of its columns; None for an array, whose columns follow the nodes.
    n_columns, n_rows : its size; `n_rows` is None when only reading tells.
    kind : what its owner works with: "pandas", "polars", "pyarrow", "numpy".
    where : what to call it in messages.
    stretches : yields stretches of rows in order, each a list of the columns at given positions;
        what `read` yields is checked, too.
    is_text : whether a missing value is a word.
    is_codes : whether its numbers are codes: true of arrays of numbers.
    is_once : whether it is gone once it is read.
    may_be_labels : whether its numbers, taken for codes, might have been meant as states.
    plain : positions of the columns that hold numbers, words or times, as far as that is known
        before they are read; None if it is not.
    file_rows : returns, of several files, the name of each and how many rows it has, once they
        have been read.
    damaged : columns that are there and cannot be read, and why; they are not among `names`.
    first_row : number of its first row, for messages, where it is a part of a file.
    headers : of several files, the columns of each, where they are not all the same; those that a
        file lacks are missing from its rows.
    """

    names: tuple[str, ...] | None
    n_columns: int
    n_rows: int | None
    kind: str
    where: str
    stretches: Callable[[Sequence[int]], Iterator[list[Column]]]
    is_text: bool = False
    is_codes: bool = False
    is_once: bool = False
    may_be_labels: bool = False
    plain: frozenset[int] | None = None
    file_rows: Callable[[], Sequence[tuple[str, int]]] | None = None
    damaged: Mapping[str, str] = field(default_factory=dict)
    first_row: int = 0
    headers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def can_be_tried(self) -> bool:
        """Whether its first rows can be looked at, at little cost, before all are read."""
        return not self.is_once and (self.n_rows is not None or self.kind == "file")

    def read(self, positions: Sequence[int]) -> Iterator[list[Column]]:
        """Yield stretches of rows in order, each a list of the columns at given positions.

        A row that points at a category that is not there is an error: it would be another state.
        """
        n_read = 0
        for columns in self.stretches(positions):
            for k, column in zip(positions, columns, strict=True):
                if column.labels is not None:
                    self._check_places(column, k, self.first_row + n_read)
            n_read += len(columns[0].values) if columns else 0
            yield columns

    def _check_places(self, column: Column, position: int, start: int) -> None:
        """Refuse places outside of a column's labels, except -1; O(n)."""
        places, n_labels = column.values, len(column.labels or ())
        if not len(places) or (places.min() >= -1 and places.max() < n_labels):
            return
        is_wrong = (places < -1) | (places >= n_labels)
        if column.is_missing is not None:
            is_wrong &= ~column.is_missing
        if is_wrong.any():
            row = int(is_wrong.argmax())
            named = f"column {position}"
            if self.names is not None:
                named = f"column {self.names[position]!r}"
            raise UnreadableError(
                f"{self.where}, {named}, row {start + row}: category number {int(places[row])} is "
                f"not there; there are {n_labels}, numbered from 0. The column is damaged: make "
                "its categories anew from its values."
            )


def open_table(
    table: Any,
    *,
    sep: str | None = None,
    encoding: str = "utf-8",
    connection: Any = None,
) -> Source:
    """Return the source behind a frame, an array, a path, a query or an iterator of batches.

    Parameters
    ----------
    table : pandas, polars or pyarrow; a pyarrow dataset or reader; a NumPy or SciPy array; a
        DuckDB relation; anything with `__arrow_c_stream__` or that narwhals knows; a mapping of
        names to columns; a list of mappings; a path; with `connection`, an SQL query.
    sep, encoding : of a text file.
    connection : of a database, DuckDB's or any other with cursors.
    """
    if connection is not None:
        return _open_query(table, connection)
    if isinstance(table, str | os.PathLike):
        from robustbn._tables.files import open_file

        return open_file(os.fspath(table), sep=sep, encoding=encoding)
    if isinstance(table, np.ndarray):
        return _open_array(table)
    if type(table).__module__.startswith("narwhals"):
        table = table.to_native()
    if _is_frame_of("pandas", table):
        from robustbn._tables.frames import open_pandas

        return open_pandas(table)
    if _is_frame_of("polars", table):
        from robustbn._tables.frames import open_polars

        return open_polars(table)
    module = type(table).__module__.partition(".")[0]
    if type(table).__name__ == "Series":
        raise DataError(
            f"A {module} Series is one column, and a table has named columns: pass "
            "series.to_frame()."
        )
    if module == "scipy" and hasattr(table, "tocsr"):
        return _open_sparse(table)
    if module in ("dask", "dask_expr"):
        raise DataError(
            "A Dask collection lives on a cluster, and is not gathered here without being asked. "
            "Call .compute() if it fits in memory."
        )
    if isinstance(table, Mapping) or _is_list_of_mappings(table):
        return _open_python(table)
    if _is_arrow_or_frame(table, module):
        from robustbn._tables.arrow import open_arrow

        return open_arrow(table)
    return _open_array(_to_array(table))


def _is_frame_of(library: str, table: Any) -> bool:
    """Whether a table is a data frame of a library, or a subclass of one; imports nothing."""
    frame = getattr(sys.modules.get(library), "DataFrame", None)
    return frame is not None and isinstance(table, frame)


def _is_list_of_mappings(table: Any) -> bool:
    return isinstance(table, list | tuple) and bool(table) and isinstance(table[0], Mapping)


def _is_arrow_or_frame(table: Any, module: str) -> bool:
    if module in ("pyarrow", "polars", "duckdb") or hasattr(table, "__arrow_c_stream__"):
        return True
    if hasattr(table, "__array__") or isinstance(table, list | tuple):
        return False
    if "narwhals" not in sys.modules and not hasattr(table, "columns"):
        return False
    import narwhals as nw

    return nw.from_native(table, pass_through=True) is not table


def _to_array(table: Any) -> np.ndarray[Any, Any]:
    if isinstance(table, list | tuple) and not _is_numeric(table):
        rows = [row if isinstance(row, list | tuple | np.ndarray) else [row] for row in table]
        lengths = {len(row) for row in rows}
        if len(lengths) > 1:
            raise DataError(
                f"The rows are not all equally long: they have {min(lengths)} to {max(lengths)} "
                "values."
            )
        array = np.empty((len(rows), lengths.pop()), object)
        array[:] = [list(row) for row in rows]
        return array
    if not (isinstance(table, list | tuple) or hasattr(table, "__array__")):
        raise DataError(
            f"A table is a data frame, an array, a path, a mapping of columns or a query with its "
            f"connection; found {type(table).__name__}."
        )
    try:
        return np.asarray(table)
    except ValueError as error:
        raise DataError(f"{type(table).__name__} cannot be read as a table: {error}.") from None


def _is_numeric(rows: Sequence[Any]) -> bool:
    """Whether nested lists hold numbers only, so that they are codes."""
    try:
        return bool(np.asarray(rows).dtype.kind in "biuf")
    except ValueError:
        return False


def _open_array(array: np.ndarray[Any, Any]) -> Source:
    if array.dtype.names and array.ndim == 1:
        names = tuple(array.dtype.names)
        fields = [_column_of(array[name]) for name in names]
        return Source(names, len(names), len(array), "numpy", "The array", _blocks_of(fields))
    if array.ndim != 2:
        raise DataError(
            "Rows must be a table of two dimensions, one column a node; found "
            f"{array.ndim} dimension(s), shape {array.shape}. Reshape your data: "
            "array.reshape(-1, 1) for one column, array.reshape(1, -1) for one row."
        )
    if not array.shape[1]:
        raise DataError(
            f"The array has 0 feature(s) (shape={array.shape}) while a minimum of 1 is required: "
            "a column for each node."
        )
    if array.dtype.kind == "c":
        raise DataError(f"Complex data not supported: the array has dtype {array.dtype}.")
    columns = [_column_of(array[:, k]) for k in range(array.shape[1])]
    is_codes = array.dtype.kind in "biuf"
    return Source(
        None,
        array.shape[1],
        array.shape[0],
        "numpy",
        "The array",
        _blocks_of(columns, len(array)),
        is_codes=is_codes,
        may_be_labels=is_codes and array.dtype != np.uint8,
    )


def _column_of(values: np.ndarray[Any, Any]) -> Column:
    """Return a column of an array, which may be masked, or a `numpy.matrix`."""
    if isinstance(values, np.ma.MaskedArray):
        return Column(values.data, None, np.ma.getmaskarray(values))
    return Column(np.asarray(values).reshape(-1))


def _open_sparse(matrix: Any) -> Source:
    rows = matrix.tocsr()

    def read(positions: Sequence[int]) -> Iterator[list[Column]]:
        for start in range(0, rows.shape[0], BLOCK_ROWS):
            block = rows[start : start + BLOCK_ROWS].toarray()
            yield [Column(block[:, k]) for k in positions]

    n_rows, n_columns = rows.shape
    where, may_be_labels = "The sparse array", rows.dtype != np.uint8
    return Source(
        None, n_columns, n_rows, "numpy", where, read, is_codes=True, may_be_labels=may_be_labels
    )


def _open_python(table: Any) -> Source:
    """Return the source of a mapping of names to columns, or of a list of mappings."""
    if isinstance(table, list | tuple):
        keys = {str(name): name for row in table for name in row}
        names = tuple(keys)
        data = {name: [row.get(key) for row in table] for name, key in keys.items()}
    else:
        data = {str(name): values for name, values in table.items()}
        names = tuple(data)
    columns = [_column_of_values(name, values) for name, values in data.items()]
    lengths = {name: len(c.values) for name, c in zip(names, columns, strict=True)}
    if len(set(lengths.values())) > 1:
        raise DataError(f"The columns are not equally long: {lengths}.")
    n_rows = next(iter(lengths.values()), 0)
    read = _blocks_of(columns, n_rows)
    return Source(names, len(names), n_rows, "python", "The mapping", read)


def _column_of_values(name: str, values: Any) -> Column:
    if isinstance(values, np.ndarray):
        return _column_of(values)
    if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
        raise DataError(
            f"Column {name!r} of the mapping must be a list or an array; found "
            f"{type(values).__name__}."
        )
    return Column(as_objects(list(values)))


def _blocks_of(
    columns: Sequence[Column], n_rows: int | None = None
) -> Callable[[Sequence[int]], Iterator[list[Column]]]:
    """Return a reader of whole columns that hands them out in stretches, without a copy."""
    n = len(columns[0].values) if n_rows is None else n_rows

    def read(positions: Sequence[int]) -> Iterator[list[Column]]:
        for start in range(0, n, BLOCK_ROWS):
            yield [columns[k][start : start + BLOCK_ROWS] for k in positions]

    return read


# --- queries: DuckDB by Arrow, any other database by its cursor -----------------------------------


def _open_query(query: Any, connection: Any) -> Source:
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
            yield [Column(as_objects(columns[k])) for k in positions]
        cursor.close()

    return Source(names, len(names), None, "python", "The query", read, is_once=True)
