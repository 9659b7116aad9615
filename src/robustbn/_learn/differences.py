"""Tables that are another at one place: one site, one period, one stretch of rows.

Each value of a context column is compared with all the others, table by table. Values differ
naturally, so the yardstick is not zero but the spread among the other values. With the
log-likelihood ratio L of a value's own table, its f free numbers and its n rows,

    t = spread among the others: (2 L / f - 1) / n, its upper tenth
    x = 2 L / (1 + n t)
    evidence = (v + f) / 2 log(1 + x / v),    v = 2 for each of the others

is the log-likelihood ratio of a shift whose natural size is known from v numbers only. It is paid
for like any explanation (`find_gain`). The place with the largest gain is taken, its rows are set
aside, and the rest is compared again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robustbn._core.layout import Codes, Layout
from robustbn._core.origins import ContextColumn, Difference, GroupRun, Groups
from robustbn._core.protocols import Vector
from robustbn._learn.gain import find_gain

LEAST_ROWS = 20  # of a place, and of a value that is part of the yardstick
LEAST_OTHERS = 3  # values that make a yardstick: two say little of the spread among values
SAY_OF_OTHERS = 2.0  # degrees of freedom that each of the others lends to the yardstick
YARDSTICK = 0.9  # quantile of the spread among the others: some of them stand out naturally, too
MOST_STRETCHES = 40  # of times, numbers and row numbers: 1 is 2.5 % of the rows
MOST_VALUES = 200  # of a context column that are compared; those with fewer rows are not
MOST_CELLS = 4_000  # of a table that is compared: cells times values bound memory and time
MOST_PLACES = 4  # that are returned
LEAST_GAIN = 10.0  # nats beyond the price: odds of 20,000 to 1
LEAST_EFFECT = 0.02  # nats a row: less is of no interest, however certain
LEAST_RATIO = 4.0  # times the spread among other values

Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ComparedTable:
    """A table that is compared: the cell of each row, and the configuration of each cell.

    Parameters
    ----------
    node : number of the node.
    is_missing : whether the table says how often the node's value is missing.
    cells : of the rows, -1 where a row does not show the family; shape (n,).
    configs : of the cells; shape (J,).
    states : of the cells; shape (J,).
    """

    node: int
    is_missing: bool
    cells: Places
    configs: Places
    states: Places


@dataclass(frozen=True, eq=False)
class _Context:
    """A column of context, its values in few groups: the group of each row, -1 for none."""

    number: int
    groups: Groups
    codes: Places
    firsts: Places
    lasts: Places


def make_tables(layout: Layout, codes: Codes) -> list[ComparedTable]:
    """Return the tables of some rows; where values are missing, those of their being missing."""
    found = []
    for i, family in enumerate(layout.families):
        cards = np.array([layout.cards[k] for k in family])
        values = codes[:, list(family)].astype(np.int64)
        is_shown = (values < cards).all(axis=1)
        strides = np.append(np.cumprod(cards[::-1])[::-1][1:], 1)
        numbers = values[is_shown] @ strides
        used, places = np.unique(numbers, return_inverse=True)
        if 1 < len(used) <= MOST_CELLS:
            cells = np.full(len(codes), -1, np.int64)
            cells[is_shown] = places
            _, configs = np.unique(used // cards[-1], return_inverse=True)
            found.append(ComparedTable(i, False, cells, configs, used % cards[-1]))
        is_hole = codes[:, i] >= layout.cards[i]
        if is_hole.any() and not is_hole.all():
            of_both = np.zeros(2, np.int64)
            found.append(ComparedTable(i, True, is_hole.astype(np.int64), of_both, np.arange(2)))
    return found


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
    n = len(tables[0].cells) if tables else 0
    gathered = [_gather(k, column) for k, column in enumerate(context)]
    columns = [each for each in gathered if each is not None]
    left, found = np.ones(n, bool), list[Difference]()
    while len(found) < MOST_PLACES and columns and left.sum() >= LEAST_OTHERS * LEAST_ROWS:
        best = _find_best(tables, columns, left)
        if best is None:
            break
        column, first, last = best
        inside = _rows_of(columns[column], first, last) & left
        place = _describe(tables, columns, best, inside, left)
        if place is not None:
            found.append(place)
        left &= ~inside
    return found


def _gather(number: int, column: ContextColumn) -> _Context | None:
    """Return a column in groups that are large enough; neighbours together where they have any."""
    codes, n_groups = column.codes.astype(np.int64), len(column.groups.labels)
    sizes = np.bincount(codes[codes >= 0], minlength=n_groups)
    if column.groups.is_ordered and n_groups > MOST_STRETCHES:
        upto = np.cumsum(sizes) - sizes / 2
        new = np.minimum((upto / max(sizes.sum(), 1) * MOST_STRETCHES).astype(np.int64), n_groups)
        _, new = np.unique(new, return_inverse=True)
        firsts = np.flatnonzero(np.append(True, new[1:] != new[:-1]))
        lasts = np.append(firsts[1:] - 1, n_groups - 1)
        codes = np.append(new, -1)[codes]
    elif column.groups.is_ordered:
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


def _rows_of(column: _Context, first: int, last: int) -> NDArray[np.bool_]:
    return (column.codes >= first) & (column.codes <= last)


def _find_best(
    tables: Sequence[ComparedTable], columns: Sequence[_Context], left: NDArray[np.bool_]
) -> tuple[int, int, int] | None:
    """Return the column and the first and last group of the place that gains most; None if none."""
    candidates = [
        (gain, column, first, last)
        for column, first, last, gain in _measure_all(tables, columns, left)
    ]
    gain, *place = max(candidates, default=(0.0, 0, 0, 0))
    return None if gain < LEAST_GAIN else (place[0], place[1], place[2])


def _measure_all(
    tables: Sequence[ComparedTable], columns: Sequence[_Context], left: NDArray[np.bool_]
) -> Iterator[tuple[int, int, int, float]]:
    """Yield the best place of every table in every column, with its gain."""
    n_tried = sum(len(_runs(each)[0]) for each in columns) * len(tables)
    for k, column in enumerate(columns):
        firsts, lasts = _runs(column)
        for table in tables:
            counts = _count(table, column, left)
            measured = _measure(table, counts, firsts, lasts)
            if measured is None:
                continue
            place = _choose(table, counts, firsts, lasts, *measured, n_tried)
            if place is not None:
                yield k, *place


def _runs(column: _Context) -> tuple[Places, Places]:
    """Return where places start and end: single values, or runs of up to half of the stretches."""
    n = len(column.firsts)
    if not column.groups.is_ordered:
        return np.arange(n), np.arange(n)
    firsts, lasts = np.triu_indices(n)
    is_short = lasts - firsts + 1 <= n // 2
    return firsts[is_short], lasts[is_short]


def _count(table: ComparedTable, column: _Context, left: NDArray[np.bool_]) -> Vector:
    """Return how many rows of each group show each cell; shape (K, J)."""
    n_groups, n_cells = len(column.firsts), len(table.configs)
    some = left & (column.codes >= 0) & (table.cells >= 0)
    places = column.codes[some] * n_cells + table.cells[some]
    return np.bincount(places, minlength=n_groups * n_cells).reshape(n_groups, n_cells) * 1.0


def _fit(counts: Vector, configs: Places) -> Vector:
    """Return the log-likelihood of tables of their own: `sum c log c - sum C log C`; shape (k,)."""
    starts = np.flatnonzero(np.append(True, configs[1:] != configs[:-1]))
    totals = np.add.reduceat(counts, starts, axis=1)
    return _xlogx(counts).sum(axis=1) - _xlogx(totals).sum(axis=1)


def _xlogx(values: Vector) -> Vector:
    return values * np.log(np.maximum(values, 1.0))


def _free(counts: Vector, rest: Vector, configs: Places) -> Vector:
    """Return the free numbers of own tables: states less one, of configurations on both sides."""
    starts = np.flatnonzero(np.append(True, configs[1:] != configs[:-1]))
    is_shown = np.add.reduceat((counts + rest > 0).astype(np.int64), starts, axis=1)
    sides = [np.add.reduceat(side, starts, axis=1) > 0 for side in (counts, rest)]
    free: Vector = np.where(sides[0] & sides[1], is_shown - 1, 0).sum(axis=1).astype(np.float64)
    return np.maximum(free, 1.0)


def _measure(
    table: ComparedTable, counts: Vector, firsts: Places, lasts: Places
) -> tuple[Vector, Vector, Vector] | None:
    """Return the log-likelihood ratio, the free numbers and the rows of each place."""
    upto = np.vstack([np.zeros((1, counts.shape[1])), np.cumsum(counts, axis=0)])
    inside = upto[lasts + 1] - upto[firsts]
    total = upto[-1:]
    rows = inside.sum(axis=1)
    rest = total - inside
    is_enough = (rows >= LEAST_ROWS) & (rest.sum(axis=1) >= LEAST_OTHERS * LEAST_ROWS)
    if not is_enough.any():
        return None
    ratios = _fit(inside, table.configs) + _fit(rest, table.configs)
    ratios -= _fit(total, table.configs)
    return np.where(is_enough, ratios, 0.0), _free(inside, rest, table.configs), rows


def _choose(
    table: ComparedTable,
    counts: Vector,
    firsts: Places,
    lasts: Places,
    ratios: Vector,
    free: Vector,
    rows: Vector,
    n_tried: float,
) -> tuple[int, int, float] | None:
    """Return the place that gains most over the spread among the others, and its gain."""
    paid = find_gain(ratios, free, rows, n_tried)
    best = int(np.argmax(paid))
    if paid[best] < LEAST_GAIN:
        return None
    first, last = int(firsts[best]), int(lasts[best])
    gain = _weigh(table, counts, (first, last), ratios[best], free[best], rows[best], n_tried)[0]
    return (first, last, gain) if gain >= LEAST_GAIN else None


def _weigh(
    table: ComparedTable,
    counts: Vector,
    place: tuple[int, int],
    ratio: float,
    free: float,
    rows: float,
    n_tried: float,
) -> tuple[float, float]:
    """Return the gain of a place over the spread among the others, and its size in spreads."""
    others = np.delete(counts, slice(place[0], place[1] + 1), axis=0)
    others = others[others.sum(axis=1) >= LEAST_ROWS]
    if len(others) < LEAST_OTHERS:
        return 0.0, 0.0
    total = others.sum(axis=0, keepdims=True)
    rest = total - others
    apart = _fit(others, table.configs) + _fit(rest, table.configs) - _fit(total, table.configs)
    excess = 2 * apart / _free(others, rest, table.configs) - 1
    spread = max(float(np.quantile(excess / others.sum(axis=1), YARDSTICK)), 0.0)
    x = 2 * ratio / (1 + rows * spread)
    v = SAY_OF_OTHERS * len(others)
    evidence = (v + free) / 2 * np.log1p(x / v)
    if ratio - free / 2 < LEAST_EFFECT * rows:
        return 0.0, 0.0
    return float(find_gain(evidence, free, rows, n_tried)), float(x / free)


def _describe(
    tables: Sequence[ComparedTable],
    columns: Sequence[_Context],
    best: tuple[int, int, int],
    inside: NDArray[np.bool_],
    left: NDArray[np.bool_],
) -> Difference | None:
    """Return what differs at a place: every table that gains there by itself."""
    column = columns[best[0]]
    nodes, missing, gains, sizes = [], [], [], []
    for table in tables:
        counts = _count(table, column, left)
        place = np.array([best[1]]), np.array([best[2]])
        measured = _measure(table, counts, *place)
        if measured is None:
            continue
        ratio, free, rows = (float(each[0]) for each in measured)
        gain, size = _weigh(table, counts, best[1:], ratio, free, rows, len(tables))
        if gain < LEAST_GAIN or size < LEAST_RATIO:
            continue
        (missing if table.is_missing else nodes).append((gain, table.node))
        gains.append(gain)
        sizes.append(size)
    if not gains:
        return None
    groups = column.groups
    first, last = int(column.firsts[best[1]]), int(column.lasts[best[2]])
    said = (groups.name, groups.labels[first], (groups.ends or groups.labels)[last])
    return Difference(
        (said,),
        tuple(node for _, node in sorted(nodes, reverse=True)),
        tuple(node for _, node in sorted(missing, reverse=True)),
        np.flatnonzero(inside),
        int(inside.sum()),
        float(sum(gains)),
        max(sizes),
        (GroupRun(column.number, first, last),),
    )
