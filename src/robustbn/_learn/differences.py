"""Tables that are another at one place: one site, one period, one stretch of rows.

Each value of a context column is compared with all the others, table by table. Values differ
naturally, so the yardstick is not zero but the spread among the other values. With the
log-likelihood ratio L of a value's own table, its f free numbers and its n rows,

    t = spread among the others: (2 L / f - 1) / n, its upper tenth
    x = 2 L / (1 + n t)
    evidence = (v + f) / 2 log(1 + x / v),    v = 2 + f / 2 for each of the others

is the log-likelihood ratio of a shift whose natural size is known from v numbers only. It is paid
for like any explanation (`find_gain`). Of the places that gain so, the one whose own tables gain
most over zero is taken, its rows are set aside, and the rest is compared again.

Rows whose node is as in the row before say nothing new: a table that is sorted by a node, or a node
that hangs on the place by what it means (the continent of a country), differs everywhere. With the
rows in the order of the context, each is counted as often as the node changes from row to row, over
how often it would in any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.layout import Codes, Layout
from robustbn._core.origins import ContextColumn, Difference, GroupRun, Groups
from robustbn._core.protocols import Vector
from robustbn._learn.gain import find_gain

LEAST_ROWS = 20  # of a place, and of a value that is part of the yardstick
LEAST_OTHERS = 3  # values that make a yardstick: two say little of the spread among values
YARDSTICK = 0.9  # quantile of the spread among the others: some of them stand out naturally, too
MOST_STRETCHES = 40  # of times, numbers and row numbers: 1 is 2.5 % of the rows
CHANCE = 1.28  # standard deviations: the same quantile of what chance alone gives
MOST_CROSSED = 12  # values of a column that are looked at together with periods
CROSSED = ("hours", "rows")  # periods, and stretches of rows: what values are looked at with
MOST_VALUES = 200  # of a context column that are compared; those with fewer rows are not
MOST_CELLS = 4_000  # of a table that is compared: cells times values bound memory and time
FINE = 10  # intervals of a number that is compared by itself: a drift moves few rows by a quarter
MANY_FREE = 60  # free numbers of a table: a change of its node alone costs far fewer
MOST_PLACES = 4  # that are returned
LEAST_GAIN = 10.0  # nats beyond the price: odds of 20,000 to 1
LEAST_EFFECT = 0.02  # nats a row: less is of no interest, however certain
LEAST_RATIO = 4.0  # times the spread among other values

Places = NDArray[np.int64]
_Place = tuple[tuple[int, int, int], ...]  # a column, its first and its last group; one or two


@dataclass(frozen=True, eq=False)
class ComparedTable:
    """A table that is compared: the cell of each row, and the configuration of each cell.

    Parameters
    ----------
    node : number of the node.
    is_missing : whether the table says how often the node's value is missing.
    states : of the node, whatever its parents are; shape (n,).
    cells : of the rows, -1 where a row does not show the family; shape (n,).
    configs : of the cells; shape (J,).
    """

    node: int
    is_missing: bool
    states: NDArray[np.integer[Any]]
    cells: Places
    configs: Places


@dataclass(frozen=True, eq=False)
class _Context:
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
        states = table.states[self.order]
        shares = np.unique(states, return_counts=True)[1] / max(len(states), 1)
        by_chance = 1 - float(shares @ shares)
        return min(float((states[1:] != states[:-1]).mean()) / by_chance, 1.0) if by_chance else 1.0

    @cached_property
    def runs(self) -> tuple[Places, Places]:
        """Where places start and end: single values, or runs of up to half of the stretches.

        None holds most of the rows: what they show is no exception.
        """
        n = len(self.firsts)
        starts, ends = np.triu_indices(n) if self.groups.has_periods else (np.arange(n),) * 2
        sizes = np.bincount(self.codes[self.codes >= 0], minlength=n)
        upto = np.append(0, np.cumsum(sizes))
        is_place = (ends - starts < max(n // 2, 1)) & (
            2 * (upto[ends + 1] - upto[starts]) <= upto[-1]
        )
        return starts[is_place], ends[is_place]


def make_tables(layout: Layout, codes: Codes) -> list[ComparedTable]:
    """Return the tables of some rows; where values are missing, those of their being missing.

    A node whose table has very many free numbers is compared without its parents, too.
    """
    found = []
    for i, family in enumerate(layout.families):
        table = _make_table(layout, codes, family)
        found += [table] if 1 < len(table.configs) <= MOST_CELLS else []
        if len(table.configs) - len(np.unique(table.configs)) > MANY_FREE and len(family) > 1:
            found.append(_make_table(layout, codes, (i,)))
        is_hole = codes[:, i] >= layout.cards[i]
        if is_hole.any() and not is_hole.all():
            of_both = np.zeros(2, np.int64)
            holes = is_hole.astype(np.int64)
            found.append(ComparedTable(i, True, holes, holes, of_both))
    return found


def _make_table(layout: Layout, codes: Codes, family: Sequence[int]) -> ComparedTable:
    """Return the table of the last member of a family given the others."""
    cards = np.array([layout.cards[k] for k in family])
    values = codes[:, list(family)].astype(np.int64)
    is_shown = (values < cards).all(axis=1)
    strides = np.append(np.cumprod(cards[::-1])[::-1][1:], 1)
    used, places = np.unique(values[is_shown] @ strides, return_inverse=True)
    cells = np.full(len(codes), -1, np.int64)
    cells[is_shown] = places
    _, configs = np.unique(used // cards[-1], return_inverse=True)
    return ComparedTable(family[-1], False, codes[:, family[-1]], cells, configs)


def make_fine_table(node: int, values: Vector) -> ComparedTable:
    """Return the table of a node's numbers alone, in more intervals than it is cut into."""
    is_there = np.isfinite(values)
    ends = (
        np.unique(np.quantile(values[is_there], np.arange(1, FINE) / FINE))
        if is_there.any()
        else values[:0]
    )
    cells = np.where(is_there, np.searchsorted(ends, values, side="right"), -1).astype(np.int64)
    return ComparedTable(node, False, cells, cells, np.zeros(len(ends) + 1, np.int64))


def find_differences(
    tables: Sequence[ComparedTable], context: Sequence[ContextColumn]
) -> list[Difference]:
    """Return the places at which tables are others than elsewhere, the largest gain first.

    O(n) time for each table and column of context; memory bounded.

    Parameters
    ----------
    tables : of some rows, as `make_tables` gives them.
    context : groups of the same rows; shape (n,) each.
    """
    gathered = [_gather(k, column) for k, column in enumerate(context)]
    columns = [each for each in gathered if each is not None]
    if not tables or not columns:
        return []
    turnover = np.array([[each.find_turnover(table) for each in columns] for table in tables])
    left, found = np.ones(len(tables[0].cells), bool), list[Difference]()
    for _ in range(2 * MOST_PLACES):
        rest = _Rest(tables, columns, turnover, left)
        best = max(rest.measure_all(), default=None, key=lambda each: each[0])
        if best is None or len(found) == MOST_PLACES:
            break
        place = rest.describe(best[1])
        if place is not None:
            found.append(place)
        left = left & ~rest.rows_of(best[1])
    return found


def _gather(number: int, column: ContextColumn) -> _Context | None:
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
    return _Context(number, column.groups, codes, firsts, lasts)


class _Rest:
    """The rows that are left, counted by table and place."""

    def __init__(
        self,
        tables: Sequence[ComparedTable],
        columns: Sequence[_Context],
        turnover: Vector,
        left: NDArray[np.bool_],
    ) -> None:
        self.tables, self.columns, self.left = tables, columns, left
        self.turnover = turnover
        self.n_tried = len(tables) * sum(len(each.runs[0]) for each in columns)
        self.pairs = [
            (a, b)
            for a, b in product(range(len(columns)), repeat=2)
            if not columns[a].groups.is_ordered
            and len(columns[a].firsts) <= MOST_CROSSED
            and columns[b].groups.has_periods
            and columns[b].groups.kind in CROSSED
            and len(columns[b].runs[0])
        ]
        self.n_crossed = len(tables) * sum(
            len(columns[a].runs[0]) * len(columns[b].runs[0]) for a, b in self.pairs
        )

    def rows_of(self, place: _Place) -> NDArray[np.bool_]:
        """Return which of the rows that are left lie at a place."""
        inside = self.left.copy()
        for column, first, last in place:
            codes = self.columns[column].codes
            inside &= (codes >= first) & (codes <= last)
        return inside

    def measure_all(self) -> Iterator[tuple[float, _Place]]:
        """Yield what differs most and clearly, for every table and column: its gain, its place."""
        for number, table in enumerate(self.tables):
            for k, column in enumerate(self.columns):
                if not len(column.runs[0]):
                    continue
                counts = self._count(table, column.codes, len(column.firsts))
                counts *= self.turnover[number, k]
                firsts, lasts = column.runs
                upto = np.vstack([np.zeros((1, counts.shape[1])), np.cumsum(counts, axis=0)])
                paid, best = _find_best(
                    table, upto[lasts + 1] - upto[firsts], upto[-1], self.n_tried
                )
                place = ((k, int(firsts[best]), int(lasts[best])),)
                if self._is_clear(number, place, paid, self.n_tried):
                    yield paid, place
            for pair in self.pairs:
                yield from self._measure_pair(number, *pair)

    def _measure_pair(self, number: int, a: int, b: int) -> Iterator[tuple[float, _Place]]:
        """Yield what differs most where a value of one column meets a run of another."""
        table = self.tables[number]
        one, other = self.columns[a], self.columns[b]
        n_values, n_stretches = len(one.firsts), len(other.firsts)
        is_both = (one.codes >= 0) & (other.codes >= 0)
        codes = np.where(is_both, one.codes * n_stretches + other.codes, -1)
        counts = self._count(table, codes, n_values * n_stretches)
        counts = self.turnover[number, b] * counts.reshape(n_values, n_stretches, -1)
        total, (firsts, lasts) = counts.sum(axis=(0, 1)), other.runs
        n_tried = self.n_tried + self.n_crossed
        for value in one.runs[0].tolist():
            upto = np.vstack([np.zeros((1, len(total))), np.cumsum(counts[value], axis=0)])
            paid, best = _find_best(table, upto[lasts + 1] - upto[firsts], total, n_tried)
            place = (a, value, value), (b, int(firsts[best]), int(lasts[best]))
            if self._is_clear(number, place, paid, n_tried):
                yield paid, place

    def _is_clear(self, number: int, place: _Place, paid: float, n_tried: float) -> bool:
        """Whether a place gains, with the spread among others as the yardstick, too."""
        return paid >= LEAST_GAIN and self._weigh(number, place, n_tried)[0] >= LEAST_GAIN

    def _count(self, table: ComparedTable, codes: Places, n_groups: int) -> Vector:
        """Return how many rows of each group show each cell; shape (groups, J)."""
        n_cells = len(table.configs)
        some = self.left & (codes >= 0) & (table.cells >= 0)
        places = codes[some] * n_cells + table.cells[some]
        counted = np.bincount(places, minlength=n_groups * n_cells)
        return counted.reshape(n_groups, n_cells).astype(np.float64)

    def _weigh(self, number: int, place: _Place, n_tried: float) -> tuple[float, float]:
        """Return the gain of a place over the spread among others, and its size in spreads."""
        table, turnover = self.tables[number], self.turnover[number]
        share = min(turnover[column] for column, _, _ in place)
        inside = self.rows_of(place) & (table.cells >= 0)
        n_cells = len(table.configs)
        here = share * np.bincount(table.cells[inside], minlength=n_cells)[None]
        some = self.left & (table.cells >= 0)
        total = share * np.bincount(table.cells[some], minlength=n_cells)
        ratio, free, rows = (float(each[0]) for each in _measure(table, here, total))
        if ratio - free / 2 < LEAST_EFFECT * rows:
            return 0.0, 0.0
        spread, n_others = 0.0, 0
        for column, first, last in place:
            counts = self._count(
                table, self.columns[column].codes, len(self.columns[column].firsts)
            )
            others = turnover[column] * np.delete(counts, slice(first, last + 1), axis=0)
            others = others[others.sum(axis=1) >= LEAST_ROWS]
            if len(others) < LEAST_OTHERS:
                return 0.0, 0.0
            spread += _find_spread(table, others)
            n_others += len(others)
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
        parts, runs = [], []
        for column, first, last in place:
            context = self.columns[column]
            groups, ends = context.groups, (int(context.firsts[first]), int(context.lasts[last]))
            label = (groups.ends or groups.labels)[ends[1]]
            parts.append((groups.name, groups.labels[ends[0]], label))
            runs.append(GroupRun(context.number, *ends))
        inside = np.flatnonzero(self.rows_of(place))
        return Difference(
            tuple(parts),
            tuple(dict.fromkeys(table.node for _, _, table in found if not table.is_missing)),
            tuple(table.node for _, _, table in found if table.is_missing),
            inside,
            len(inside),
            sum(gain for gain, _, _ in found),
            max(size for _, size, _ in found),
            tuple(runs),
        )


def _find_best(
    table: ComparedTable, inside: Vector, total: Vector, n_tried: float
) -> tuple[float, int]:
    """Return the largest gain of a place before the yardstick, and which place it is."""
    ratios, free, rows = _measure(table, inside, total)
    paid = find_gain(ratios, free, rows, n_tried)
    best = int(np.argmax(paid))
    return float(paid[best]), best


def _measure(table: ComparedTable, inside: Vector, total: Vector) -> tuple[Vector, Vector, Vector]:
    """Return the log-likelihood ratio, the free numbers and the rows of each place."""
    rest, rows = total - inside, inside.sum(axis=1)
    is_enough = (rows >= LEAST_ROWS) & (rest.sum(axis=1) >= LEAST_OTHERS * LEAST_ROWS)
    ratios = _fit(inside, table.configs) + _fit(rest, table.configs)
    ratios -= _fit(total[None], table.configs)
    return np.where(is_enough, ratios, 0.0), _free(inside, rest, table.configs), rows


def _find_spread(table: ComparedTable, others: Vector) -> float:
    """Return how much other values differ, as `(2 L / f - 1) / n` beyond what chance gives."""
    total = others.sum(axis=0)
    ratios, free, rows = _measure(table, others, total)
    excess = 2 * ratios / free - 1 - CHANCE * np.sqrt(2 / free)
    return max(float(np.quantile(excess / rows, YARDSTICK)), 0.0)


def _fit(counts: Vector, configs: Places) -> Vector:
    """Return the log-likelihood of tables of their own: `sum c log c - sum C log C`; shape (k,)."""
    starts = np.flatnonzero(np.append(True, configs[1:] != configs[:-1]))
    totals = np.add.reduceat(counts, starts, axis=1)
    fitted: Vector = _xlogx(counts).sum(axis=1) - _xlogx(totals).sum(axis=1)
    return fitted


def _xlogx(values: Vector) -> Vector:
    return values * np.log(np.maximum(values, 1.0))


def _free(counts: Vector, rest: Vector, configs: Places) -> Vector:
    """Return the free numbers of own tables: states less one, of configurations on both sides."""
    starts = np.flatnonzero(np.append(True, configs[1:] != configs[:-1]))
    is_shown = np.add.reduceat((counts + rest > 0).astype(np.int64), starts, axis=1)
    sides = [np.add.reduceat(side, starts, axis=1) > 0 for side in (counts, rest)]
    free: Vector = np.where(sides[0] & sides[1], is_shown - 1, 0).sum(axis=1).astype(np.float64)
    return np.maximum(free, 1.0)
