"""Moments of a time zone: held as numbers, turned into Python's own where they are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from robustbn._core.protocols import Column

if TYPE_CHECKING:
    import pyarrow as pa


def moments_of(column: Column) -> pa.Array:
    """Return moments of a time zone as Arrow holds them."""
    import pyarrow as pa

    unit = np.datetime_data(column.values.dtype)[0]
    numbers = pa.array(column.values.view(np.int64), mask=column.is_missing)
    return numbers.view(pa.timestamp(unit, column.zone))


def with_moments(column: Column) -> Column:
    """Return a column with moments of a time zone as objects; any other as it is."""
    if column.zone is None:
        return column
    objects = np.empty(len(column.values), object)
    objects[:] = moments_of(column).to_pylist()
    return Column(objects)
