"""Counts of many families of columns: one column's states beside those of some others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from robustbn._core.layout import Codes

AT_ONCE = 2**17  # cells that are counted at once, 8 bytes each: they stay in the second cache


@dataclass(frozen=True, eq=False)
class CountedBeside:
    """Joint states of columns, counted for several that take the first place in turn."""

    # of the joint states, those of one column in the first place after those of another
    counts: NDArray[np.int64]
    starts: NDArray[np.intp]  # where those of each begin


class FamilyCounts:
    """Counts the joint states of columns of codes; memory: one copy of the codes, N d bytes."""

    def __init__(self, codes: Codes, cards: Sequence[int]) -> None:
        self.cards, self.n_rows = tuple(cards), len(codes)
        self._columns = np.ascontiguousarray(codes.T)
        limits = np.array(self.cards)[:, None]
        self._has_holes: NDArray[np.bool_] = np.any(self._columns >= limits, axis=1)

    def count_beside(self, family: Sequence[int], others: Sequence[int]) -> CountedBeside:
        """Count `(other, *family)` for each of some columns, the last one innermost; O(N) each."""
        first = np.array(others, np.intp)
        size, has_holes = prod(self.cards[k] for k in family), self._has_holes[first]
        widths = (np.array(self.cards)[first] + has_holes) * size
        starts = np.cumsum(widths) - widths
        counts = np.zeros(int(widths.sum()), np.int64)
        step = max(AT_ONCE, 4 * len(counts)) // max(len(others), 1) + 1
        for start in range(0, self.n_rows, step):
            part = self._columns[:, start : start + step]
            holed = [k for k in family if self._has_holes[k]]
            if holed:
                limits = np.array([self.cards[k] for k in holed])
                part = part[:, (part[holed] < limits[:, None]).all(axis=0)]
            cells = part[first] * np.intp(size)
            cells += starts[:, None]
            base = np.zeros(part.shape[1], np.intp)
            for k in family:
                base *= self.cards[k]
                base += part[k]
            cells += base
            counts += np.bincount(cells.ravel(), minlength=len(counts))
        for j in np.flatnonzero(has_holes):
            counts[starts[j] + widths[j] - size : starts[j] + widths[j]] = 0
        return CountedBeside(counts, starts)
