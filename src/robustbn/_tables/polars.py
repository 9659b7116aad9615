"""polars frames: categories keep their numbers, the rest goes through Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from robustbn._core.protocols import Column
from robustbn._tables.arrow import column_of, naming_table
from robustbn._tables.soundness import join_chunks
from robustbn._tables.sources import BLOCK_ROWS, Source

OWN = ("Categorical", "Object")


def open_polars(frame: Any) -> Source:
    """Return the source of a `polars.DataFrame`."""
    names = tuple(frame.columns)

    def read(positions: Sequence[int]) -> Iterator[list[Column]]:
        wanted = [names[k] for k in positions]
        own = {n: _column_of(frame[n]) for n in wanted if _kind(frame[n]) in OWN}
        others = frame.select([n for n in wanted if n not in own])
        for start in range(0, frame.height, BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            stretch = {name: column[rows] for name, column in own.items()}
            if others.width:
                stretch |= _through_arrow(others.slice(start, BLOCK_ROWS))
            yield [stretch[name] for name in wanted]

    return naming_table(Source(names, len(names), frame.height, "polars", "The frame", read))


def _through_arrow(frame: Any) -> dict[str, Column]:
    table = pa.table(frame)
    return {name: column_of(join_chunks(table[name], name)) for name in table.column_names}


def _kind(series: Any) -> str:
    return type(series.dtype).__name__


def _column_of(series: Any) -> Column:
    """Return a column of a kind that Arrow does not know, or knows less well."""
    if _kind(series) == "Categorical":
        return _categories(series)
    objects = np.empty(len(series), object)
    objects[:] = series.to_list()
    return Column(objects)


def _categories(series: Any) -> Column:
    """Return the numbers of the categories, with the labels of those that occur.

    Numbers that do not occur get the label of one that does: nobody will ask.
    """
    valid = series.drop_nulls() if series.null_count() else series
    if not len(valid):
        return Column(np.full(len(series), -1), [])
    place = _first_places(valid.to_physical().to_numpy())
    found = valid.gather(list(place.values())).to_list()
    labels: list[Any] = [found[0]] * (max(place) + 1)
    for number, label in zip(place, found, strict=True):
        labels[number] = label
    if valid is series:
        return Column(valid.to_physical().to_numpy(), labels)
    positions = series.to_physical().fill_null(next(iter(place))).to_numpy()
    return Column(positions, labels, series.is_null().to_numpy())


def _first_places(numbers: NDArray[np.unsignedinteger[Any]]) -> dict[int, int]:
    """Return the numbers that occur, each with a place where it does."""
    largest = int(numbers.max())
    if largest < 256:  # searching bytes is far quicker than scattering
        letters = numbers.astype(np.uint8).tobytes()
        places = {number: letters.find(number) for number in range(largest + 1)}
        return {number: place for number, place in places.items() if place >= 0}
    last = np.full(largest + 1, -1)
    last[numbers] = np.arange(len(numbers))
    return {int(number): int(last[number]) for number in np.flatnonzero(last >= 0)}
