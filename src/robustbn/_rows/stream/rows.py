"""Rows that pass by in stretches, worked on as if they were all there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robustbn._core.layout import Codes, Layout
from robustbn._core.protocols import (
    Divided,
    DividedApart,
    DividedInTwo,
    Rows,
    RowVector,
    TwoSides,
    Vector,
)


@dataclass(frozen=True, eq=False)
class PassingRows:
    """All rows of a stream, as `Rows`. Every call is a pass; vectors of length N are in memory.

    Parameters
    ----------
    layout : of the network.
    n_rows : N.
    open : yields the rows in stretches, in order, at every call.
    """

    layout: Layout
    n_rows: int
    open: Callable[[], Iterator[Rows]]

    def parts(self, max_rows: int) -> Iterator[tuple[slice, Rows]]:
        """Yield ranges of rows with those rows."""
        start = 0
        for rows in self.open():
            for where, part in rows.parts(max_rows):
                yield slice(start + where.start, start + where.stop), part
            start += rows.n_rows

    def count(self, weights: RowVector | None = None) -> Vector:
        """Return `C[j]`, the weight of the rows that touch cell j."""
        shape = () if weights is None else weights.shape[1:]
        counts = np.zeros((self.layout.n_cells, *shape))
        for where, rows in self._stretches():
            counts += rows.count(None if weights is None else weights[where])
        return counts

    def project(self, table: Vector, offset: Vector | None = None) -> RowVector:
        """Return `y[n]`; shape (N, r)."""
        return np.concatenate([rows.project(table, offset) for _, rows in self._stretches()])

    def score(self, table: Vector, offset: Vector | None = None) -> RowVector:
        """Return `|y[n]|^2`; shape (N,)."""
        return np.concatenate([rows.score(table, offset) for _, rows in self._stretches()])

    def gram(
        self, table: Vector, offset: Vector | None = None, weights: RowVector | None = None
    ) -> Vector:
        """Return `G[j]`, the sum of `weights[n] y[n]` over rows that touch cell j."""
        total = np.zeros(table.shape)
        for where, rows in self._stretches():
            total += rows.gram(table, offset, None if weights is None else weights[where])
        return total

    def divide(
        self, table: Vector, offset: Vector | None = None, weights: RowVector | None = None
    ) -> Divided:
        """Divide each row's weight by `softmax(0, y[n])`, and count each part."""
        n_columns = table.shape[1] + 1
        total = Divided(np.zeros((len(table), n_columns)), np.zeros(n_columns), 0.0)
        for where, rows in self._stretches():
            total += rows.divide(table, offset, None if weights is None else weights[where])
        return total

    def divide_apart(
        self,
        table: Vector,
        offset: Vector | None,
        against: RowVector,
        weights: RowVector | None = None,
    ) -> DividedApart:
        """Divide each row between each column alone and what is against it, and count that."""
        r = table.shape[1]
        total = DividedApart(np.zeros(table.shape), np.zeros(r), np.zeros(r))
        for where, rows in self._stretches():
            given = None if weights is None else weights[where]
            total += rows.divide_apart(table, offset, against[where], given)
        return total

    def odds(self, table: Vector, offset: Vector | None, n_first: int) -> RowVector:
        """Return the log-odds of the second side of columns against the first; shape (N,)."""
        return np.concatenate([rows.odds(table, offset, n_first) for _, rows in self._stretches()])

    def divide_in_two(
        self,
        table: Vector,
        offset: Vector | None,
        sides: TwoSides,
        weights: RowVector | None = None,
    ) -> DividedInTwo:
        """Divide each row between two sides by its odds, and count each column."""
        n_columns = table.shape[1] + 1
        counts = np.zeros((len(table), n_columns))
        total = DividedInTwo(counts, np.zeros(n_columns), np.empty(0, np.float32))
        for where, rows in self._stretches():
            given = None if weights is None else weights[where]
            total += rows.divide_in_two(table, offset, sides, given)
        return total

    def fingerprints(self) -> NDArray[np.uint64]:
        """Return a 64-bit hash of each row."""
        return np.concatenate([rows.fingerprints() for _, rows in self._stretches()])

    def unpack(self) -> Codes:
        """Return the codes of the rows."""
        return np.concatenate([rows.unpack() for _, rows in self._stretches()])

    def _stretches(self) -> Iterator[tuple[slice, Rows]]:
        start = 0
        for rows in self.open():
            yield slice(start, start + rows.n_rows), rows
            start += rows.n_rows
