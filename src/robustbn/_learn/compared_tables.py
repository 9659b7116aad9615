"""The tables that are compared across places: which cell of each does every row show."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.layout import Codes, Layout
from robustbn._core.protocols import Vector
from robustbn._learn.gain import find_gain

MOST_CELLS = 4_000  # of a table that is compared: cells times values bound memory and time
FINE = 10  # intervals of a number that is compared by itself: a drift moves few rows by a quarter
LEAST_RANKED = 4 * FINE  # rows of a configuration, that ranks are told of
TILTS = np.linspace(-40.0, 40.0, 401)  # logs of density a rank: the strongest has all at one end
CUT_OFF = np.linspace(0.1, 0.99, 10)  # shares of a place's values that are of other rows
MOST_LEFT = 0.1  # share of what own tables gain, once put back: 0 where planted, 0.3 of wrong pairs
# Share of the numbers that are the same as in the row before, more than in any order: with more,
# rows depend on each other, and repeats are natural.
MOST_REPEATS = 0.2  # share: see above
LEAST_REPEATED = 20  # numbers of which it is known whether they are those of the row before
FREQUENT = 0.02  # share of the rows at which a number begins: with more, it comes again by chance
# People round to multiples of a power of ten, or of half of it.
TENS = range(-6, 9)  # powers of ten that are tried: finer numbers are not rounded
STEPS = tuple(float(f"{k}e{p}") for p in TENS for k in (1, 5))  # units of a column
STEP_OFF = 1e-6  # steps by which a multiple may be off for how numbers are kept
LEAST_ROUND = 0.01  # share of the numbers that are multiples of a step: fewer count as the rest
MOST_POWER = 4.0  # of factors: more is needed only where parents all but decide the state

Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ComparedTable:
    """A table that is compared: the cell of each row, and the configuration of each cell.

    Parameters
    ----------
    node : number of the node.
    is_missing : whether the table says how often the node's value is missing.
    states : of the node, or its ranks, whatever its parents are; shape (n,).
    cells : of the rows, -1 where a row does not show the family; shape (n,).
    configs : of the cells; shape (J,).
    """

    node: int
    is_missing: bool
    states: NDArray[np.integer[Any]]
    cells: Places
    configs: Places

    def compare(self, inside: Vector, total: Vector) -> tuple[Vector, Vector]:
        """Return the log-likelihood ratio of each place's own table, and its free numbers.

        Parameters
        ----------
        inside : rows of the places that show each cell; shape (places, J).
        total : of all rows; shape (J,).
        """
        n = len(inside)
        counts = np.concatenate([inside, total - inside, total[None]])
        sums = np.add.reduceat(counts, self.starts, axis=1)
        fits = _sum_xlogx(counts) - _sum_xlogx(sums)
        states = np.add.reduceat((total > 0).astype(np.float64), self.starts)
        free = ((sums[:n] > 0) & (sums[n:-1] > 0)) @ np.maximum(states - 1, 0.0)
        return fits[:n] + fits[n:-1] - fits[-1], np.maximum(free, 1.0)

    @cached_property
    def variety(self) -> float:
        """How often the node differs between two rows in any order."""
        shares = np.unique(self.states, return_counts=True)[1] / max(len(self.states), 1)
        return 1 - float(shares @ shares)

    @cached_property
    def starts(self) -> Places:
        """The first cell of each configuration."""
        return np.flatnonzero(np.append(True, self.configs[1:] != self.configs[:-1]))


@dataclass(frozen=True, eq=False)
class ComparedRanks(ComparedTable):
    """The ranks of a node's numbers, which a place shifts: one free number, however many cells."""

    def compare(self, inside: Vector, total: Vector) -> tuple[Vector, Vector]:
        """Return the log-likelihood ratio of a shift, and its free numbers; see `ComparedTable`.

        A place's ranks r have the density of all ranks times `exp(a r)`, made to sum to one.
        """
        usual, ranks = total / max(total.sum(), 1.0), np.arange(len(total)) / len(total)
        tilted = usual * np.exp(np.outer(TILTS, ranks))
        sums = tilted.sum(axis=1)
        means = tilted @ ranks / sums
        worth = TILTS * means - np.log(sums)
        ratios = np.zeros(len(inside))
        for side in (inside, total - inside):
            rows = side.sum(axis=1)
            ratios += rows * np.interp(side @ ranks / np.maximum(rows, 1.0), means, worth)
        return ratios, np.ones(len(inside))


@dataclass(frozen=True, eq=False)
class ComparedFactors(ComparedTable):
    """A table whose states a place makes more or less likely, in all configurations alike.

    It has one free number for each state but one, however many configurations there are.

    Parameters
    ----------
    of_cells : state of each cell; shape (J,).
    """

    of_cells: Places

    def compare(self, inside: Vector, total: Vector) -> tuple[Vector, Vector]:
        """Return the log-likelihood ratio of a factor for each state; see `ComparedTable`.

        A place has `P(k | c) s_k`, made to sum to one in each configuration c. The likelihood is
        that of `s = (seen / expected) ** w`, with the best w of a quadratic approximation: any s
        bounds the largest likelihood from below, and of two states this one is near it.
        """
        is_of = (self.of_cells[:, None] == np.unique(self.of_cells)).astype(np.float64)
        table = np.add.reduceat(total[:, None] * is_of, self.starts, axis=0)
        table /= np.maximum(table.sum(axis=1, keepdims=True), 1.0)
        rows, seen = np.add.reduceat(inside, self.starts, axis=1), inside @ is_of
        expected = rows @ table
        logs = np.log((seen + 0.5) / (expected + 0.5))
        curve = (expected * logs**2).sum(axis=1) - (rows * (logs @ table.T) ** 2).sum(axis=1)
        slope = ((seen - expected) * logs).sum(axis=1)
        logs *= np.clip(slope / np.maximum(curve, 1e-9), 1.0, MOST_POWER)[:, None]
        sums = np.maximum(np.exp(logs) @ table.T, 1e-300)  # 0 where no row is left
        ratios = (seen * logs).sum(axis=1) - (rows * np.log(sums)).sum(axis=1)
        return ratios, np.full(len(inside), max(np.count_nonzero(table.any(axis=0)) - 1.0, 1.0))


@dataclass(frozen=True, eq=False)
class ComparedLinks(ComparedFactors):
    """A table from whose parents a place cuts the node off: one free number, the share of rows."""

    def compare(self, inside: Vector, total: Vector) -> tuple[Vector, Vector]:
        """Return the log-likelihood ratio of a mixture with other rows' values; `ComparedTable`.

        A place has `(1 - a) P(k | c) + a P(k)`: a share a of its values is of any rows.
        """
        n = max(total.sum(), 1.0)
        given = total / np.maximum(np.add.reduceat(total, self.starts), 1e-9)[self.configs]
        alone = np.bincount(self.of_cells, total)[self.of_cells] / n
        times = np.divide(alone, given, out=np.ones_like(alone), where=given > 0)
        logs = np.log1p(np.outer(times - 1, CUT_OFF))
        return np.maximum((inside @ logs).max(axis=1), 0.0), np.ones(len(inside))


def make_tables(
    layout: Layout, codes: Codes, nodes: Collection[int] = (), but: int | None = None
) -> list[ComparedTable]:
    """Return the tables of some rows; where values are missing, those of their being missing.

    One with too many cells is that of the node without its parents.

    Parameters
    ----------
    nodes : that the families must hold one of; empty: all families.
    but : a node that they must not hold.
    """
    found = list[ComparedTable]()
    for i, family in enumerate(layout.families):
        if but in family or (nodes and not {*nodes} & {*family}):
            continue
        tables = _make_tables(layout, codes, family)
        if len(tables[0].configs) > MOST_CELLS:
            tables = _make_tables(layout, codes, (i,))
        found += tables if len(tables[0].configs) > 1 else []
        is_hole = codes[:, i] >= layout.cards[i]
        if is_hole.any() and not is_hole.all():
            of_both = np.zeros(2, np.int64)
            holes = is_hole.astype(np.int64)
            found.append(ComparedTable(i, True, holes, holes, of_both))
    return found


def _make_tables(layout: Layout, codes: Codes, family: Sequence[int]) -> list[ComparedTable]:
    """Return the table of the last member of a family given the others; its factors, if any."""
    node, card = family[-1], layout.cards[family[-1]]
    joint, is_shown = layout.joint_states(codes, family)
    used, places = np.unique(joint[is_shown], return_inverse=True)
    cells = np.full(len(codes), -1, np.int64)
    cells[is_shown] = places
    _, configs = np.unique(used // card, return_inverse=True)
    table = ComparedTable(node, False, codes[:, node], cells, configs)
    if len(table.starts) < 2:
        return [table]
    given = node, False, codes[:, node], cells, configs, used % card
    return [table, ComparedFactors(*given), ComparedLinks(*given)]


def make_number_tables(
    layout: Layout, codes: Codes, node: int, values: Vector
) -> Iterator[ComparedTable]:
    """Yield the tables of the ranks of a node's numbers, among all rows and given its parents.

    In more intervals than the node is cut into: by their own table, and by a shift of all of them.
    """
    everyone = np.zeros(len(values), np.int64)
    of_rows = [everyone]
    if len(layout.families[node]) > 1:
        configs, is_shown = layout.joint_states(codes, layout.families[node][:-1])
        of_rows.append(np.where(is_shown, configs, -1))
    for configs in of_rows:
        ranks = _rank_within(configs, values)
        cells = np.where(np.isnan(ranks), -1, np.floor(np.nan_to_num(ranks) * FINE))
        cells = cells.astype(np.int64)
        for kind in (ComparedTable, ComparedRanks) if (cells >= 0).any() else ():
            yield kind(node, False, cells, cells, np.zeros(FINE, np.int64))


def make_repeat_tables(node: int, values: Vector, rows: Places) -> Iterator[ComparedTable]:
    """Yield the table of how often a node's number is that of the row before, if that is unusual.

    Numbers that were copied down, or a sensor that is read seldom, leave such a place.

    Parameters
    ----------
    rows : numbers of the rows in the table: some rows have none before them; shape (n,).
    """
    is_same, is_known = _find_repeats(values, rows)
    if is_known.any() and is_same[is_known].mean() < MOST_REPEATS:
        cells = np.where(is_known, is_same.astype(np.int64), -1)
        yield ComparedTable(node, False, cells, cells, np.zeros(2, np.int64))


def _find_repeats(values: Vector, rows: Places) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which numbers are those of the row before, and for which that says something; (n,)."""
    before = np.append(np.nan, values[:-1])
    numbers, places = np.unique(values, return_inverse=True)
    times = np.bincount(places[values != before], minlength=len(numbers))  # it began
    is_rare = np.isfinite(numbers) & (times <= FREQUENT * len(values))
    is_known = is_rare[places] & np.isfinite(before) & np.append(False, np.diff(rows) == 1)
    return is_known & (values == before), is_known


def measure_repeats(
    values: Vector, rows: Places, is_inside: NDArray[np.bool_]
) -> tuple[float, float] | None:
    """Return how often a number is that of the row before, at a place and elsewhere.

    None if it is not more often there than by chance, too, or hardly known.

    Parameters
    ----------
    rows : numbers of the rows in the table; shape (n,).
    is_inside : which of them lie at the place; shape (n,).
    """
    is_same, is_known = _find_repeats(values, rows)
    sides = [is_known & is_inside, is_known & ~is_inside]
    if min(np.count_nonzero(side) for side in sides) < LEAST_REPEATED:
        return None
    here, elsewhere = (float(is_same[side].mean()) for side in sides)
    shares = np.unique(values[sides[0]], return_counts=True)[1] / np.count_nonzero(sides[0])
    is_clear = elsewhere < MOST_REPEATS < here - float(shares @ shares)
    return (here, elsewhere) if is_clear else None


def make_step_tables(node: int, values: Vector) -> Iterator[ComparedTable]:
    """Yield the table of how round a node's numbers are: the largest step each is a multiple of.

    Somebody who rounds or guesses, or another device, leaves such a place, though the numbers
    hardly change.
    """
    levels = find_levels(values)
    counts = np.bincount(levels[levels >= 0], minlength=len(STEPS))
    used = np.flatnonzero(counts >= max(LEAST_ROUND * counts.sum(), LEAST_REPEATED))
    if len(used) > 1:
        cells = np.clip(np.searchsorted(used, levels, side="right") - 1, 0, None)
        cells = np.where(levels >= 0, cells, -1)
        yield ComparedTable(node, False, cells, cells, np.zeros(len(used), np.int64))


def find_levels(values: Vector) -> Places:
    """Return which of `STEPS` is the largest that each number is a multiple of; -1 for 0 and NaN.

    The first one stands for smaller ones, too.

    >>> [STEPS[level] for level in find_levels(np.array([30.0, 31.0, 1.75, 1500.0]))]
    [10.0, 1.0, 0.05, 500.0]
    """
    distinct, places = np.unique(values, return_inverse=True)
    is_known = np.isfinite(distinct) & (distinct != 0)
    levels = is_known - 1
    for level, step in enumerate(STEPS):
        times = np.where(is_known, np.abs(distinct), 0.0) / step
        levels[(times > 1 / 2) & (np.abs(times - np.round(times)) <= STEP_OFF)] = level
    found: Places = levels[places]
    return found


def find_own_gain(
    layout: Layout,
    codes: Codes,
    numbers: Mapping[int, Vector],
    nodes: Collection[int],
    rows: Places,
    but: int | None = None,
) -> float:
    """Return what tables of its own gain at a place, in nats, over the families of some nodes.

    Parameters
    ----------
    codes, numbers : of some rows, and the original numbers of nodes that are cut into intervals.
    rows : which of them lie at the place.
    but : a node whose families are not compared.
    """
    tables = make_tables(layout, codes, nodes, but)
    for node in {table.node for table in tables} & {*numbers}:
        tables += make_number_tables(layout, codes, node, numbers[node])
    gains = dict[int, float]()
    for table in tables:
        if not table.is_missing:
            cells, n_cells = table.cells[rows], len(table.configs)
            here = np.bincount(cells[cells >= 0], minlength=n_cells)[None].astype(np.float64)
            total = np.bincount(table.cells[table.cells >= 0], minlength=n_cells)
            ratio, free = table.compare(here, total.astype(np.float64))
            gain = float(find_gain(ratio, free, here.sum())[0])
            gains[table.node] = max(gains.get(table.node, 0.0), gain)
    return sum(gains.values())


def _rank_within(configs: Places, values: Vector) -> Vector:
    """Return the share of the rows of its configuration that have a smaller number than a row.

    Of equal numbers half are smaller. NaN where there is no number, or too few to compare.
    """
    ranks = np.full(len(values), np.nan)
    some = np.flatnonzero(np.isfinite(values) & (configs >= 0))
    some = some[np.lexsort((values[some], configs[some]))]
    if not len(some):
        return ranks
    groups, numbers = configs[some], values[some]
    is_new = np.append(True, groups[1:] != groups[:-1])
    is_other = is_new | np.append(True, numbers[1:] != numbers[:-1])
    starts, at = np.flatnonzero(is_new), np.cumsum(is_new) - 1
    sizes = np.diff(np.append(starts, len(some)))
    ties = np.flatnonzero(is_other)
    middle = (ties + np.append(ties[1:], len(some))) / 2
    found = (middle[np.cumsum(is_other) - 1] - starts[at]) / sizes[at]
    ranks[some] = np.where(sizes[at] >= LEAST_RANKED, found, np.nan)
    return ranks


def _sum_xlogx(values: Vector) -> Vector:
    total: Vector = np.einsum("...j,...j->...", values, np.log(np.maximum(values, 1.0)))
    return total
