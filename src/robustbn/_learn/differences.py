"""Slices: tables that are another at one place, such as one site, one period, or both together.

Each value of a context column is compared with all the others, table by table, and so is each run
of neighbouring values of times, numbers and row numbers, by itself and at each value of another
column. Who belongs to a slice is given, so only its tables and its choice are paid for. Values
differ naturally, so the yardstick is not zero but the spread among the other values, and among
other runs of the same length. With the log-likelihood ratio L of a slice's own table, its f free
numbers and its n rows,

    t = spread among the others: (2 L / f - 1) / n, its upper tenth
    x = 2 L / (1 + n t)
    evidence = (v + f) / 2 log(1 + x / v),    v = 2 + f / 2 for each of the others

is the log-likelihood ratio of a shift whose natural size is known from v numbers only. It is paid
for like any explanation (`find_gain`). Of the slices that gain so, the one whose own tables gain
most over zero is taken, its rows are set aside for the nodes that differ there, and the rest is
compared again.

Runs are found in two steps: windows of every length that overlap by half are tried, and the ends of
the best one are moved to where the rows stop being more likely under its own table.

Along times and row numbers, rows whose node is as in the row before say nothing new: a table that
is sorted by a node, or has several rows of each person, differs everywhere. Each row is counted
there as often as the node changes from row to row, over how often it would in any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, product

import numpy as np
from numpy.typing import NDArray

from robustbn._core.origins import ContextColumn, Difference
from robustbn._core.protocols import Vector
from robustbn._learn.compared_places import (
    LEAST_OTHERS,
    LEAST_ROWS,
    MOST_OTHERS,
    ContextPlaces,
    find_best_run,
    gather_places,
)
from robustbn._learn.compared_tables import ComparedTable, Places
from robustbn._learn.gain import find_gain

YARDSTICK = 0.9  # quantile of the spread among the others: some of them stand out naturally, too
CHANCE = 1.28  # standard deviations: the same quantile of what chance alone gives
MOST_CROSSED = 12  # values of a column that are looked at together with periods
CROSSED = ("hours", "rows")  # periods, and stretches of rows: what values are looked at with
COUNTED_AT_ONCE = 2**21  # cells of places that are compared: bounds memory, changes nothing
MOST_MOVES = 4  # of the ends of a run: most need two
MOST_PLACES = 4  # that are returned
LEAST_GAIN = 10.0  # nats beyond the price: odds of 20,000 to 1
LEAST_EFFECT = 0.02  # nats a row: less is of no interest, however certain
LEAST_RATIO = 4.0  # times the spread among other values

_Place = tuple[tuple[int, int, int], ...]  # a column, its first and its last group; one or two


def find_differences(
    tables: Sequence[ComparedTable],
    context: Sequence[ContextColumn],
    left: NDArray[np.bool_] | None = None,
) -> list[Difference]:
    """Return the places at which tables are others than elsewhere, the largest gain first.

    O(n) time for each table and column of context; memory bounded.

    Parameters
    ----------
    tables : of some rows, as `make_tables` gives them.
    context : groups of the same rows; shape (n,) each.
    left : rows that nothing explains yet; None: all.
    """
    columns = gather_places(context)
    if not tables or not columns:
        return []
    first = np.ones(len(tables[0].cells), bool) if left is None else left
    left_of = {table.node: first for table in tables}
    turnover = np.array([[each.find_turnover(table) for each in columns] for table in tables])
    found = list[Difference]()
    for _ in range(2 * MOST_PLACES):
        rest = _Rest(tables, columns, turnover, left_of)
        best = max(rest.measure_all(), default=None, key=lambda each: each[0])
        if best is None or len(found) == MOST_PLACES:
            break
        _, number, place = best
        difference = rest.describe(place)
        nodes = {tables[number].node}
        if difference is not None:
            found.append(difference)
            nodes |= {*difference.nodes, *difference.missing}
        for node in nodes:
            left_of[node] = left_of[node] & ~rest.rows_of(place, node)
    return found


class _Rest:
    """The rows that are left, counted by table and place."""

    def __init__(
        self,
        tables: Sequence[ComparedTable],
        columns: Sequence[ContextPlaces],
        turnover: Vector,
        left_of: Mapping[int, NDArray[np.bool_]],
    ) -> None:
        self.tables, self.columns, self.left_of = tables, columns, left_of
        self.turnover = turnover
        self.pairs = [
            (a, b)
            for a, b in product(range(len(columns)), repeat=2)
            if not columns[a].groups.is_ordered
            and len(columns[a].firsts) <= MOST_CROSSED
            and columns[b].groups.has_periods
            and columns[b].groups.kind in CROSSED
        ]

    def count_tried(self, *columns: int) -> float:
        """Return how many choices a place has: of a table, of its column or pair, and within it.

        A column has as much of the chance of being chosen as any other: five sites do not pay for
        all stretches of rows.
        """
        n_within = np.prod([float(self.columns[k].n_places) for k in columns])
        return float(len(self.tables) * (len(self.columns) + len(self.pairs)) * n_within)

    def rows_of(self, place: _Place, node: int) -> NDArray[np.bool_]:
        """Return which of the rows that are left for a node lie at a place."""
        inside = self.left_of[node].copy()
        for column, first, last in place:
            codes = self.columns[column].codes
            inside &= (codes >= first) & (codes <= last)
        return inside

    def measure_all(self) -> Iterator[tuple[float, int, _Place]]:
        """Yield what differs most and clearly, for every table and column: gain, table, place."""
        of_cells = groupby(range(len(self.tables)), lambda number: id(self.tables[number].cells))
        for numbers in (list(some) for _, some in of_cells):  # counted once
            for k, column in enumerate(self.columns):
                if not len(column.runs[0]):
                    continue
                counts = self._count(self.tables[numbers[0]], column.codes, len(column.firsts))
                counts *= self.turnover[numbers[0], k]
                total, n_tried = counts.sum(axis=0), self.count_tried(k)
                tried = self._find_runs(numbers, counts[None], total, column, n_tried)
                for number, _, paid, ends in tried:
                    place = ((k, *ends),)
                    if self._is_clear(number, place, paid, n_tried):
                        yield paid, number, place
            for pair in self.pairs:
                yield from self._measure_pair(numbers, *pair)

    def _measure_pair(
        self, numbers: Sequence[int], a: int, b: int
    ) -> Iterator[tuple[float, int, _Place]]:
        """Yield what differs most where a value of one column meets a run of another."""
        one, other = self.columns[a], self.columns[b]
        n_values, n_stretches = len(one.firsts), len(other.firsts)
        is_both = (one.codes >= 0) & (other.codes >= 0)
        codes = np.where(is_both, one.codes * n_stretches + other.codes, -1)
        counts = self._count(self.tables[numbers[0]], codes, n_values * n_stretches)
        share = self.turnover[numbers[0], [a, b]].min()
        counts = share * counts.reshape(n_values, n_stretches, -1)
        total, n_tried = counts.sum(axis=(0, 1)), self.count_tried(a, b)
        values, n_places = one.runs[0], len(other.runs[0])
        step = max(COUNTED_AT_ONCE // max(n_places * len(total), 1), 1)
        for some in (values[k : k + step] for k in range(0, len(values), step)):
            tried = self._find_runs(numbers, counts[some], total, other, n_tried)
            for number, k, paid, ends in tried:
                place = (a, int(some[k]), int(some[k])), (b, *ends)
                if self._is_clear(number, place, paid, n_tried):
                    yield paid, number, place

    def _find_runs(
        self,
        numbers: Sequence[int],
        counts: Vector,
        total: Vector,
        column: ContextPlaces,
        n_tried: float,
    ) -> Iterator[tuple[int, int, float, tuple[int, int]]]:
        """Yield the best place of each table and value: both, its gain without yardstick, its ends.

        A value without a place that gains is left out.

        Parameters
        ----------
        numbers : of the tables, which have the same cells.
        counts : of each value, and the groups that a place may have; shape (values, groups, J).
        total : of all rows; shape (J,).
        """
        firsts, lasts = column.runs
        upto = np.zeros((len(counts), counts.shape[1] + 1, len(total)))
        np.cumsum(counts, axis=1, out=upto[:, 1:])
        n_upto = upto.sum(axis=2)
        n_rows = n_upto[:, lasts + 1] - n_upto[:, firsts]
        values, places = np.nonzero(n_rows > LEAST_ROWS - 1)  # fewer never gain
        inside = upto[values, lasts[places] + 1] - upto[values, firsts[places]]
        for number in numbers:
            table = self.tables[number]
            paid = _pay(table, inside, total, n_tried)
            for value in np.unique(values[paid > 0]).tolist():
                best = int(np.argmax(np.where(values == value, paid, -np.inf)))
                ends = int(firsts[places[best]]), int(lasts[places[best]])
                found = float(paid[best])
                for _ in range(MOST_MOVES if column.groups.has_periods else 0):
                    moved = _move_ends(table, counts[value], total, ends)
                    if moved == ends:
                        break
                    more = upto[value, moved[1] + 1] - upto[value, moved[0]]
                    gain = float(_pay(table, more[None], total, n_tried)[0])
                    if gain <= found:
                        break
                    found, ends = gain, moved
                yield number, value, found, ends

    def _is_clear(self, number: int, place: _Place, paid: float, n_tried: float) -> bool:
        """Whether a place gains, with the spread among others as the yardstick, too."""
        return paid >= LEAST_GAIN and self._weigh(number, place, n_tried)[0] >= LEAST_GAIN

    def _count(self, table: ComparedTable, codes: Places, n_groups: int) -> Vector:
        """Return how many rows of each group show each cell; shape (groups, J)."""
        n_cells = len(table.configs)
        some = self.left_of[table.node] & (codes >= 0) & (table.cells >= 0)
        places = codes[some] * n_cells + table.cells[some]
        counted = np.bincount(places, minlength=n_groups * n_cells)
        return counted.reshape(n_groups, n_cells).astype(np.float64)

    def _weigh(self, number: int, place: _Place, n_tried: float) -> tuple[float, float]:
        """Return the gain of a place over the spread among others, and its size in spreads."""
        table, turnover = self.tables[number], self.turnover[number]
        share = min(turnover[column] for column, _, _ in place)
        inside = self.rows_of(place, table.node) & (table.cells >= 0)
        n_cells = len(table.configs)
        here = share * np.bincount(table.cells[inside], minlength=n_cells)[None]
        some = self.left_of[table.node] & (table.cells >= 0)
        total = share * np.bincount(table.cells[some], minlength=n_cells)
        ratio, free, rows = (float(each[0]) for each in _measure(table, here, total))
        if ratio - free / 2 < LEAST_EFFECT * rows:
            return 0.0, 0.0
        spread, n_others = 0.0, 0
        for column, first, last in place:
            context = self.columns[column]
            counts = self._count(table, context.codes, len(context.firsts))
            others, _ = context.list_others(counts, counts.sum(axis=1), first, last)
            others = turnover[column] * others
            others = others[others.sum(axis=1) >= LEAST_ROWS]
            if len(others) < LEAST_OTHERS:
                return 0.0, 0.0
            spread += _find_spread(table, others)
            n_others += min(len(others), MOST_OTHERS)
        x, v = 2 * ratio / (1 + rows * spread), n_others * (2 + free / 2)
        evidence = (v + free) / 2 * np.log1p(x / v)
        return float(find_gain(evidence, free, rows, n_tried)), x / free

    def describe(self, place: _Place) -> Difference | None:
        """Return what differs at a place: every table that gains there by itself."""
        found = []
        for number, table in enumerate(self.tables):
            gain, size = self._weigh(number, place, len(self.tables))
            if gain >= LEAST_GAIN and size >= LEAST_RATIO:
                found.append((gain, size, table))
        if not found:
            return None
        found.sort(key=lambda each: -each[0])
        parts, runs = zip(
            *(self.columns[column].describe(*ends) for column, *ends in place), strict=True
        )
        inside = np.flatnonzero(self.rows_of(place, found[0][2].node))
        return Difference(
            parts,
            tuple(dict.fromkeys(table.node for _, _, table in found if not table.is_missing)),
            tuple(table.node for _, _, table in found if table.is_missing),
            inside,
            len(inside),
            sum(gain for gain, _, _ in found),
            max(size for _, size, _ in found),
            runs,
        )


def _pay(table: ComparedTable, inside: Vector, total: Vector, n_tried: float) -> Vector:
    """Return the gain of each place before the yardstick; shape (places,).

    None holds most of the rows: what they show is no exception.
    """
    gains = find_gain(*_measure(table, inside, total), n_tried)
    return np.where(2 * inside.sum(axis=1) <= total.sum(), gains, -np.inf)


def _move_ends(
    table: ComparedTable, counts: Vector, total: Vector, ends: tuple[int, int]
) -> tuple[int, int]:
    """Return the run whose rows gain most by the tables of another run, over those of the rest."""
    here = counts[ends[0] : ends[1] + 1].sum(axis=0)
    usual = _normalise(total - here + 1 / len(total), table.configs)
    own = _normalise(here + usual, table.configs)
    return find_best_run(counts @ np.log(own / usual))


def _normalise(counts: Vector, configs: Places) -> Vector:
    """Return the share of each cell among those of its configuration."""
    return np.divide(counts, np.bincount(configs, counts)[configs])


def _measure(table: ComparedTable, inside: Vector, total: Vector) -> tuple[Vector, Vector, Vector]:
    """Return the log-likelihood ratio, the free numbers and the rows of each place."""
    rest, rows = total - inside, inside.sum(axis=1)
    is_enough = (rows >= LEAST_ROWS) & (rest.sum(axis=1) >= LEAST_OTHERS * LEAST_ROWS)
    ratios, free = table.compare(inside, total)
    return np.where(is_enough, ratios, 0.0), free, rows


def _find_spread(table: ComparedTable, others: Vector) -> float:
    """Return how much other values differ, as `(2 L / f - 1) / n` beyond what chance gives."""
    total = others.sum(axis=0)
    ratios, free, rows = _measure(table, others, total)
    excess = 2 * ratios / free - 1 - CHANCE * np.sqrt(2 / free)
    return max(float(np.quantile(excess / rows, YARDSTICK)), 0.0)
