"""Columns beside the network: names that rows keep, and context in which bad rows may gather."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.origins import ContextColumn, CountedContext
from robustbn._core.protocols import Column
from robustbn._core.tuning import TUNING
from robustbn._tables.encode.labels import WORDS_FOR_MISSING, is_missing
from robustbn._tables.groups import RawContext
from robustbn._tables.units import (
    NEITHER,
    column_of_floats,
    floats_of,
    hour_of_text,
    hours_of,
    narrow,
)

LONGEST_MEMORY = 2**17  # hours that are remembered as text


class ContextCoder:
    """Reads one column of context: its values while they are few, then its hours or numbers.

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

    def code(self, column: Column) -> RawContext:
        """Return a stretch of rows; what it holds may be of another kind than the one before."""
        if self.kind == "values":
            try:
                return self._code_values(column)
            except (TypeError, ValueError):  # a list among the values, say
                self.kind = "none"
        if self.kind == "hours":
            values, places = _distinct(column)
            return self._raw(np.append(self._hours_of(values), np.int32(NEITHER))[places])
        if self.kind == "numbers":
            return self._raw(column_of_floats(column))
        return self._raw(np.empty(0, np.int16))

    def _raw(self, codes: NDArray[Any]) -> RawContext:
        values = tuple(self._numbers) if self.kind == "values" else ()
        return RawContext(self.name, self.kind, values, codes)

    def _code_values(self, column: Column) -> RawContext:
        """Give new values a number; where they get too many, go on in another way."""
        values, places = _distinct(column)
        occurs = np.arange(len(values))
        if len(values) > TUNING.where_values:
            occurs = np.unique(places)
            occurs = occurs[occurs >= 0]
        table = np.full(len(values) + 1, -1, np.int16)
        for k in occurs.tolist():
            if not self._is_missing(values[k]):
                table[k] = self._numbers.setdefault(values[k], len(self._numbers))
            if len(self._numbers) > TUNING.where_values:
                self._turn()
                return self.code(column)
        return self._raw(table[places])

    def _is_missing(self, value: Any) -> bool:
        is_word = self._is_text and isinstance(value, str) and value.strip() in WORDS_FOR_MISSING
        return is_word or is_missing(value)

    def _turn(self) -> None:
        """Go on by hours or numbers where values are too many, if they are times or numbers."""
        values = list(self._numbers)
        if not (hours_of(values) == NEITHER).any():
            self.kind = "hours"
        else:
            self.kind = "numbers" if np.isfinite(floats_of(values)).all() else "none"

    def _hours_of(self, values: Sequence[Any]) -> NDArray[np.int32]:
        """Return `hours_of`; of text, what comes before the minutes is parsed once."""
        if not all(isinstance(value, str) for value in values):
            return hours_of(values)
        starts = [value.strip()[:13] for value in values]
        if len(self._hours) > LONGEST_MEMORY:
            self._hours.clear()
        for start in set(starts) - self._hours.keys():
            self._hours[start] = hour_of_text(start)
        return np.fromiter(map(self._hours.__getitem__, starts), np.int32, len(starts))


class ContextGatherer:
    """Keeps one column of context. Memory: 2 bytes a row for values, 4 for hours and numbers.

    Parameters
    ----------
    coder : that reads it.
    """

    def __init__(self, coder: ContextCoder) -> None:
        self.coder = coder
        self._chunks: list[NDArray[Any]] = []
        self._last = RawContext(coder.name, coder.kind, (), np.empty(0, np.int16))

    def add(self, column: Column) -> None:
        """Take a stretch of rows; O(n)."""
        raw = self.coder.code(column)
        if raw.kind != self._last.kind:
            self._chunks = [_as_units(raw.kind, self._last.values, c) for c in self._chunks]
        self._chunks.append(raw.codes)
        self._last = raw

    def finish(self) -> RawContext:
        """Return the whole column."""
        last, chunks = self._last, self._chunks
        if last.kind == "none":
            return last
        whole = np.concatenate(chunks) if chunks else last.codes
        self._chunks = []
        return RawContext(last.name, last.kind, last.values, whole)


def _as_units(kind: str, values: Sequence[Any], codes: NDArray[Any]) -> NDArray[Any]:
    """Return positions of values as hours or numbers."""
    if kind == "none":
        return codes[:0]
    units = np.append(hours_of(values), np.int32(NEITHER))
    if kind == "numbers":
        units = np.append(narrow(floats_of(values)), np.float32(np.nan))
    found: NDArray[Any] = units[codes]
    return found


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


@dataclass(frozen=True, eq=False)
class Aside:
    """What a table has beside the network's columns, for the rows that were read.

    Parameters
    ----------
    context : columns in groups.
    names : columns that rows keep, the one that names them first: Arrow arrays.
    raw : columns of a part of a table, as they were read, for whoever knows all parts.
    damaged : columns that cannot be read and were left out, and why.
    counted : context that is counted, where nobody holds the group of each row.
    numbers : of the rows whose names are there, in order; None if all are.
    n_rows : that were read, if not all have their names here.
    given_up : of a part of a table, columns that turned out to be no context.
    is_forgotten : whether context was counted for other verdicts than those of today.
    """

    context: tuple[ContextColumn, ...] = ()
    names: Mapping[str, Any] = field(default_factory=dict)
    raw: tuple[RawContext, ...] = ()
    damaged: Mapping[str, str] = field(default_factory=dict)
    counted: CountedContext | None = None
    numbers: NDArray[np.int64] | None = None
    n_rows: int = 0
    given_up: tuple[str, ...] = ()
    is_forgotten: bool = False

    def without_counts(self) -> Aside:
        """Return what is left once rows are judged otherwise: counts of context are not."""
        return self if self.counted is None else replace(self, counted=None, is_forgotten=True)

    def without_context(self, name: str) -> Aside:
        """Return the same without a column of context."""
        return replace(self, context=tuple(each for each in self.context if each.name != name))

    def of(self, rows: NDArray[np.int64] | None = None) -> dict[str, Any]:
        """Return the names of some rows, by their numbers, or of all of them; None if missing."""
        if self.numbers is None:
            return {name: _as_values(column, rows) for name, column in self.names.items()}
        rows = np.arange(self.n_rows) if rows is None else rows
        places = np.minimum(np.searchsorted(self.numbers, rows), max(len(self.numbers) - 1, 0))
        is_there = np.zeros(len(rows), bool)
        if len(self.numbers):
            is_there = self.numbers[places] == rows
        found = {}
        for name, column in self.names.items():
            found[name] = np.full(len(rows), None, object)
            found[name][is_there] = _as_values(column, places[is_there])
        return found


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
