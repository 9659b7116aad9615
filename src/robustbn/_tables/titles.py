"""Lines of a text file that repeat its header: they are no rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from robustbn._core.protocols import Column
from robustbn._tables.coded import some
from robustbn._tables.header import name_column
from robustbn.exceptions import RepeatedHeaderWarning


class TitleFinder:
    """Marks the lines of one file that repeat its header, and warns of them.

    Such a line has the name of every column in its place. Where each of the names is a value in
    other lines too, it is a row like any other. To know, all columns are read, once, and only if
    the columns that are read anyway make it possible.

    Parameters
    ----------
    where : what to call the file.
    names : of all its columns.
    read_all : reads all of them, in stretches.
    """

    def __init__(
        self, where: str, names: Sequence[str], read_all: Callable[[], Iterable[list[Column]]]
    ) -> None:
        self._where, self._names, self._read_all = where, names, read_all
        self._rows: NDArray[np.int64] | None = None

    def mark(self, columns: list[Column], positions: Sequence[int], start: int) -> list[Column]:
        """Return the columns at some positions of a stretch that begins at row `start`, marked."""
        named = sorted(zip(columns, positions, strict=True), key=lambda each: _n_labels(each[0]))
        if len(self._names) < 2 or not all(_places(c, self._names[k]) for c, k in named):
            return columns
        if self._rows is None:
            self._rows = _find_titles(self._read_all(), self._names)
            self._warn(self._rows)
        is_title = np.zeros(len(columns[0].values), bool)
        here = self._rows - start
        is_title[here[(here >= 0) & (here < len(is_title))]] = True
        if not is_title.any():
            return columns
        return [replace(c, is_missing=is_title, is_title=is_title) for c in columns]

    def _warn(self, rows: NDArray[np.int64]) -> None:
        if not len(rows):
            return
        said = "1 line repeats the header and is left out: row"
        if len(rows) > 1:
            said = f"{len(rows):,} lines repeat the header and are left out: rows"
        text = f"{self._where}: {said} {some(rows.tolist())}."
        warnings.warn(text, RepeatedHeaderWarning, stacklevel=2)


def _find_titles(stretches: Iterable[list[Column]], names: Sequence[str]) -> NDArray[np.int64]:
    """Return the rows that repeat the names, unless each name is a value in other rows as well."""
    n_rows, found = 0, [np.empty(0, np.int64)]
    n_named = np.zeros(len(names), np.int64)
    for columns in stretches:
        is_named = [
            np.isin(column.values, _places(column, name))
            for column, name in zip(columns, names, strict=True)
        ]
        n_named += [np.count_nonzero(each) for each in is_named]
        found.append(n_rows + np.flatnonzero(np.logical_and.reduce(is_named)))
        n_rows += len(columns[0].values)
    rows = np.concatenate(found)
    return rows if (n_named == len(rows)).any() else rows[:0]


def _n_labels(column: Column) -> int:
    return len(column.labels or ())


def _places(column: Column, name: str) -> list[int]:
    """Return the positions of the labels that are the name of the column."""
    labels = enumerate(column.labels or ())
    return [k for k, label in labels if name in label and name_column(label) == name]
