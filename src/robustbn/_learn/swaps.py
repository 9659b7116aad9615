"""Two columns whose values were exchanged in some rows.

A swapped row is a good row under a one-to-one map of its values, so its density is known: that of
the row with the two values put back. For numbers that are cut into intervals the map is of the
numbers, not of the intervals, so a number's density is

    P(interval | parents) h(number) / P(interval),

h being a histogram of the column that is fine enough for both. Labels are their own histogram; a
label that is no state of the other column was not swapped. Every row is swapped with the same
probability; it, and all tables and histograms of the rows with their values put back, are found by
expectation-maximisation. A swap is worth the evidence that it brings, tables integrated out: a
lower bound of it, which is exact where it is clear who is swapped.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from robustbn._core.clues import Swap
from robustbn._core.config import CEILING
from robustbn._core.dirichlet import JEFFREYS, log_gamma
from robustbn._core.layout import Codes, Layout
from robustbn._core.protocols import Vector
from robustbn._core.row_model import logistic
from robustbn._learn.gain import find_gain

FINE = 64  # intervals of the histograms, as many of the numbers of both columns in each
MOST_STEPS = 50  # most pairs need fewer than ten
LEAST_GAIN = 10.0  # nats beyond the price: odds of 20,000 to 1
NEVER = -1e3  # log-odds of a swap that no row can show
CLEAR = 0.7  # mean probability of swapped rows: 0.74 to 1 where planted, 0.42 to 0.68 where not
MOST_PAIRS = 2_000  # pairs of columns: all of 63 columns, in two seconds or so
SCREENED = 4_000  # rows on which all pairs are looked at first
SHARES = (0.01, 0.1)  # of swapped rows, that are tried there
MOST_ODDS = 40.0  # log-odds: what is larger is sure

Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Numbers:
    """The numbers of a node that is cut into intervals.

    Parameters
    ----------
    values : of the rows, NaN where there is none; shape (n,).
    edges : inner ends of the intervals.
    """

    values: Vector
    edges: Vector

    @property
    def card(self) -> int:
        """How many states there are."""
        return len(self.edges) + 1

    def read(self, values: Vector) -> Places:
        """Return the states of values."""
        return np.searchsorted(self.edges, values, side="right").astype(np.int64)

    def refine(self, both: Vector) -> Numbers:
        """Return the column in intervals that are fine enough for the numbers of both columns."""
        return replace(self, edges=np.unique(np.quantile(both, np.arange(1, FINE) / FINE)))

    def shares(self, other: Column) -> bool:
        """Whether values of another column can be values of this one."""
        return isinstance(other, Numbers)


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of a node, numbered alike for all nodes.

    Parameters
    ----------
    values : of the rows, NaN where there is none; shape (n,).
    states : the state of each label, -1 if it is none of this node.
    card : how many states there are.
    """

    values: Vector
    states: Places
    card: int

    def read(self, values: Vector) -> Places:
        """Return the states of labels; -1 for one that is no state."""
        return self.states[values.astype(np.int64)]

    def refine(self, both: Vector) -> Labels:
        """Return the column: nothing is finer than labels."""
        return self

    def shares(self, other: Column) -> bool:
        """Whether values of another column can be values of this one."""
        return isinstance(other, Labels) and bool(((self.states >= 0) & (other.states >= 0)).any())


Column = Numbers | Labels


def find_swaps(layout: Layout, codes: Codes, columns: Mapping[int, Column]) -> list[Swap]:
    """Return pairs of columns that seem to be swapped in some rows, the largest gain first.

    O(n) time for each pair; of very many columns, only pairs that stand near each other are tried.

    Parameters
    ----------
    codes : of some rows; shape (n, d).
    columns : the numbers or labels of the same rows, by node.
    """
    near = sorted(combinations(columns, 2), key=lambda pair: abs(pair[1] - pair[0]))
    pairs = [(a, b) for a, b in near if columns[a].shares(columns[b])][:MOST_PAIRS]
    some = slice(None, None, max(-(-len(codes) // SCREENED), 1))
    few = {node: replace(each, values=each.values[some]) for node, each in columns.items()}
    likely = [pair for pair in pairs if _may_gain(layout, codes[some], few, pair)]
    found = [_find_swap(layout, codes, columns, pair, len(pairs)) for pair in likely]
    return sorted((swap for swap in found if swap is not None), key=lambda swap: -swap.gain)


def _may_gain(
    layout: Layout, codes: Codes, columns: Mapping[int, Column], pair: tuple[int, int]
) -> bool:
    """Return whether swapped rows, of any share, explain a few rows better by tables of all."""
    parts, never = _begin(layout, codes, columns, pair)[1:]
    if not len(never):
        return False
    as_is, swapped = np.sum([part.weigh(np.zeros(len(never))) for part in parts], axis=0)
    times = np.expm1(np.minimum(swapped - as_is + never, MOST_ODDS))
    return any(np.log1p(share * times).sum() > 0 for share in SHARES)


def _begin(
    layout: Layout, codes: Codes, columns: Mapping[int, Column], pair: tuple[int, int]
) -> tuple[NDArray[np.bool_], list[_Part], Vector]:
    """Return which rows show both columns, what swapping changes, and which cannot be swapped."""
    is_there = np.isfinite(columns[pair[0]].values) & np.isfinite(columns[pair[1]].values)
    if not is_there.any():
        return is_there, [], np.zeros(0)
    one, other = (replace(columns[node], values=columns[node].values[is_there]) for node in pair)
    parts = list(_list_parts(layout, codes[is_there], pair, one, other))
    never = np.where((one.read(other.values) < 0) | (other.read(one.values) < 0), NEVER, 0.0)
    return is_there, parts, never


def _find_swap(
    layout: Layout,
    codes: Codes,
    columns: Mapping[int, Column],
    pair: tuple[int, int],
    n_tried: int,
) -> Swap | None:
    """Return what swapping two columns in some rows explains, if that is clear."""
    is_there, parts, never = _begin(layout, codes, columns, pair)
    n = len(never)
    if not n:
        return None
    nobody: Vector = np.zeros(n)
    # to start from, rows are swapped whose values are more usual in the other column
    start = np.sum([part.weigh(nobody) for part in parts if part.is_first], axis=0)
    who, share, odds = nobody, 0.5, start[1] - start[0] + never
    for _ in range(MOST_STEPS):
        before, who = who, (odds > np.log((1 - share) / share)).astype(np.float64)
        share = float(np.clip(who.mean(), 0.5 / n, 0.5))
        if np.array_equal(before, who):
            break
        as_is, swapped = np.sum([part.weigh(who) for part in parts], axis=0)
        odds = swapped - as_is + never
    told = sum(part.find_evidence(who) - part.find_evidence(nobody) for part in parts)
    told += n * (share * np.log(share) + (1 - share) * np.log1p(-share))
    gain = float(find_gain(told, 1, n, n_tried))
    chances = logistic(odds + np.log(share / (1 - share))).astype(np.float64)
    clear = float(chances @ chances) / max(float(chances.sum()), 1e-9)
    if gain < LEAST_GAIN or clear < CLEAR or share > CEILING:
        return None
    of_all = np.zeros(len(codes))
    of_all[is_there] = chances
    return Swap(pair, float(of_all.mean()), gain, float(chances @ odds / chances.sum()), of_all)


@dataclass(frozen=True, eq=False)
class _Part:
    """A factor of the density: a table whose cells rows show, as they are and swapped.

    Parameters
    ----------
    as_is, swapped : cell of each row, -1 for none; shape (n,).
    card : states of each configuration.
    sign : 1 for a factor, -1 for a divisor.
    is_first : whether it says where to start.
    """

    as_is: Places
    swapped: Places
    card: int
    sign: int = 1
    is_first: bool = False

    def weigh(self, chances: Vector) -> tuple[Vector, Vector]:
        """Return the log of the factor of each row, as it is and swapped.

        The table is that of the rows with their values put back.
        """
        counts = self._count(chances)
        logs = np.append(np.log(counts / counts.sum(axis=1, keepdims=True)), 0.0)
        return self.sign * logs[self.as_is], self.sign * logs[self.swapped]

    def find_evidence(self, chances: Vector) -> float:
        """Return the log-probability of the rows with their values put back, tables integrated out.

        Tables that only swapped rows need are so paid for by whoever does not put them back.
        """
        counts = self._count(chances)
        counts = counts[counts.sum(axis=1) > JEFFREYS * self.card]
        of_cells = log_gamma(counts[counts > JEFFREYS]) - math.lgamma(JEFFREYS)
        of_configs = log_gamma(counts.sum(axis=1)) - math.lgamma(JEFFREYS * self.card)
        return self.sign * float(of_cells.sum() - of_configs.sum())

    def _count(self, chances: Vector) -> Vector:
        """Return the rows with each cell and Jeffreys' prior; shape (configurations, card)."""
        size = int(max(self.as_is.max(), self.swapped.max())) + 1
        size = max(-(-size // self.card), 1) * self.card
        counts = np.full(size + 1, JEFFREYS)  # the last is of rows that show no cell
        for cells, weights in ((self.as_is, 1 - chances), (self.swapped, chances)):
            counts += np.bincount(np.where(cells < 0, size, cells), weights, size + 1)
        return counts[:-1].reshape(-1, self.card)


def _list_parts(
    layout: Layout, codes: Codes, pair: tuple[int, int], one: Column, other: Column
) -> Iterator[_Part]:
    """Yield the factors that swapping two columns changes."""
    alone = _swap(one, other.values), _swap(other, one.values)
    swapped = codes.copy()
    swapped[:, pair[0]], swapped[:, pair[1]] = (part.swapped for part in alone)
    for family in layout.families:
        if {*family} & {*pair}:
            cells = [_find_cells(layout, each, family) for each in (codes, swapped)]
            yield _Part(cells[0], cells[1], layout.cards[family[-1]])
    divisors = [replace(part, sign=-1) for part in alone]
    if not any(family[-1] in pair and {*pair} <= {*family} for family in layout.families):
        # an edge that the network lacks would look like a swap
        cells = [
            a * other.card + b
            for a, b in ((alone[0].as_is, alone[1].as_is), (alone[0].swapped, alone[1].swapped))
        ]
        yield _Part(cells[0], cells[1], one.card * other.card)
        yield from divisors
    both = np.concatenate([one.values, other.values])
    yield replace(_swap(one.refine(both), other.values), is_first=True)
    yield replace(_swap(other.refine(both), one.values), is_first=True)
    yield from divisors


def _swap(column: Column, values: Vector) -> _Part:
    """Return the factor of a column alone, in exchange for some values; those it can read."""
    as_is, swapped = column.read(column.values), column.read(values)
    return _Part(as_is, np.where(swapped < 0, as_is, swapped), column.card)


def _find_cells(layout: Layout, codes: Codes, family: Sequence[int]) -> Places:
    """Return the cell of a family that each row shows; -1 for none."""
    cells, is_shown = layout.joint_states(codes, family)
    return np.where(is_shown, cells, -1)
