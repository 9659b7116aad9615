"""Data frames: those of pandas and polars as sources, results as frames of the caller's kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from robustbn._core.protocols import Column
from robustbn._tables.sources import BLOCK_ROWS, Source, UnreadableError
from robustbn._tables.values import as_objects


def build_frame(columns: Mapping[str, Any], kind: str) -> Any:
    """Return columns as a frame: of pandas, polars or pyarrow if that is what the caller has.

    A caller who came with an array or a file gets what is installed, in this order.
    """
    import narwhals as nw

    if kind not in ("pandas", "polars", "pyarrow"):
        kind = next(k for k in ("pandas", "polars", "pyarrow") if find_spec(k))
    backend: Any = kind
    return nw.from_dict(dict(columns), backend=backend).to_native()


# --- pandas: categories keep their codes, text goes through Arrow, numbers are not copied ---------


def open_pandas(frame: Any) -> Source:
    """Return the source of a `pandas.DataFrame`."""
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
    is_text = kind in ("ArrowDtype", "StringDtype")  # or held by Arrow already
    if is_text or kind == "DatetimeTZDtype" or series.dtype.kind in "biuf":
        return _through_arrow(series)
    return Column(series.astype(object).to_numpy())


def _through_arrow(series: Any) -> Column:
    import pyarrow as pa

    from robustbn._tables.arrow import column_of
    from robustbn._tables.guards import join_chunks

    array = pa.array(series, from_pandas=True)
    if not isinstance(array, pa.ChunkedArray):
        array = pa.chunked_array([array])
    try:
        return column_of(join_chunks(array, str(series.name)))
    except (pa.ArrowException, UnicodeError) as error:
        raise UnreadableError(f"The frame cannot be read: {error}.") from None


# --- polars, through Arrow ------------------------------------------------------------------------


def open_polars(frame: Any) -> Source:
    """Return the source of a `polars.DataFrame`."""
    import pyarrow as pa

    from robustbn._tables.arrow import column_of, naming_table
    from robustbn._tables.guards import join_chunks

    names = tuple(frame.columns)

    def read(positions: Sequence[int]) -> Iterator[list[Column]]:
        wanted = [names[k] for k in positions]
        own = {n: frame[n] for n in wanted if type(frame[n].dtype).__name__ == "Object"}
        others = frame.select([name for name in wanted if name not in own])
        for start in range(0, frame.height, BLOCK_ROWS):
            stretch = {
                name: Column(as_objects(series.slice(start, BLOCK_ROWS).to_list()))
                for name, series in own.items()
            }
            table = pa.table(others.slice(start, BLOCK_ROWS)) if others.width else pa.table({})
            stretch |= {n: column_of(join_chunks(table[n], n)) for n in table.column_names}
            yield [stretch[name] for name in wanted]

    return naming_table(Source(names, len(names), frame.height, "polars", "The frame", read))
