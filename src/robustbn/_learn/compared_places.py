"""The places at which rows are compared: values of context columns, and runs of neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.origins import ContextColumn, GroupRun, Groups
from robustbn._core.protocols import Vector
from robustbn._learn.compared_tables import ComparedTable, Places

LEAST_ROWS = 20  # of a place, and of a value that is part of the yardstick
LEAST_OTHERS = 3  # values that make a yardstick: two say little of the spread among values
MOST_OTHERS = 40  # values that count as its measure: more say no more of how far one may lie out
MOST_STRETCHES = 256  # of times, numbers and row numbers: 1 is 0.4 % of the rows
MOST_VALUES = 200  # of a context column that are compared; those with fewer rows are not


@dataclass(frozen=True, eq=False)
class ContextPlaces:
    """A column of context, its values in few groups: the group of each row, -1 for none."""

    number: int
    groups: Groups
    codes: Places
    firsts: Places
    lasts: Places

    @cached_property
    def order(self) -> Places:
        """The rows in the order of their values."""
        return np.argsort(self.codes, kind="stable")

    def find_turnover(self, table: ComparedTable) -> float:
        """Return how often a node changes from row to row, over how often it would in any order."""
        if not self.groups.has_periods:
            return 1.0
        states = table.states[self.order]
        changes = float((states[1:] != states[:-1]).mean())
        return min(changes / table.variety, 1.0) if table.variety else 1.0

    @cached_property
    def runs(self) -> tuple[Places, Places]:
        """Where places start and end: single values, or windows of every length.

        A value that most of the rows have is no place.
        """
        n = len(self.firsts)
        sizes = np.bincount(self.codes[self.codes >= 0], minlength=n)
        starts = ends = np.flatnonzero(2 * sizes <= sizes.sum())
        if self.groups.has_periods:
            lengths = [2**k for k in range(max(n // 2, 1).bit_length())]
            each = [np.arange(0, n - length + 1, max(length // 2, 1)) for length in lengths]
            starts = np.concatenate(each)
            ends = starts + np.repeat(lengths, [len(some) for some in each]) - 1
        return starts, ends

    @property
    def n_places(self) -> int:
        """How many places there are, once the ends of runs are moved."""
        n = len(self.firsts)
        return n * (n + 1) // 2 if self.groups.has_periods else n

    def take(self, rows: NDArray[np.bool_]) -> ContextPlaces:
        """Return the groups of some rows."""
        return self if rows.all() else replace(self, codes=self.codes[rows])

    def holds(self, first: int, last: int) -> NDArray[np.bool_]:
        """Return which rows lie at a place."""
        inside: NDArray[np.bool_] = (self.codes >= first) & (self.codes <= last)
        return inside

    def sum(self, values: Vector) -> Vector:
        """Return the sum of the values of the rows of each group; shape (groups,)."""
        sums = np.bincount(self.codes + 1, values, len(self.firsts) + 1)[1:]
        return sums.astype(np.float64)

    def find_best(self, values: Vector) -> tuple[float, tuple[int, int]]:
        """Return the largest sum of the values of rows at a place, and the place."""
        sums, (starts, _) = self.sum(values), self.runs
        if self.groups.has_periods:
            first, last = find_best_run(sums)
        else:
            first = last = int(starts[np.argmax(sums[starts])]) if len(starts) else 0
        return float(sums[first : last + 1].sum()), (first, last)

    def find_largest(self, values: NDArray[Any]) -> Vector:
        """Return the largest sum of values of rows at a place, for many values; (k, n) to (k,)."""
        sums, (starts, _) = np.stack([self.sum(each) for each in values]), self.runs
        if not self.groups.has_periods:
            return np.asarray(sums[:, starts].max(axis=1, initial=0.0))
        upto = np.concatenate([np.zeros((len(sums), 1)), np.cumsum(sums, axis=1)], axis=1)
        lowest = np.minimum.accumulate(upto[:, :-1], axis=1)
        largest: Vector = (upto[:, 1:] - lowest).max(axis=1)
        return largest

    def list_others(
        self, sums: Vector, rows: Vector, first: int, last: int
    ) -> tuple[Vector, Vector]:
        """Return the sums, and the rows, of other values; of a run, those of others as short.

        A run of few rows is compared with longer ones, which have rows enough; a long one with
        shorter ones, which are many.

        Parameters
        ----------
        sums, rows : of each group; shape (groups, J) and (groups,).
        """
        every, step = np.column_stack([sums, rows]), 1
        if self.groups.has_periods:
            usual = max(float(rows.sum()) / len(rows), 1e-9)
            short = min(last - first + 1, -(-len(rows) // MOST_OTHERS))
            step = max(short, int(np.ceil(2 * LEAST_ROWS / usual)))
        sides = [side for side in (every[:first], every[last + 1 :]) if len(side)]
        parts = [np.add.reduceat(side, np.arange(0, len(side), step)) for side in sides]
        others = np.concatenate([every[:0], *parts])
        others = others[others[:, -1] >= LEAST_ROWS]
        return others[:, :-1], others[:, -1]

    def describe(self, first: int, last: int) -> tuple[tuple[str, str, str], GroupRun]:
        """Return a place in words, and by the groups of its column."""
        groups, ends = self.groups, (int(self.firsts[first]), int(self.lasts[last]))
        label = (groups.ends or groups.labels)[ends[1]]
        return (groups.name, groups.labels[ends[0]], label), GroupRun(self.number, *ends)


def gather_places(context: Sequence[ContextColumn]) -> list[ContextPlaces]:
    """Return the columns that have places enough to be compared."""
    found = [_gather(number, column) for number, column in enumerate(context)]
    return [each for each in found if each is not None]


def find_best_run(sums: Vector) -> tuple[int, int]:
    """Return the first and the last of the neighbours whose sum is the largest."""
    upto = np.append(0.0, np.cumsum(sums))
    last = int(np.argmax(upto[1:] - np.minimum.accumulate(upto[:-1])))
    return int(np.argmin(upto[: last + 1])), last


def _gather(number: int, column: ContextColumn) -> ContextPlaces | None:
    """Return a column in groups that are large enough; neighbours together where they have any."""
    codes, n_groups = column.codes.astype(np.int64), len(column.groups.labels)
    sizes = np.bincount(codes[codes >= 0], minlength=n_groups)
    if column.groups.has_periods and n_groups > MOST_STRETCHES:
        upto = np.cumsum(sizes) - sizes / 2
        new = (upto / max(sizes.sum(), 1) * MOST_STRETCHES).astype(np.int64)
        _, new = np.unique(np.minimum(new, MOST_STRETCHES - 1), return_inverse=True)
        firsts = np.flatnonzero(np.append(True, new[1:] != new[:-1]))
        lasts = np.append(firsts[1:] - 1, n_groups - 1)
        codes = np.append(new, -1)[codes]
    elif column.groups.has_periods:
        firsts = lasts = np.arange(n_groups)
    else:
        kept = np.sort(np.argsort(-sizes, kind="stable")[:MOST_VALUES])
        kept = kept[sizes[kept] >= LEAST_ROWS]
        new = np.full(n_groups + 1, -1, np.int64)
        new[kept] = np.arange(len(kept))
        codes, firsts = new[codes], kept
        lasts = firsts
    if len(firsts) <= LEAST_OTHERS:
        return None
    return ContextPlaces(number, column.groups, codes, firsts, lasts)
