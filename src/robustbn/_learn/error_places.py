"""Where cells are wrong more often: one column outside the network that pays for it.

Values such as sites have a rate each. Days and row numbers are a line: neighbours with the same
rate are one stretch, and every stretch pays for its rate and for where it begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from robustbn._core.protocols import Vector
from robustbn._learn.gain import find_gain

LEAST_GROUP = 20  # rows of a value, on average: fewer tell no rate


class PlaceColumn(NamedTuple):
    """A column that may tell how often cells are wrong."""

    codes: NDArray[Any]  # the value of each row, from 0
    n_values: int
    is_line: bool = False  # whether neighbouring values belong together


class Places(NamedTuple):
    """The column that tells most, and its values that have a rate in common."""

    column: int
    part_of: NDArray[np.int32]  # the part that each value belongs to; shape (values,)

    @property
    def n_parts(self) -> int:
        return int(self.part_of.max()) + 1


def choose_places(
    n_wrong: NDArray[np.int64], n_columns: int, columns: Sequence[PlaceColumn]
) -> Places | None:
    """Return the column whose values tell best how often cells are wrong; None if none pays."""
    # The wrong cells were drawn by one rate for all rows, which hides some of the differences: what
    # is gained is gained at least.
    best, chosen = 0.0, None
    for k, (codes, n_values, is_line) in enumerate(columns):
        if n_values > len(codes) / LEAST_GROUP:
            continue
        wrong: Vector = np.bincount(codes, n_wrong, n_values).astype(np.float64)
        cells: Vector = np.bincount(codes, minlength=n_values) * np.float64(n_columns)
        cut_price = find_gain(0.0, 1, cells.sum(), n_values)
        part_of = _cut(wrong, cells, -cut_price) if is_line else np.arange(n_values, dtype=np.int32)
        n_parts = int(part_of.max()) + 1
        of_parts = (np.bincount(part_of, each) for each in (wrong, cells))
        told = _describe(*of_parts).sum() - _describe(wrong.sum(), cells.sum())
        n_tried = len(columns) * (n_values ** (n_parts - 1.0) if is_line else 1.0)
        gain = find_gain(told, n_parts - 1, cells.sum(), n_tried)
        if gain > best:
            best, chosen = float(gain), Places(k, part_of)
    return chosen


def _cut(wrong: Vector, cells: Vector, price: float) -> NDArray[np.int32]:
    """Return the stretch of each value in the division of a line that is shortest to describe."""
    n = len(wrong)
    wrong_before, cells_before = (np.concatenate([[0], np.cumsum(x)]) for x in (wrong, cells))
    worth, begins = np.zeros(n + 1), np.zeros(n + 1, np.int64)
    for end in range(1, n + 1):  # the best division of the values before it
        told = _describe(
            wrong_before[end] - wrong_before[:end], cells_before[end] - cells_before[:end]
        )
        offers = worth[:end] + told - price
        begins[end] = offers.argmax()
        worth[end] = offers.max()
    is_first, at = np.zeros(n, np.int32), n
    while at:
        at = int(begins[at])
        is_first[at] = at > 0
    return np.cumsum(is_first, dtype=np.int32)


def _describe(wrong: Any, cells: Any) -> Any:
    """Return the log-likelihood of so many wrong cells at their own rate; numbers or arrays."""
    rate = np.clip(wrong / np.maximum(cells, 1), 1e-12, 1 - 1e-12)
    return wrong * np.log(rate) + (cells - wrong) * np.log1p(-rate)
