"""The density of a row in which the values of two columns were exchanged.

A swapped row is a good row under a one-to-one map of its values, so its density is known: that of
the row with the two values put back. For numbers that are cut into intervals the map is of the
numbers, not of the intervals, so a number's density is

    P(interval | parents) h(number) / P(interval),

h being a histogram of the column that is fine enough for both. Labels are their own histogram; a
label that is no state of the other column was not swapped. All tables and histograms are
those of the rows with their values put back; the evidence has them integrated out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robustbn._core.dirichlet import JEFFREYS, log_gamma
from robustbn._core.layout import Codes, Layout
from robustbn._core.protocols import Vector

FINE = 64  # intervals of the histograms, as many of the numbers of both columns in each
NEVER = -1e3  # log-odds of a swap that no row can show

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

    def shares(self, other: Column) -> bool:
        """Whether values of another column can be values of this one."""
        return isinstance(other, Labels) and bool(((self.states >= 0) & (other.states >= 0)).any())


Column = Numbers | Labels


@dataclass(frozen=True, eq=False)
class Pair:
    """Two columns, and what exchanging their values changes in the density of each row."""

    nodes: tuple[int, int]
    is_there: NDArray[np.bool_]  # which rows show both columns; n of them
    parts: Sequence[_Part]  # the factors of the density that change
    alone: Sequence[_Part]  # the densities of both columns alone: they say where to start
    never: Vector  # `NEVER` for rows that cannot be swapped, 0 for others; shape (n,)

    @classmethod
    def of(
        cls, layout: Layout, codes: Codes, columns: Mapping[int, Column], nodes: tuple[int, int]
    ) -> Pair:
        """Return a pair of columns of some rows."""
        is_there = np.isfinite(columns[nodes[0]].values) & np.isfinite(columns[nodes[1]].values)
        if not is_there.any():
            return cls(nodes, is_there, [], [], np.zeros(0))
        one, other = (replace(columns[i], values=columns[i].values[is_there]) for i in nodes)
        fine, read = _refine(one, other), (_swap(one, other.values), _swap(other, one.values))
        parts = list(_list_parts(layout, codes[is_there], nodes, read))
        if fine:
            parts += [*fine, *_divide_by(read)]
        cannot = (one.read(other.values) < 0) | (other.read(one.values) < 0)
        return cls(nodes, is_there, parts, fine or read, np.where(cannot, NEVER, 0.0))

    def weigh(self, who: Vector | None = None, parts: Sequence[_Part] | None = None) -> Vector:
        """Return the log-odds of each row to be swapped, given who is; None: nobody.

        Of all factors, or of some.
        """
        who, odds = np.zeros(len(self.never)) if who is None else who, self.never.copy()
        for part in self.parts if parts is None else parts:
            odds += part.weigh(who)
        return odds

    def find_evidence(self, who: Vector) -> float:
        """Return what putting back the values of some rows brings, tables integrated out."""
        nobody = np.zeros(len(who))
        return sum(part.find_evidence(who) - part.find_evidence(nobody) for part in self.parts)


def list_number_parts(one: Column, other: Column) -> list[_Part]:
    """Return the factors of two columns of numbers for where in their intervals numbers lie."""
    read = _swap(one, other.values), _swap(other, one.values)
    return [*_refine(one, other), *_divide_by(read)]


def list_numbers(columns: Mapping[int, Column]) -> dict[int, Vector]:
    """Return the numbers of the nodes that are cut into intervals."""
    return {node: each.values for node, each in columns.items() if isinstance(each, Numbers)}


def put_back(
    codes: Codes, columns: Mapping[int, Column], nodes: tuple[int, int], rows: Places
) -> tuple[Codes, dict[int, Column]]:
    """Return the rows with the values of two columns exchanged in some of them."""
    codes, mended = codes.copy(), {**columns}
    for node, other in (nodes, nodes[::-1]):
        values = columns[node].values.copy()
        values[rows] = columns[other].values[rows]
        codes[rows, node] = columns[node].read(values[rows])
        mended[node] = replace(columns[node], values=values)
    return codes, mended


@dataclass(frozen=True, eq=False)
class _Part:
    """A factor of the density: a table whose cells rows show, as they are and swapped.

    Parameters
    ----------
    as_is, swapped : cell of each row, -1 for none; shape (n,).
    card : states of each configuration.
    sign : 1 for a factor, -1 for a divisor.
    """

    as_is: Places
    swapped: Places
    card: int
    sign: int = 1

    def weigh(self, chances: Vector) -> Vector:
        """Return the log of the factor of each row if it is swapped, over that as it is.

        The table is that of the rows with their values put back.
        """
        counts = self._count(chances)
        logs = np.append(self.sign * np.log(counts / counts.sum(axis=1, keepdims=True)), 0.0)
        odds: Vector = logs[self.swapped] - logs[self.as_is]
        return odds

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
            if weights.any():
                counts += np.bincount(np.where(cells < 0, size, cells), weights, size + 1)
        return counts[:-1].reshape(-1, self.card)


def _list_parts(
    layout: Layout, codes: Codes, pair: tuple[int, int], read: tuple[_Part, _Part]
) -> Iterator[_Part]:
    """Yield the factors of the states that swapping two columns changes.

    Parameters
    ----------
    read : the states of both columns.
    """
    one, other = read
    swapped = codes.copy()
    swapped[:, pair[0]], swapped[:, pair[1]] = one.swapped, other.swapped
    for family in layout.families:
        if {*family} & {*pair}:
            cells = [_find_cells(layout, each, family) for each in (codes, swapped)]
            yield _Part(cells[0], cells[1], layout.cards[family[-1]])
    if not any(family[-1] in pair and {*pair} <= {*family} for family in layout.families):
        # an edge that the network lacks would look like a swap
        as_is = one.as_is * other.card + other.as_is
        yield _Part(as_is, one.swapped * other.card + other.swapped, one.card * other.card)
        yield from _divide_by(read)


def _divide_by(parts: Sequence[_Part]) -> Iterator[_Part]:
    """Yield factors as divisors."""
    return (replace(part, sign=-1) for part in parts)


def _refine(one: Column, other: Column) -> tuple[_Part, ...]:
    """Return the factors of the columns alone, in intervals fine enough for both; none of labels.

    The intervals are those of both, so swapped values of one are those of the other.
    """
    if not isinstance(one, Numbers):
        return ()
    both = np.sort(np.concatenate([one.values, other.values]))
    edges = np.unique(both[len(both) * np.arange(1, FINE) // FINE])
    part = _swap(replace(one, edges=edges), other.values)
    return part, replace(part, as_is=part.swapped, swapped=part.as_is)


def _swap(column: Column, values: Vector) -> _Part:
    """Return the factor of a column alone, in exchange for some values; those it can read."""
    as_is, swapped = column.read(column.values), column.read(values)
    return _Part(as_is, np.where(swapped < 0, as_is, swapped), column.card)


def _find_cells(layout: Layout, codes: Codes, family: Sequence[int]) -> Places:
    """Return the cell of a family that each row shows; -1 for none."""
    cells, is_shown = layout.joint_states(codes, family)
    return np.where(is_shown, cells, -1)
