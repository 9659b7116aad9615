"""Columns beside the network: names that rows keep, and context in which bad rows may gather."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.origins import ContextColumn
from robustbn._core.protocols import Column
from robustbn._tables.encode import as_numbers
from robustbn._tables.encode.labels import WORDS_FOR_MISSING, is_missing

MOST_CONTEXT_VALUES = (
    1_000  # of a column that is neither a number nor a time; with more it is a name
)
MOST_PERIODS = 400  # of a time: the shortest period with no more of them, so a year goes by days
N_QUANTILES = 10
ROWS_FOR_QUANTILES = 100_000
LONGEST_MEMORY = 2**17  # hours that are remembered as text
LONGEST_SPAN = 2**24  # hours, beyond which periods are found by sorting

NEITHER = np.iinfo(np.int32).min  # the hour of what is no time
ISO_START = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d|$)")
NUMPY_PERIODS = ("h", "D", "M", "Y")  # NumPy's letters


class ContextCoder:
    """Gathers one column of context: its values while they are few, then its hours or numbers.

    Memory: 2 bytes a row for values, 4 for hours and numbers; nothing once it is given up.

    Parameters
    ----------
    name : of the column.
    is_text : whether a missing value is a word, as in text files.
    kind : "values", then "hours", "numbers" or, given up, "none".
    """

    def __init__(self, name: str, is_text: bool = False, kind: str = "values") -> None:
        self.name = name
        self.kind = kind
        self._is_text = is_text
        self._numbers: dict[Any, int] = {}
        self._hours: dict[str, int] = {}
        self._chunks: list[NDArray[Any]] = []

    def add(self, column: Column) -> None:
        """Take a stretch of rows; O(n)."""
        if self.kind == "values":
            try:
                self._add_values(column)
            except TypeError:  # a list among the values, say
                self._give_up()
        elif self.kind == "hours":
            values, places = _distinct(column)
            self._chunks.append(np.append(self._hours_of(values), np.int32(NEITHER))[places])
        elif self.kind == "numbers":
            self._chunks.append(_numbers(column).astype(np.float32))

    def _add_values(self, column: Column) -> None:
        """Give new values a number; where they get too many, go on in another way."""
        values, places = _distinct(column)
        occurs = np.arange(len(values))
        if len(values) > MOST_CONTEXT_VALUES:
            occurs = np.unique(places)
            occurs = occurs[occurs >= 0]
        table = np.full(len(values) + 1, -1, np.int16)
        for k in occurs.tolist():
            if not self._is_missing(values[k]):
                table[k] = self._numbers.setdefault(values[k], len(self._numbers))
            if len(self._numbers) > MOST_CONTEXT_VALUES:
                self._turn()
                self.add(column)
                return
        self._chunks.append(table[places])

    def _is_missing(self, value: Any) -> bool:
        is_word = self._is_text and isinstance(value, str) and value.strip() in WORDS_FOR_MISSING
        return is_word or is_missing(value)

    def _turn(self) -> None:
        """Go on by hours or numbers where values are too many, if they are times or numbers."""
        values = list(self._numbers)
        hours, numbers = self._as_hours(values), _as_floats(values)
        if hours is not None:
            self.kind, table = "hours", np.append(hours, NEITHER)
        elif numbers is not None:
            self.kind, table = "numbers", np.append(numbers, np.nan).astype(np.float32)
        else:
            self._give_up()
            return
        self._chunks = [table[chunk] for chunk in self._chunks]
        self._numbers = {}

    def _give_up(self) -> None:
        self.kind, self._chunks, self._numbers = "none", [], {}

    def _as_hours(self, values: Sequence[Any]) -> NDArray[np.int32] | None:
        """Return the hour of each value since 1970; None if one of them is no time."""
        hours = self._hours_of(values)
        return None if not len(hours) or (hours == NEITHER).any() else hours

    def _hours_of(self, values: Sequence[Any]) -> NDArray[np.int32]:
        """Return the hour of each value since 1970, NEITHER for what is no time.

        Of text, what comes before the minutes is looked up, so that each hour is parsed once.
        """
        if not all(isinstance(value, str) for value in values):
            return np.fromiter(map(_hour_of, values), np.int32, len(values))
        starts = [value.strip()[:13] for value in values]
        if len(self._hours) > LONGEST_MEMORY:
            self._hours.clear()
        for start in set(starts) - self._hours.keys():
            self._hours[start] = _hour_of_text(start)
        return np.fromiter(map(self._hours.__getitem__, starts), np.int32, len(starts))

    def finish(self) -> ContextColumn | None:
        """Return the column in groups; None if it was given up, or has one value only."""
        if self.kind == "none" or not self._chunks:
            return None
        whole = np.concatenate(self._chunks)
        self._chunks = []
        if self.kind == "hours":
            return group_hours(self.name, whole)
        if self.kind == "numbers":
            return group_numbers(self.name, whole)
        values = list(self._numbers)
        hours, numbers = self._as_hours(values), _as_floats(values)
        if hours is not None:
            return group_hours(self.name, np.append(hours, np.int32(NEITHER))[whole])
        if numbers is not None:
            is_whole = bool((numbers == np.floor(numbers)).all())
            if is_whole or len(numbers) <= N_QUANTILES:
                order = np.argsort(numbers, kind="stable")
                labels = [_say_number(values[k]) for k in order]
                rank = np.empty(len(order) + 1, np.int16)
                rank[order], rank[-1] = np.arange(len(order)), -1
                return _column(self.name, labels, rank[whole], is_ordered=True)
            return group_numbers(self.name, np.append(numbers, np.nan)[whole])
        return _column(self.name, [str(value) for value in values], whole)


def _hour_of(value: Any) -> int:
    """Return the hour of a time, or of text that starts with one; NEITHER for all else."""
    if isinstance(value, str):
        return _hour_of_text(value.strip()[:13])
    if not isinstance(value, np.datetime64 | date):
        return NEITHER
    moment = value.replace(tzinfo=None) if isinstance(value, datetime) else value
    hour = int(np.array(moment, "M8[h]").astype(np.int64))
    return hour if abs(hour) < -NEITHER else NEITHER


def _numbers(column: Column) -> NDArray[np.float64]:
    """Return `as_numbers`, quickly where every label is a number."""
    if column.labels is not None:
        try:
            table = np.fromiter(map(float, column.labels), np.float64, len(column.labels))
        except (TypeError, ValueError):
            return as_numbers(column)
        column = Column(np.append(table, np.nan)[column.values], None, column.is_missing)
    return as_numbers(column)


def _hour_of_text(start: str) -> int:
    """Return the hour of a text that starts like 2024-03-07 or 2024-03-07T12."""
    if not ISO_START.fullmatch(start):
        return NEITHER
    try:
        return int(np.datetime64(start.replace(" ", "T"), "h").astype(np.int64))
    except ValueError:  # a 31st of February
        return NEITHER


def _distinct(column: Column) -> tuple[Sequence[Any], NDArray[Any]]:
    """Return values, and the place of each row among them: -1 where a value is missing."""
    values = column.values
    if column.labels is not None:
        found, places = column.labels, np.maximum(values.astype(np.int64, copy=False), -1)
    elif values.dtype.kind == "O":
        numbers: dict[Hashable, int] = {}
        listed = values.tolist()
        places = np.fromiter(
            (numbers.setdefault(v, len(numbers)) for v in listed), np.int64, len(listed)
        )
        found = list(numbers)
    elif values.dtype.kind == "M":
        hours = values.astype("M8[h]")
        distinct, places = np.unique(hours, return_inverse=True)
        found = list(distinct)
    else:
        distinct, places = np.unique(values, return_inverse=True)
        found = distinct.tolist()
    if column.is_missing is not None:
        places = np.where(column.is_missing, -1, places)
    return found, places


def _as_floats(values: Sequence[Any]) -> NDArray[np.float64] | None:
    """Return values as floats; None if one is no number, or not finite."""
    if any(isinstance(v, bool | np.bool_) for v in values):
        return None
    objects = np.empty(len(values), object)
    objects[:] = values
    numbers = as_numbers(Column(objects))
    return numbers if len(numbers) and np.isfinite(numbers).all() else None


def _say_number(value: Any) -> str:
    """Return a number as text; one that is text keeps its zeros in front."""
    if isinstance(value, str):
        return value.strip()
    return str(int(value)) if value == int(value) else f"{value:.6g}"


def _column(
    name: str,
    labels: Sequence[str],
    codes: NDArray[Any],
    ends: Sequence[str] = (),
    is_ordered: bool = False,
) -> ContextColumn | None:
    if len(labels) + bool((codes < 0).any()) < 2:
        return None
    kind = np.int8 if len(labels) < 128 else np.int16
    return ContextColumn(name, tuple(labels), codes.astype(kind), tuple(ends), is_ordered)


def group_hours(name: str, hours: NDArray[np.int32]) -> ContextColumn | None:
    """Return times by the shortest period of which there are not too many.

    Parameters
    ----------
    hours : since 1970, or NEITHER; shape (n,).
    """
    seen = hours[hours != NEITHER]
    if not len(seen):
        return None
    low, high = int(seen.min()), int(seen.max())
    if high - low < LONGEST_SPAN:
        present = np.flatnonzero(np.bincount(seen - low)) + low
    else:
        present = np.unique(seen)
    moments = present.astype("M8[h]")
    by_period = {
        p: np.unique(moments.astype(f"M8[{p}]"), return_inverse=True) for p in NUMPY_PERIODS
    }
    sizes = {p: len(periods) for p, (periods, _) in by_period.items()}
    fits = next((n for n in sizes.values() if n <= MOST_PERIODS), sizes["Y"])
    if fits > MOST_CONTEXT_VALUES:
        return None
    letter = [p for p in NUMPY_PERIODS if sizes[p] == fits][
        -1
    ]  # days, where each has one hour only
    periods, group = by_period[letter]
    end = ":00" if letter == "h" else ""
    labels = [str(period).replace("T", " ") + end for period in periods]
    codes = np.full(len(hours), -1, np.int16)
    places = np.minimum(np.searchsorted(present, hours), len(present) - 1)
    is_time = hours != NEITHER
    codes[is_time] = group[places[is_time]]
    return _column(name, labels, codes, is_ordered=True)


def group_numbers(name: str, numbers: NDArray[np.floating[Any]]) -> ContextColumn | None:
    """Return numbers by tenths of the rows; equal numbers stay together.

    Parameters
    ----------
    numbers : NaN where there is none; shape (n,).
    """
    step = max(1, len(numbers) // ROWS_FOR_QUANTILES)
    drawn = numbers[::step]
    drawn = drawn[np.isfinite(drawn)]
    if not len(drawn):
        return None
    edges = np.unique(np.quantile(drawn, np.arange(1, N_QUANTILES) / N_QUANTILES))
    codes = np.searchsorted(edges, numbers, side="right").astype(np.int16)
    codes[~np.isfinite(numbers)] = -1
    finite = numbers[np.isfinite(numbers)]
    says = [f"{v:.6g}" for v in (finite.min(), *edges, finite.max())]
    return _column(name, says[:-1], codes, ends=says[1:], is_ordered=True)


@dataclass(frozen=True, eq=False)
class Aside:
    """What a table has beside the network's columns, for every row that was read.

    Parameters
    ----------
    context : columns in groups.
    names : columns that rows keep, the one that names them first: Arrow arrays.
    """

    context: tuple[ContextColumn, ...] = ()
    names: Mapping[str, Any] = field(default_factory=dict)

    def of(self, rows: NDArray[np.int64] | None = None) -> dict[str, Any]:
        """Return the names of some rows, by their numbers, or of all of them; None if missing."""
        return {name: _as_values(column, rows) for name, column in self.names.items()}


def _as_values(column: Any, rows: NDArray[np.int64] | None) -> NDArray[Any]:
    """Return an Arrow column, or some of its rows, as an array; of objects if some are missing."""
    found = column if rows is None else column.take(rows)
    if not found.null_count and str(found.type) not in ("string", "large_string"):
        values: NDArray[Any] = found.to_numpy()
        return values
    objects = np.empty(len(found), object)
    objects[:] = found.to_pylist()
    return objects


def beside(names: Mapping[str, Any], columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return columns with those that name the rows before them, under names that differ."""
    free = {name if name not in columns else f"{name} (column)": v for name, v in names.items()}
    return {**free, **columns}
