"""Whatever a caller holds or names, as a source of columns in stretches of rows."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from robustbn._core.numbers import count
from robustbn._core.protocols import Column
from robustbn._tables.values import as_objects
from robustbn.exceptions import DataError, RobustBNError

BLOCK_ROWS = 2**16
FileRows = Callable[[], Sequence[tuple[str, int]]]


class UnreadableError(DataError):
    """A file is damaged, or is not what its name says."""


@dataclass(frozen=True, eq=False)
class Source:
    """A table somewhere."""

    # of its columns; None for an array, whose columns follow the nodes
    names: tuple[str, ...] | None
    # n_columns, n_rows: its size; `n_rows` is None when only reading tells
    n_columns: int
    n_rows: int | None
    kind: str  # what its owner works with: "pandas", "polars", "pyarrow", "numpy"
    where: str  # what to call it in messages
    # yields stretches of rows in order, each a list of the columns at given positions; what `read`
    # yields is checked, too
    stretches: Callable[[Sequence[int]], Iterator[list[Column]]]
    is_text: bool = False  # whether a missing value is a word
    is_codes: bool = False  # whether its numbers are codes: true of arrays of numbers
    is_once: bool = False  # whether it is gone once it is read
    # whether its numbers, taken for codes, might have been meant as states
    may_be_labels: bool = False
    # positions of the columns that hold numbers, words or times, as far as that is known before
    # they are read; None if it is not
    plain: frozenset[int] | None = None
    # returns, of several files, the name of each and how many rows it has, once they have been read
    file_rows: FileRows | None = None
    # columns that are there and cannot be read, and why; they are not among `names`
    damaged: Mapping[str, str] = field(default_factory=dict)
    first_row: int = 0  # number of its first row, for messages, where it is a part of a file
    # of several files, the columns of each, where they are not all the same; those that a file
    # lacks are missing from its rows
    headers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def can_be_tried(self) -> bool:
        """Whether its first rows can be looked at, at little cost, before all are read."""
        return not self.is_once and (self.n_rows is not None or self.kind == "file")

    def read(self, positions: Sequence[int]) -> Iterator[list[Column]]:
        """Yield stretches of rows in order, each a list of the columns at given positions."""
        n_read = 0
        try:
            for columns in self.stretches(positions):
                for k, column in zip(positions, columns, strict=True):
                    if column.labels is not None:
                        self._check_places(column, k, self.first_row + n_read)
                n_read += len(columns[0].values) if columns else 0
                yield columns
        except RobustBNError:
            raise
        except Exception as error:
            from robustbn._tables.files import UNREADABLE, unreadable  # which need Arrow

            if not isinstance(error, UNREADABLE):
                raise
            raise unreadable(self.where, error, is_file=self.kind == "file") from None

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
            named = repr(self.names[position]) if self.names is not None else position
            raise UnreadableError(
                f"{self.where}, column {named}, row {start + row}: category number "
                f"{int(places[row])} is not there; there are {n_labels}, numbered from 0. The "
                "column is damaged: make its categories anew from its values."
            )


def open_table(
    table: Any, *, sep: str | None = None, encoding: str = "utf-8", connection: Any = None
) -> Source:
    """Return the source behind a frame, an array, a path, a query or an iterator of batches."""
    if connection is not None:
        return _open_query(table, connection)
    if isinstance(table, str | os.PathLike):
        from robustbn._tables.files import open_file

        return open_file(os.fspath(table), sep=sep, encoding=encoding)
    if isinstance(table, np.ndarray):
        return _open_array(table)
    if type(table).__module__.startswith("narwhals"):
        table = table.to_native()
    pandas = getattr(sys.modules.get("pandas"), "DataFrame", None)
    if pandas is not None and isinstance(table, pandas):
        return _open_pandas(table)
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
            "A Dask collection is not loaded into memory automatically. Call .compute() if it "
            "fits in memory."
        )
    is_list = isinstance(table, list | tuple) and bool(table)
    if isinstance(table, Mapping) or (is_list and isinstance(table[0], Mapping)):
        return _open_python(table)
    if _is_arrow_or_frame(table, module):
        from robustbn._tables.arrow import open_arrow

        return open_arrow(table)
    return _open_array(_to_array(table))


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
    """Return nested lists, or what turns itself into an array; numbers alone are codes."""
    is_list, array = isinstance(table, list | tuple), None
    if not (is_list or hasattr(table, "__array__")):
        raise DataError(
            f"A table is a data frame, an array, a path, a mapping of columns or a query with its "
            f"connection; found {type(table).__name__}."
        )
    try:
        array = np.asarray(table)
    except ValueError as error:
        if not is_list:
            raise DataError(f"{type(table).__name__} cannot be read as a table: {error}.") from None
    if array is not None and (not is_list or array.dtype.kind in "biuf"):
        return array
    rows = [list(r) if isinstance(r, list | tuple | np.ndarray) else [r] for r in table]
    lengths = {len(row) for row in rows}
    if len(lengths) > 1:
        raise DataError(
            f"The rows are not all equally long: they have {min(lengths)} to {max(lengths)} values."
        )
    array = np.empty((len(rows), lengths.pop()), object)
    array[:] = rows
    return array


def _open_array(array: np.ndarray[Any, Any]) -> Source:
    if array.dtype.names and array.ndim == 1:
        names = tuple(array.dtype.names)
        read = _blocks_of([_column_of(array[name]) for name in names], len(array))
        return Source(names, len(names), len(array), "numpy", "The array", read)
    if array.ndim != 2:
        raise DataError(
            "Rows must be a table of two dimensions, one column per node; found "
            f"{count(array.ndim, 'dimension')}, shape {array.shape}. Reshape your data: "
            "array.reshape(-1, 1) for one column, array.reshape(1, -1) for one row."
        )
    if not array.shape[1]:
        raise DataError(
            f"The array has 0 feature(s) (shape={array.shape}) while a minimum of 1 is required: "
            "a column for each node."
        )
    if array.dtype.kind == "c":
        raise DataError(f"Complex data not supported: the array has dtype {array.dtype}.")
    n_rows, n_columns = array.shape
    read = _blocks_of([_column_of(array[:, k]) for k in range(n_columns)], n_rows)
    source = Source(None, n_columns, n_rows, "numpy", "The array", read)
    is_codes = array.dtype.kind in "biuf"
    return replace(source, is_codes=is_codes, may_be_labels=is_codes and array.dtype != np.uint8)


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
    source = Source(None, n_columns, n_rows, "numpy", "The sparse array", read)
    return replace(source, is_codes=True, may_be_labels=rows.dtype != np.uint8)


def _open_python(table: Any) -> Source:
    """Return the source of a mapping of names to columns, or of a list of mappings."""
    if isinstance(table, list | tuple):
        keys = {str(name): name for row in table for name in row}
        data = {name: [row.get(key) for row in table] for name, key in keys.items()}
    else:
        data = {str(name): values for name, values in table.items()}
    columns = {name: _column_of_values(name, values) for name, values in data.items()}
    lengths = {name: len(column.values) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"The columns are not equally long: {lengths}.")
    n_rows = next(iter(lengths.values()), 0)
    read = _blocks_of(list(columns.values()), n_rows)
    return Source(tuple(columns), len(columns), n_rows, "python", "The mapping", read)


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
    columns: Sequence[Column], n_rows: int
) -> Callable[[Sequence[int]], Iterator[list[Column]]]:
    """Return a reader of whole columns that hands them out in stretches, without a copy."""

    def read(positions: Sequence[int]) -> Iterator[list[Column]]:
        for start in range(0, n_rows, BLOCK_ROWS):
            yield [columns[k][start : start + BLOCK_ROWS] for k in positions]

    return read


# --- data frames ----------------------------------------------------------------------------------


def build_frame(columns: Mapping[str, Any], kind: str) -> Any:
    """Return columns as a frame: of pandas, polars or pyarrow if that is what the caller has."""
    import narwhals as nw

    if kind not in ("pandas", "polars", "pyarrow"):
        kind = next(k for k in ("pandas", "polars", "pyarrow") if find_spec(k))
    backend: Any = kind
    return nw.from_dict(dict(columns), backend=backend).to_native()


def _open_pandas(frame: Any) -> Source:
    """Return the source of a pandas frame: categories keep their codes, text goes through Arrow."""
    names = tuple(str(name) for name in frame.columns)

    def read(positions: Sequence[int]) -> Iterator[list[Column]]:
        series = [frame.iloc[:, k] for k in positions]
        whole = [_column_of_series(s) if _is_at_hand(s) else None for s in series]
        for start in range(0, len(frame), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            yield [
                _column_of_series(s.iloc[rows]) if column is None else column[rows]
                for s, column in zip(series, whole, strict=True)
            ]

    return Source(names, len(names), len(frame), "pandas", "The frame", read)


def _is_at_hand(series: Any) -> bool:
    """Whether a series is handed out without a copy: numbers, categories, objects, times."""
    return isinstance(series.dtype, np.dtype) or type(series.dtype).__name__ == "CategoricalDtype"


def _column_of_series(series: Any) -> Column:
    kind = type(series.dtype).__name__
    if kind == "CategoricalDtype":
        codes, labels = series.array.codes, series.array.categories.tolist()
        return Column(codes, labels, is_ordered=bool(series.dtype.ordered))
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "biufOM":
        return Column(series.to_numpy())
    if kind == "SparseDtype":
        return Column(series.sparse.to_dense().to_numpy())
    is_in_arrow = kind in ("ArrowDtype", "StringDtype", "DatetimeTZDtype")
    if is_in_arrow or series.dtype.kind in "biuf":
        from robustbn._tables.arrow import column_of_series

        return column_of_series(series)
    return Column(series.astype(object).to_numpy())


# --- several files --------------------------------------------------------------------------------


def chain_files(
    files: Sequence[Path], read_file: Callable[[int, Sequence[int]], Iterator[list[Column]]]
) -> tuple[Callable[[Sequence[int]], Iterator[list[Column]]], FileRows | None]:
    """Return what reads files one after another, and what tells the rows of each of several."""
    n_rows: dict[str, int] = {}

    def read(positions: Sequence[int]) -> Iterator[list[Column]]:
        n_rows.clear()
        for k, file in enumerate(map(str, files)):
            n_rows[file] = 0
            for columns in read_file(k, positions):
                n_rows[file] += len(columns[0].values)
                yield columns

    return read, (lambda: list(n_rows.items())) if len(files) > 1 else None


# --- queries: DuckDB by Arrow, any other database by its cursor (PEP 249) -------------------------


def _open_query(query: Any, connection: Any) -> Source:
    if not isinstance(query, str):
        raise DataError(
            f"With connection=..., the table is an SQL query; found {type(query).__name__}."
        )
    is_duckdb = type(connection).__module__.partition(".")[0] in ("duckdb", "_duckdb")
    if not is_duckdb and not hasattr(connection, "cursor"):
        raise DataError(
            "connection is a DuckDB connection, or one with a cursor() as databases have; found "
            f"{type(connection).__name__}."
        )
    try:
        cursor = connection.sql(query) if is_duckdb else connection.cursor()
        if not is_duckdb:
            cursor.execute(query)
    except Exception as error:  # each database has errors of its own
        raise DataError(f"The query fails: {error}") from error
    if cursor is None or not cursor.description:
        raise DataError(f"The query returns no table: {query!r}.")
    if is_duckdb:
        from robustbn._tables.arrow import open_arrow

        return open_arrow(cursor)
    names = tuple(str(column[0]) for column in cursor.description)

    def read(positions: Sequence[int]) -> Iterator[list[Column]]:
        while rows := cursor.fetchmany(BLOCK_ROWS):
            columns = list(zip(*rows, strict=True))
            yield [Column(as_objects(columns[k])) for k in positions]
        cursor.close()

    return Source(names, len(names), None, "python", "The query", read, is_once=True)
