"""What a column holds: its distinct values, those that are missing, its numbers and moments."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.protocols import Column
from robustbn._tables.encode.labels import WORDS_FOR_MISSING, StateFinder, is_missing
from robustbn._tables.encode.written import number_in

if TYPE_CHECKING:
    import pyarrow as pa


def find_distinct(column: Column) -> tuple[Sequence[Any], NDArray[np.integer[Any]]]:
    """Return values, and the place of each row among them: -1 where one is said to be missing.

    Not all of them need occur; None and NaN may be among them. O(n).

    Raises
    ------
    TypeError
        If a value is a list, say, that is equal to none.
    """
    values, found = column.values, column.labels
    if found is not None:
        places = values if values.dtype.kind == "u" else np.maximum(values, -1)
    elif values.dtype.kind in "biufmM":
        distinct, places = np.unique(values, return_inverse=True)
        if distinct.dtype.kind in "mM" and np.datetime_data(distinct.dtype)[0] in ("ns", "ps"):
            distinct = distinct.astype(f"{distinct.dtype.kind}8[us]")  # finer ones become numbers
        found = distinct.tolist()
    else:
        numbers: dict[Hashable, int] = {}
        listed = values.tolist()
        each = (numbers.setdefault(value, len(numbers)) for value in listed)
        places = np.fromiter(each, np.int64, len(listed))
        found = list(numbers)
    if column.is_missing is not None:
        places = np.where(column.is_missing, -1, places.astype(np.int64))
    return found, places


def count_values(column: Column) -> list[tuple[Any, int]]:
    """Return the values that occur in a column, with the rows of each; None and NaN may be some.

    What is equal to nothing, such as a list, is counted by its text.
    """
    if column.labels is not None:
        places = column.values if column.is_missing is None else column.values[~column.is_missing]
        rows = np.bincount(places[places >= 0], minlength=len(column.labels)).tolist()
        return [(value, n) for value, n in zip(column.labels, rows, strict=True) if n]
    try:
        found, places = find_distinct(column)
    except TypeError:
        texts = [v if isinstance(v, Hashable) else str(v) for v in column.values.tolist()]
        found, places = find_distinct(replace(column, values=as_objects(texts)))
    rows = np.bincount(places[places >= 0], minlength=len(found)).tolist()
    return [(value, n) for value, n in zip(found, rows, strict=True) if n]


def as_objects(values: Sequence[Any]) -> NDArray[Any]:
    """Return values as an array of objects, whatever they are."""
    objects = np.empty(len(values), object)
    objects[:] = values
    return objects


def count_missing(column: Column, is_text: bool = False) -> int:
    """Return how many values of a column are missing; O(n).

    Parameters
    ----------
    is_text : whether values come from a text file: words for missing count too.
    """
    there = sum(
        n
        for value, n in count_values(column)
        if not (is_missing(value) or (is_text and str(value).strip() in WORDS_FOR_MISSING))
    )
    return len(column.values) - there


def distinct_values(column: Column, is_text: bool = False) -> set[Any]:
    """Return the values that occur in a column, missing ones left out.

    Parameters
    ----------
    is_text : whether values come from a text file: words for missing are left out too, and blanks
        at both ends do not count.
    """
    found = {value for value, _ in count_values(with_moments(column))}
    if is_text:
        found = {str(value).strip() for value in found} - WORDS_FOR_MISSING
    return {value for value in found if not is_missing(value)}


def without_gone(column: Column, gone: StateFinder | None) -> Column:
    """Return a column from which the values that are said to be missing are missing; O(n)."""
    if gone is None:
        return column
    try:
        found, places = find_distinct(column)
    except TypeError:  # a list among them, say
        found, places = column.values.tolist(), np.arange(len(column.values))
    is_gone = np.array([*(gone.find(value) >= 0 for value in found), False], bool)[places]
    if column.is_missing is not None:
        is_gone |= column.is_missing
    return replace(column, is_missing=is_gone) if is_gone.any() else column


def as_numbers(column: Column, notation: str | None = None) -> NDArray[np.float64]:
    """Return a column of numbers, or of text that is one, as floats; NaN for all else.

    What is no number is counted, and complained of, when the column is coded.

    Parameters
    ----------
    notation : of text that is a number; None if it is written plainly.
    """
    values: Any = column.values
    if column.labels is not None:
        table = [_as_float(label, notation) for label in column.labels]
        values = np.array([*table, np.nan])[values]
    elif values.dtype.kind in "mM":
        values = np.full(len(values), np.nan)
    elif values.dtype.kind not in "biuf":
        values = np.array([_as_float(v, notation) for v in values.tolist()], np.float64)
    numbers: NDArray[np.float64] = values.astype(np.float64)
    return numbers if column.is_missing is None else np.where(column.is_missing, np.nan, numbers)


def _as_float(value: Any, notation: str | None = None) -> float:
    number = to_number(value, notation)
    return float("nan") if number is None else number


def to_number(value: Any, notation: str | None = None) -> float | None:
    """Return a number, or text that is one, as a float; None for all else, NaN too."""
    if notation is not None and isinstance(value, str):
        return number_in(value, notation)
    is_text = isinstance(value, str) and "_" not in value  # Python reads 1_000, others do not
    if not is_text and (not isinstance(value, int | float | np.number | Decimal)):
        return None
    try:
        number = float(value)
    except OverflowError:  # a whole number beyond all floats
        return float("inf") if value > 0 else float("-inf")
    except ValueError:
        return None
    return None if number != number else number


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
    return Column(as_objects(moments_of(column).to_pylist()))
