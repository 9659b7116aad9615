"""Values as hours since 1970, or as numbers: what stretches of context are made of."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.protocols import Column
from robustbn._tables.encode import as_numbers
from robustbn._tables.encode.dates import day_of, find_orders

NEITHER = np.iinfo(np.int32).min  # the hour of what is no time
ISO_START = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d|$)")


def hours_of(values: Sequence[Any]) -> NDArray[np.int32]:
    """Return the hour of each value since 1970, NEITHER for what is no time."""
    return np.fromiter(map(_hour_of, values), np.int32, len(values))


def _hour_of(value: Any) -> int:
    """Return the hour of a time, or of text that starts with one; NEITHER for all else."""
    if isinstance(value, str):
        return hour_of_text(value.strip()[:13])
    if not isinstance(value, np.datetime64 | date):
        return NEITHER
    moment = value.replace(tzinfo=None) if isinstance(value, datetime) else value
    hour = int(np.array(moment, "M8[h]").astype(np.int64))
    return hour if abs(hour) < -NEITHER else NEITHER


def hour_of_text(start: str) -> int:
    """Return the hour of a text that starts like 2024-03-07 or 2024-03-07T12."""
    if not ISO_START.fullmatch(start):
        return NEITHER
    try:
        return int(np.datetime64(start.replace(" ", "T"), "h").astype(np.int64))
    except ValueError:  # a 31st of February
        return NEITHER


def days_of(values: Sequence[Any]) -> NDArray[np.datetime64] | None:
    """Return days in the forms that people write; None in any doubt."""
    if not values or not all(isinstance(value, str) for value in values):
        return None
    orders = find_orders(values)
    days = [day_of(value, order) for order in orders for value in values]
    if len(orders) != 1 or None in days:
        return None
    return np.array(days, "M8[D]")


def floats_of(values: Sequence[Any]) -> NDArray[np.float64]:
    """Return values as numbers; NaN for what is none, or a truth value."""
    objects = np.empty(len(values), object)
    objects[:] = [None if isinstance(v, bool | np.bool_) else v for v in values]
    return as_numbers(Column(objects))


def column_of_floats(column: Column) -> NDArray[np.float32]:
    """Return a column as numbers, quickly where every label is one; NaN for what is none."""
    if column.labels is not None:
        try:
            table = np.fromiter(map(float, column.labels), np.float64, len(column.labels))
        except (TypeError, ValueError):
            return narrow(as_numbers(column))
        column = Column(np.append(table, np.nan)[column.values], None, column.is_missing)
    return narrow(as_numbers(column))


def narrow(numbers: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return numbers in 4 bytes each; those that are too large are no numbers then."""
    with np.errstate(over="ignore"):
        return numbers.astype(np.float32)
