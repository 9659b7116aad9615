"""Rows of consecutive visits, from a table with a row a visit: what was, beside what is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.calls import naming_the_nearest
from robustbn.exceptions import DataError, SettingError

MOST_LAGS = 100  # visits that are looked back on: more columns than any network has use for


@naming_the_nearest
def unroll(
    table: Any, *, id: str, time: str, lags: int = 1, columns: Sequence[str] | None = None
) -> Any:
    """Return rows of consecutive visits: `x` is the value of a visit, `x@-1` the one before.

    Visits with fewer than `lags` visits before them get no row. The frame is of the same library as
    the table; a dict of columns becomes an Arrow table. Rows stay in the order of the table.

    Parameters
    ----------
    table : frame or dict
        A pandas, polars or Arrow frame, or a dict of columns, with one row per visit. The visits of
        each `id` must be in order of time; visits of others may come between them.
    id : str
        The column that says whose visit it is.
    time : str
        The column that says when the visit was. Text is compared as text, which is right for dates
        such as 2024-07-03.
    lags : int, default=1
        How many earlier visits to add to each row.
    columns : list of str or None, default=None
        The columns whose earlier values are added; by default all except `id` and `time`.

    Examples
    --------
    >>> import pandas as pd
    >>> import robustbn
    >>> visits = pd.DataFrame({"who": [1, 1, 1, 2, 2], "day": [1, 2, 5, 1, 2], "x": list("abcde")})
    >>> robustbn.unroll(visits, id="who", time="day")
       who  day  x x@-1
    0    1    2  b    a
    1    1    5  c    b
    2    2    2  e    d
    """
    import narwhals as nw
    import pyarrow as pa

    if isinstance(table, Mapping):
        table = pa.table(dict(table))
    try:
        frame = nw.from_native(table, eager_only=True)
    except TypeError:
        raise DataError(
            f"unroll takes a frame of pandas, polars or Arrow, or a mapping of columns; found "
            f"{type(table).__name__}. Read a file first, for example with pandas.read_csv."
        ) from None
    chosen = _check(frame.columns, id, time, lags, columns)
    before, rows = _find_before(frame[id].to_arrow(), frame[time].to_arrow(), lags, id, time)
    parts = [frame[rows.tolist()]]
    for lag in range(1, lags + 1):
        there = frame.select(chosen)[before[lag - 1].tolist()]
        parts.append(there.rename({name: f"{name}@-{lag}" for name in chosen}))
    parts = [nw.maybe_reset_index(part) for part in parts]
    return nw.concat(parts, how="horizontal").to_native()


def _check(
    names: Sequence[str], id: str, time: str, lags: Any, columns: Sequence[str] | None
) -> list[str]:
    """Return the columns to look back on; refuse what is wrong, by name."""
    is_whole = isinstance(lags, Integral) and not isinstance(lags, bool)
    if not (is_whole and 1 <= lags <= MOST_LAGS):
        raise SettingError(f"lags is a whole number from 1 to {MOST_LAGS}; found {lags!r}.")
    if isinstance(columns, str):
        columns = [columns]
    chosen = [n for n in names if n not in (id, time)] if columns is None else list(columns)
    for name in (id, time, *chosen):
        if name not in names:
            known = ", ".join(map(repr, names[:20]))
            raise DataError(f"There is no column {name!r}; the table has {known}.")
    if id == time:
        raise DataError(
            f"id and time are both {id!r}: id says whose visit it is, time says when it was."
        )
    for name in chosen:
        for lag in range(1, lags + 1):
            if f"{name}@-{lag}" in names:
                raise DataError(f"There is a column {name}@-{lag!r} already: rename it first.")
    return chosen


def _find_before(
    ids: Any, times: Any, lags: int, id: str, time: str
) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
    """Return the rows of the visits 1, 2, ... before, and the rows that have so many."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ids, times = (
        each.combine_chunks() if isinstance(each, pa.ChunkedArray) else each
        for each in (ids, times)
    )
    for name, column in ((id, ids), (time, times)):
        missing = pc.is_null(column, nan_is_null=True).to_numpy(zero_copy_only=False)
        if missing.any():
            raise DataError(
                f"Column {name!r} is empty in row {int(missing.argmax())}: every visit needs an "
                "id and a time."
            )
    codes = ids.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    order = np.argsort(codes, kind="stable")
    is_next = np.append(False, codes[order][1:] == codes[order][:-1])
    here, there = order[is_next], order[np.flatnonzero(is_next) - 1]
    later = pc.greater(times.take(here), times.take(there)).to_numpy(zero_copy_only=False)
    if not later.all():
        k = int(np.flatnonzero(~later)[here[~later].argmin()])
        first, again = times[int(there[k])].as_py(), times[int(here[k])].as_py()
        what = "twice at" if first == again else f"after {first} at"
        remedy = "keep one of them" if first == again else f"sort the table by {time!r}"
        raise DataError(
            f"Row {int(here[k])}: {id} = {ids[int(here[k])].as_py()} was seen {what} {again}. "
            f"Visits must be in order of time, one at a time: {remedy} first."
        )
    previous = np.full(len(codes), -1, np.int64)
    previous[here] = there
    before, at = [], np.arange(len(codes))
    for _ in range(lags):
        at = np.where(at >= 0, previous[at], -1)
        before.append(at)
    rows = np.flatnonzero(at >= 0)
    if not len(rows):
        raise DataError(f"No {id} has {lags + 1} visits: there is nothing to look back on.")
    return [each[rows] for each in before], rows
