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
for like any explanation (`find_gain`): each table for being one of all tables, and the place once
for all of its tables, so that a place where many columns differ a little is found as well as one
where a single column differs much. The place that gains most is taken, its rows are set aside for
the nodes that differ there, and the rest is compared again.

Runs are found in two steps: windows of every length that overlap by half are tried, and the ends of
the best ones are moved to where the rows stop being more likely under the tables of the place.

Along times and row numbers, rows whose node is as in the row before say nothing new: a table that
is sorted by a node, or has several rows of each person, differs everywhere. Each row is counted
there as often as the node changes from row to row, over how often it would in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import nlargest
from itertools import groupby, product
from typing import Any, TypeVar

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
MOST_CROSSED = 40  # values of a column that are looked at together with periods
COUNTED_AT_ONCE = 2**21  # cells of places that are compared: bounds memory, changes nothing
MOST_MOVES = 4  # of the ends of a run: most need two
MOST_SETTLED = 4  # places of a column, by one table or by all, that all tables are compared at
MOST_PLACES = 4  # that are returned
LEAST_GAIN = 10.0  # nats beyond the price: odds of 20,000 to 1
LEAST_EFFECT = 0.02  # nats a row: less is of no interest, however certain
LEAST_RATIO = 4.0  # times the spread among other values

_Place = tuple[tuple[int, int, int], ...]  # a column, its first and its last group; one or two
Kept = TypeVar("Kept")


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
    tables = sorted(tables, key=lambda table: table.node)
    first = np.ones(len(tables[0].cells), bool) if left is None else left
    left_of = {table.node: first for table in tables}
    turnover = np.array([[each.find_turnover(table) for each in columns] for table in tables])
    found, measured = list[Difference](), dict[tuple[Hashable, ...], tuple[Any, Any]]()
    for _ in range(2 * MOST_PLACES):
        rest = _Rest(tables, columns, turnover, left_of, measured)
        best = max(rest.find_slices(), default=None, key=lambda each: each.gain)
        if best is None or len(found) == MOST_PLACES:
            break
        difference = rest.describe(best)
        if difference is not None:
            found.append(difference)
        inside = rest.rows_of(best.place)
        for node in {tables[number].node for number in best.gains}:
            left_of[node] = left_of[node].copy()
            left_of[node][inside] = False
    return found


@dataclass(frozen=True)
class _Slice:
    """A place at which tables differ.

    Parameters
    ----------
    gain : of the tables that gain most for their nodes, over the spread among other places.
    gains : of all tables that gain so.
    sizes : how many spreads these tables differ.
    """

    place: _Place
    gain: float
    gains: Mapping[int, float]
    sizes: Mapping[int, float]


class _Rest:
    """The rows that are left, counted by table and place."""

    def __init__(
        self,
        tables: Sequence[ComparedTable],
        columns: Sequence[ContextPlaces],
        turnover: Vector,
        left_of: Mapping[int, NDArray[np.bool_]],
        measured: dict[tuple[Hashable, ...], tuple[Any, Any]],
    ) -> None:
        self.tables, self.columns, self.left_of = tables, columns, left_of
        # what was measured of tables at places, and the rows that were left of their nodes then
        self.measured = measured
        self.turnover = turnover
        self.totals = dict[tuple[int, ...], list[Vector]]()
        self.pairs = [
            (a, b)
            for a, b in product(range(len(columns)), repeat=2)
            if not columns[a].groups.has_periods
            and len(columns[a].firsts) <= MOST_CROSSED
            and columns[b].groups.has_periods
        ]

    def count_places(self, where: Sequence[int]) -> float:
        """Return how many choices a place has: of its column or pair, and within it.

        A column has as much of the chance of being chosen as any other: five sites do not pay for
        all stretches of rows.
        """
        n_within = np.prod([float(self.columns[k].n_places) for k in where])
        return float((len(self.columns) + len(self.pairs)) * n_within)

    def rows_of(self, place: Sequence[tuple[int, int, int]]) -> Places:
        """Return the rows at a place; those that nothing is left of, too."""
        is_inside = np.ones(len(self.tables[0].cells), bool)
        for column, first, last in place:
            codes = self.columns[column].codes
            is_inside &= (codes >= first) & (codes <= last)
        return np.flatnonzero(is_inside)

    def find_slices(self) -> Iterator[_Slice]:
        """Yield the places of every column, and of every pair, that gain clearly."""
        for where in [*((k,) for k in range(len(self.columns))), *self.pairs]:
            best = [place for some in self._propose(where) for place in _choose_largest(some)]
            for place in dict.fromkeys(self._settle_ends(place) for place in best):
                found = self._weigh(place)
                if found is not None:
                    yield found

    def _propose(self, where: tuple[int, ...]) -> tuple[dict[_Place, float], dict[_Place, float]]:
        """Return places that may gain, and what they do: the best of each table, and of all.

        Of each table over the spread among other places. Of two columns, places are sought for each
        value of the first one.
        """
        n_runs = len(self.columns[where[-1]].runs[0])
        values = self.columns[where[0]].runs[0] if len(where) > 1 else np.zeros(1, np.int64)
        alone = dict[_Place, float]()
        if not n_runs or not len(values):
            return alone, {}
        price, together = np.log(self.count_places(where)), np.zeros((len(values), n_runs))
        for _, some in groupby(self._measure_runs(where, values), self._node_of):
            best = np.zeros_like(together)
            for number, gains in some:
                for place in self._name_best(where, values, gains - price):
                    gain, _ = self._weigh_table(number, place)
                    if gain > price:
                        alone[place] = max(gain, alone.get(place, 0.0))
                np.maximum(best, gains, out=best)
            together += best
        return alone, self._name_best(where, values, together - price)

    def _node_of(self, told: tuple[int, Vector]) -> int:
        return self.tables[told[0]].node

    def _name_best(
        self, where: tuple[int, ...], values: Places, gains: Vector
    ) -> dict[_Place, float]:
        """Return the best run of each value, and what it gains, if it does."""
        firsts, lasts = self.columns[where[-1]].runs
        found = dict[_Place, float]()
        for value, each in zip(values.tolist(), gains, strict=True):
            run = int(each.argmax())
            if each[run] > 0:
                column = where[-1], int(firsts[run]), int(lasts[run])
                found[(*((k, value, value) for k in where[:-1]), column)] = float(each[run])
        return found

    def _measure_runs(self, where: tuple[int, ...], values: Places) -> Iterator[tuple[int, Vector]]:
        """Yield each table and what it gains at each value and run, before the yardstick.

        At least 0; shape (values, runs).
        """
        of_cells = groupby(range(len(self.tables)), lambda number: id(self.tables[number].cells))
        for numbers in (list(some) for _, some in of_cells):  # counted once
            measure = partial(self._measure_all, numbers, where, values)
            yield from zip(numbers, self._keep(measure, numbers[0], where), strict=True)

    def _keep(self, measure: Callable[[], Kept], number: int, *what: Hashable) -> Kept:
        """Return what is measured of a table; what is known for the same rows that are left."""
        left = self.left_of[self.tables[number].node]
        known = self.measured.get((number, *what))
        if known is None or known[0] is not left:
            known = self.measured[number, *what] = left, measure()
        found: Kept = known[1]
        return found

    def _measure_all(self, numbers: list[int], where: tuple[int, ...], values: Places) -> Vector:
        """Return what tables with the same cells gain at each value and run."""
        firsts, lasts = self.columns[where[-1]].runs
        counts, total = self._count_at(numbers[0], where)
        gains = np.zeros((len(numbers), len(values), len(firsts)))
        step = max(COUNTED_AT_ONCE // max(len(firsts) * len(total), 1), 1)
        for start in range(0, len(values), step):
            some = counts[values[start : start + step]]
            upto = np.zeros((len(some), some.shape[1] + 1, len(total)))
            np.cumsum(some, axis=1, out=upto[:, 1:])
            n_upto = upto.sum(axis=2)
            n_rows = n_upto[:, lasts + 1] - n_upto[:, firsts]
            at, runs = np.nonzero(n_rows > LEAST_ROWS - 1)  # fewer never gain
            inside = upto[at, lasts[runs] + 1] - upto[at, firsts[runs]]
            for number, told in zip(numbers, gains, strict=True):
                paid = _pay(self.tables[number], inside, total, len(self.tables))
                told[start + at, runs] = np.maximum(paid, 0.0)
        return gains

    def _count_at(self, number: int, where: tuple[int, ...]) -> tuple[Vector, Vector]:
        """Return the rows that show each cell of a table: by value and group, and all of them.

        Shapes (values, groups, J), with one value if there is one column, and (J,).
        """
        columns = [self.columns[k] for k in where]
        codes, n_values, n_groups = columns[-1].codes, 1, len(columns[-1].firsts)
        if len(columns) > 1:
            n_values, values = len(columns[0].firsts), columns[0].codes
            codes = np.where((values >= 0) & (codes >= 0), values * n_groups + codes, -1)
        counts = self._count(self.tables[number], codes, n_values * n_groups)
        counts *= self.turnover[number, list(where)].min()
        return counts.reshape(n_values, n_groups, -1), counts.sum(axis=0)

    def _settle_ends(self, place: _Place) -> _Place:
        """Return a run whose ends are where rows stop being likelier by its own tables."""
        *others, (last, *ends) = place
        column = self.columns[last]
        if not column.groups.has_periods:
            return place
        where = (*(k for k, _, _ in others), last)
        gains, codes = self._pay_all(place), np.full(len(column.codes), -1)
        beside = self.rows_of(others)
        codes[beside] = column.codes[beside]
        for _ in range(MOST_MOVES):
            told = np.zeros(len(column.firsts))
            for number in self._choose_best(gains):
                table, total = self.tables[number], self._find_total(number, where)
                counts = self._count(table, codes, len(told))
                share = self.turnover[number, list(where)].min()
                told += share * _tell_groups(table, counts, total, ends)
            moved = (*others, (last, *find_best_run(told)))
            more = self._pay_all(moved, gains)
            if self._sum_best(more) <= self._sum_best(gains):
                break
            place, gains, ends = moved, more, [*moved[-1][1:]]
        return place

    def _count(self, table: ComparedTable, codes: Places, n_groups: int) -> Vector:
        """Return how many rows of each group show each cell; shape (groups, J)."""
        n_cells = len(table.configs)
        some = self.left_of[table.node] & (codes >= 0) & (table.cells >= 0)
        places = codes[some] * n_cells + table.cells[some]
        counted = np.bincount(places, minlength=n_groups * n_cells)
        return counted.reshape(n_groups, n_cells).astype(np.float64)

    def _count_rows(self, number: int, rows: Places | slice) -> Vector:
        """Return how many of some rows show each cell of a table; shape (J,)."""
        table = self.tables[number]
        cells = table.cells[rows][self.left_of[table.node][rows]]
        return np.bincount(cells[cells >= 0], minlength=len(table.configs)).astype(np.float64)

    def _find_total(self, number: int, where: tuple[int, ...]) -> Vector:
        """Return the rows that show each cell of a table, of those that some columns place."""
        if where not in self.totals:
            placed = np.all([self.columns[k].codes >= 0 for k in where], axis=0)
            rows = slice(None) if placed.all() else np.flatnonzero(placed)
            self.totals[where] = [self._count_rows(k, rows) for k in range(len(self.tables))]
        return self.totals[where][number]

    def _compare_with(self, number: int, place: _Place, rows: Places) -> tuple[Vector, Vector]:
        """Return the rows that show each cell of a table: those at a place, and all; (J,) each."""
        where = tuple(column for column, _, _ in place)
        share = self.turnover[number, list(where)].min()
        here, total = self._count_rows(number, rows), self._find_total(number, where)
        return share * here, share * total

    def _pay_all(self, place: _Place, numbers: Iterable[int] | None = None) -> dict[int, float]:
        """Return what tables gain at a place before the yardstick; of those that gain.

        numbers : of the tables; None: all.
        """
        rows = self.rows_of(place)
        gains = {
            number: self._keep(partial(self._pay_at, number, place, rows), number, place)
            for number in (range(len(self.tables)) if numbers is None else numbers)
        }
        return {number: gain for number, gain in gains.items() if gain > 0}

    def _pay_at(self, number: int, place: _Place, rows: Places) -> float:
        """Return what a table gains at a place before the yardstick."""
        here, total = self._compare_with(number, place, rows)
        return float(_pay(self.tables[number], here[None], total, len(self.tables))[0])

    def _choose_best(self, gains: Mapping[int, float]) -> list[int]:
        """Return the table of each node that gains most."""
        order = sorted(gains, key=lambda number: gains[number])
        return [*{self.tables[number].node: number for number in order}.values()]

    def _sum_best(self, gains: Mapping[int, float]) -> float:
        """Return what the tables that gain most for their nodes gain together."""
        return sum(gains[number] for number in self._choose_best(gains))

    def _weigh(self, place: _Place) -> _Slice | None:
        """Return what tables gain at a place over the spread among others; None if not clear."""
        paid, price = self._pay_all(place), np.log(self.count_places([k for k, *_ in place]))
        if self._sum_best(paid) - price < LEAST_GAIN:
            return None
        sized = {number: self._weigh_table(number, place) for number in paid}
        gains = {number: gain for number, (gain, _) in sized.items() if gain > 0}
        gain = self._sum_best(gains) - price
        if gain < LEAST_GAIN:
            return None
        return _Slice(place, gain, gains, {number: sized[number][1] for number in gains})

    def _weigh_table(self, number: int, place: _Place) -> tuple[float, float]:
        """Return the gain of a table at a place over the spread among others, and its size."""
        return self._keep(partial(self._weigh_at, number, place), number, "spread", place)

    def _weigh_at(self, number: int, place: _Place) -> tuple[float, float]:
        table, turnover = self.tables[number], self.turnover[number]
        here, total = self._compare_with(number, place, self.rows_of(place))
        ratio, free, rows = (float(each[0]) for each in _measure(table, here[None], total))
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
        return float(find_gain(evidence, free, rows, len(self.tables))), x / free

    def describe(self, found: _Slice) -> Difference | None:
        """Return what differs at a place: the tables that differ by themselves, or else all."""
        large = {k: gain for k, gain in found.gains.items() if found.sizes[k] >= LEAST_RATIO}
        if not large:
            return None
        least = LEAST_GAIN if max(large.values()) >= LEAST_GAIN else 0.0
        numbers = sorted((k for k in large if large[k] >= least), key=lambda k: -large[k])
        differing = [self.tables[number] for number in numbers]
        parts, runs = zip(
            *(self.columns[column].describe(*ends) for column, *ends in found.place), strict=True
        )
        inside = self.rows_of(found.place)
        inside = inside[self.left_of[differing[0].node][inside]]
        return Difference(
            parts,
            tuple(dict.fromkeys(table.node for table in differing if not table.is_missing)),
            tuple(table.node for table in differing if table.is_missing),
            inside,
            len(inside),
            found.gain,
            max(found.sizes[number] for number in numbers),
            runs,
        )


def _choose_largest(gains: Mapping[_Place, float]) -> list[_Place]:
    """Return the places that gain most."""
    return nlargest(MOST_SETTLED, gains, key=lambda place: gains[place])


def _pay(table: ComparedTable, inside: Vector, total: Vector, n_tried: float) -> Vector:
    """Return the gain of each place before the yardstick; shape (places,).

    None holds most of the rows: what they show is no exception.
    """
    ratios, free, rows = _measure(table, inside, total)
    return np.where(2 * rows <= total.sum(), find_gain(ratios, free, rows, n_tried), -np.inf)


def _tell_groups(table: ComparedTable, counts: Vector, total: Vector, ends: list[int]) -> Vector:
    """Return how much likelier the rows of each group are by the table of a run; (groups,)."""
    here = counts[ends[0] : ends[1] + 1].sum(axis=0)
    usual = _normalise(total - here + 1 / len(total), table.configs)
    own = _normalise(here + usual, table.configs)
    told: Vector = counts @ np.log(own / usual)
    return told


def _normalise(counts: Vector, configs: Places) -> Vector:
    """Return the share of each cell among those of its configuration."""
    return np.divide(counts, np.bincount(configs, counts)[configs])


def _measure(table: ComparedTable, inside: Vector, total: Vector) -> tuple[Vector, Vector, Vector]:
    """Return the log-likelihood ratio, the free numbers and the rows of each place."""
    rows = inside.sum(axis=1)
    is_enough = (rows >= LEAST_ROWS) & (total.sum() - rows >= LEAST_OTHERS * LEAST_ROWS)
    ratios, free = table.compare(inside, total)
    return np.where(is_enough, ratios, 0.0), free, rows


def _find_spread(table: ComparedTable, others: Vector) -> float:
    """Return how much other values differ, as `(2 L / f - 1) / n` beyond what chance gives."""
    total = others.sum(axis=0)
    ratios, free, rows = _measure(table, others, total)
    excess = 2 * ratios / free - 1 - CHANCE * np.sqrt(2 / free)
    return max(_find_quantile(excess / rows, YARDSTICK), 0.0)


def _find_quantile(values: Vector, share: float) -> float:
    """Return a quantile of a few values, in a twentieth of the time of NumPy's general one."""
    place = share * (len(values) - 1)
    return float(np.interp(place, np.arange(len(values)), np.sort(values)))
