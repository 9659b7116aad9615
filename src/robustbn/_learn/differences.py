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
most over zero is taken, its rows are set aside, and the rest is compared again.

Runs are found in two steps: windows of every length that overlap by half are tried, and the ends of
the best one are moved to where the rows stop being more likely under its own table.

Along times and row numbers, rows whose node is as in the row before say nothing new: a table that
is sorted by a node, or has several rows of each person, differs everywhere. Each row is counted
there as often as the node changes from row to row, over how often it would in any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from robustbn._core.origins import ContextColumn, Difference, GroupRun, Groups
from robustbn._core.protocols import Vector
from robustbn._learn.compared_tables import ComparedTable, Places
from robustbn._learn.gain import find_gain

LEAST_ROWS = 20  # of a place, and of a value that is part of the yardstick
LEAST_OTHERS = 3  # values that make a yardstick: two say little of the spread among values
MOST_OTHERS = 40  # values that count as its measure: more say no more of how far one may lie out
YARDSTICK = 0.9  # quantile of the spread among the others: some of them stand out naturally, too
MOST_STRETCHES = 256  # of times, numbers and row numbers: 1 is 0.4 % of the rows
CHANCE = 1.28  # standard deviations: the same quantile of what chance alone gives
MOST_CROSSED = 12  # values of a column that are looked at together with periods
CROSSED = ("hours", "rows")  # periods, and stretches of rows: what values are looked at with
MOST_VALUES = 200  # of a context column that are compared; those with fewer rows are not
COUNTED_AT_ONCE = 2**21  # cells of places that are compared: bounds memory, changes nothing
MOST_MOVES = 4  # of the ends of a run: most need two
MOST_PLACES = 4  # that are returned
LEAST_GAIN = 10.0  # nats beyond the price: odds of 20,000 to 1
LEAST_EFFECT = 0.02  # nats a row: less is of no interest, however certain
LEAST_RATIO = 4.0  # times the spread among other values

_Place = tuple[tuple[int, int, int], ...]  # a column, its first and its last group; one or two


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
    gathered = [_gather(k, column) for k, column in enumerate(context)]
    columns = [each for each in gathered if each is not None]
    if not tables or not columns:
        return []
    left = np.ones(len(tables[0].cells), bool) if left is None else left
    turnover = np.array([[each.find_turnover(table) for each in columns] for table in tables])
    found = list[Difference]()
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
        self.pairs = [
            (a, b)
            for a, b in product(range(len(columns)), repeat=2)
            if not columns[a].groups.is_ordered
            and len(columns[a].firsts) <= MOST_CROSSED
            and columns[b].groups.has_periods
            and columns[b].groups.kind in CROSSED
        ]
        self.n_tried = len(tables) * sum(each.n_places for each in columns)
        self.n_crossed = len(tables) * sum(
            columns[a].n_places * columns[b].n_places for a, b in self.pairs
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
                total = counts.sum(axis=0)
                for _, paid, ends in _find_runs(table, counts[None], total, column, self.n_tried):
                    place = ((k, *ends),)
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
        share = self.turnover[number, [a, b]].min()
        counts = share * counts.reshape(n_values, n_stretches, -1)
        total, n_tried = counts.sum(axis=(0, 1)), self.n_tried + self.n_crossed
        values, n_places = one.runs[0], len(other.runs[0])
        step = max(COUNTED_AT_ONCE // max(n_places * len(total), 1), 1)
        for some in (values[k : k + step] for k in range(0, len(values), step)):
            for k, paid, ends in _find_runs(table, counts[some], total, other, n_tried):
                place = (a, int(some[k]), int(some[k])), (b, *ends)
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
            others = turnover[column] * self._count_others(table, self.columns[column], first, last)
            others = others[others.sum(axis=1) >= LEAST_ROWS]
            if len(others) < LEAST_OTHERS:
                return 0.0, 0.0
            spread += _find_spread(table, others)
            n_others += min(len(others), MOST_OTHERS)
        x, v = 2 * ratio / (1 + rows * spread), n_others * (2 + free / 2)
        evidence = (v + free) / 2 * np.log1p(x / v)
        return float(find_gain(evidence, free, rows, n_tried)), x / free

    def _count_others(
        self, table: ComparedTable, column: _Context, first: int, last: int
    ) -> Vector:
        """Return the cells of other values; of a run, those of others as short; shape (others, J).

        A run of few rows is compared with longer ones, which have rows enough; a long one with
        shorter ones, which are many.
        """
        counts = self._count(table, column.codes, len(column.firsts))
        sides = [counts[:first], counts[last + 1 :]]
        if column.groups.has_periods:
            usual = max(float(counts.sum()) / len(counts), 1e-9)
            short = min(last - first + 1, -(-len(counts) // MOST_OTHERS))
            step = max(short, int(np.ceil(2 * LEAST_ROWS / usual)))
            sides = [np.add.reduceat(s, np.arange(0, len(s), step)) for s in sides if len(s)]
        others: Vector = np.concatenate([counts[:0], *sides])
        is_large: NDArray[np.bool_] = others.sum(axis=1) >= LEAST_ROWS
        return others[is_large]

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


def _find_runs(
    table: ComparedTable, counts: Vector, total: Vector, column: _Context, n_tried: float
) -> Iterator[tuple[int, float, tuple[int, int]]]:
    """Yield the best place of each value: the value, the gain before the yardstick, its two ends.

    A value without a place that gains is left out.

    Parameters
    ----------
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
    paid = _pay(table, inside, total, n_tried)
    for value in np.unique(values[paid > 0]).tolist():
        best = int(np.argmax(np.where(values == value, paid, -np.inf)))
        found, ends = float(paid[best]), (int(firsts[places[best]]), int(lasts[places[best]]))
        for _ in range(MOST_MOVES if column.groups.has_periods else 0):
            moved = _move_ends(table, counts[value], total, ends)
            if moved == ends:
                break
            more = upto[value, moved[1] + 1] - upto[value, moved[0]]
            gain = float(_pay(table, more[None], total, n_tried)[0])
            if gain <= found:
                break
            found, ends = gain, moved
        yield value, found, ends


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
    upto = np.append(0.0, np.cumsum(counts @ np.log(own / usual)))
    gained = upto[1:] - np.minimum.accumulate(upto[:-1])
    last = int(np.argmax(gained))
    return int(np.argmin(upto[: last + 1])), last


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
