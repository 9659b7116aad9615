"""Rows that a person leaves out by what they have in common: `site=north and day=2024-03..2024-05`.

A place is written with the labels that findings show.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from robustbn._core.file_names import nearest_name
from robustbn._core.origins import ROW_NUMBER
from robustbn._tables.coded import Table, leave_out
from robustbn.exceptions import DataError

AND, UP_TO = " and ", ".."
LINE = "line"  # of a text file, whose header is the first
LINE_OF_ROW = 2  # line of row 0 of a text file
Rows = NDArray[np.bool_]


def write_place(parts: Sequence[tuple[str, str, str]]) -> str:
    """Return a place as `exclude_rows` reads it, from columns with their first and last values."""
    each = (f"{name}={a}" if a == b else f"{name}={a}{UP_TO}{b}" for name, a, b in parts)
    return AND.join(each)


def exclude_rows(table: Table, places: Sequence[str]) -> Table:
    """Return a table without the rows at some places.

    Parameters
    ----------
    table : rows in memory, with the columns beside the network's.
    places : each `column=value` or `column=first..last`, of a column of context, a node whose
        states are labels, `row number` or `line`; several joined by ` and `.
    """
    is_out = np.zeros(table.reading.n_read, bool)
    for place in places:
        is_there = np.logical_and.reduce([*_read_place(table, place)])
        if not is_there.any():
            raise DataError(f"No row is excluded by {place!r}.")
        is_out |= is_there
    if not places:
        return table
    kept = np.arange(len(table)) if table.kept is None else table.kept
    clues = table.aside.clues.without(np.flatnonzero(is_out))
    left = leave_out(table, is_out[kept], are_copies=False)
    if not len(left):
        raise DataError(f"All {table.reading.n_read:,} rows are excluded.")
    return replace(left, aside=replace(left.aside, clues=clues))


def _read_place(table: Table, place: str) -> Iterator[Rows]:
    """Yield the rows that each part of a place holds, of all that were read."""
    columns = {each.name: each for each in table.aside.context}
    names = [*columns, *table.states, ROW_NUMBER, LINE]
    text = place.strip()
    while text:
        fitting = [name for name in names if text.startswith(f"{name}=")]
        if not fitting:
            asked = text.partition("=")[0]
            raise DataError(
                f"Rows to exclude are written 'column=value' or 'column=first..last'; found "
                f"{place!r}. {asked!r} is no column of context, node, 'row number' or 'line'."
                f"{nearest_name(asked, names)}"
            )
        name = max(fitting, key=len)
        said, text = _cut_value(text.removeprefix(f"{name}="), names)
        if name in columns:
            groups = columns[name].groups
            first, last = _find_ends(place, name, said, groups.labels, groups.ends)
            yield (columns[name].codes >= first) & (columns[name].codes <= last)
        elif name in table.states:
            labels = tuple(map(str, table.states[name]))
            first, last = _find_ends(place, name, said, labels, ())
            codes = table.codes[:, list(table.states).index(name)]
            yield table.spread(((codes >= first) & (codes <= last)).astype(np.float64)) == 1
        else:
            numbers = np.arange(table.reading.n_read) + (LINE_OF_ROW if name == LINE else 0)
            first, last = _read_numbers(place, said)
            yield (numbers >= first) & (numbers <= last)


def _cut_value(text: str, names: Sequence[str]) -> tuple[str, str]:
    """Return the value that a text begins with, and what follows behind ` and name=`."""
    starts = [text.find(f"{AND}{name}=") for name in names]
    end = min((start for start in starts if start >= 0), default=len(text))
    return text[:end], text[end:].removeprefix(AND)


def _find_ends(
    place: str, name: str, said: str, labels: Sequence[str], ends: Sequence[str]
) -> tuple[int, int]:
    """Return the first and the last group of a value, or of a range of values."""
    if said in labels:
        return labels.index(said), labels.index(said)
    first, _, last = said.partition(UP_TO)
    for value, known in ((first, labels), (last or first, ends or labels)):
        if value not in known:
            raise DataError(
                f"Rows to exclude: {place!r} names {value!r}, which is no value of {name}; its "
                f"values run from {labels[0]!r} to {(ends or labels)[-1]!r}."
                f"{nearest_name(value, known)}"
            )
    return labels.index(first), (ends or labels).index(last or first)


def _read_numbers(place: str, said: str) -> tuple[int, int]:
    """Return the first and the last number of a row or line."""
    first, _, last = said.replace(",", "").partition(UP_TO)
    try:
        return int(first), int(last or first)
    except ValueError:
        raise DataError(
            f"Rows to exclude: {place!r} needs whole numbers; found {said!r}."
        ) from None
