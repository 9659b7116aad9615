"""The density of a row to whose values something was done: two of them exchanged, or one scaled.

Such a row is a good row under a one-to-one map of its values, so its density is known: that of
the row with its values put back. For numbers that are cut into intervals the map is of the
numbers, not of the intervals, so a number's density is

    P(interval | parents) h(number) / P(interval),

h being a histogram of the column that is fine enough for both. Labels are their own histogram; a
label that is no state of the other column was not swapped. All tables and histograms are
those of the rows with their values put back; the evidence has them integrated out.

Scaled numbers are `c + f (number - c)`: another unit, a decimal point that slipped, a wrong sign.
Their histogram has intervals of equal length in `log |number - c|`, an integer number of them in
`log |f|`: then the numbers of an interval are those of another one, scaled.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robustbn._core.clues import Scale
from robustbn._core.dirichlet import JEFFREYS, log_gamma
from robustbn._core.layout import Codes, Layout
from robustbn._core.protocols import Vector

FINE = 64  # intervals of the histograms, as many of the numbers of both columns in each
NEVER = -1e3  # log-odds of a swap that no row can show

OFF_EDGES = 0.37  # of an interval: round numbers lie inside one

Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Numbers:
    """The numbers of a node that is cut into intervals."""

    values: Vector  # of the rows, NaN where there is none; shape (n,)
    edges: Vector  # inner ends of the intervals

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
    """The labels of a node, numbered alike for all nodes."""

    values: Vector  # of the rows, NaN where there is none; shape (n,)
    states: Places  # the state of each label, -1 if it is none of this node
    card: int  # how many states there are

    def read(self, values: Vector) -> Places:
        """Return the states of labels; -1 for one that is no state."""
        return self.states[values.astype(np.int64)]

    def shares(self, other: Column) -> bool:
        """Whether values of another column can be values of this one."""
        return isinstance(other, Labels) and bool(((self.states >= 0) & (other.states >= 0)).any())


Column = Numbers | Labels


@dataclass(frozen=True, eq=False)
class Act:
    """What putting back the values of one or two columns changes in the density of each row."""

    nodes: tuple[int, ...]
    is_there: NDArray[np.bool_]  # which rows show these columns; n of them
    parts: Sequence[_Part]  # the factors of the density that change
    alone: Sequence[_Part]  # the densities of the columns alone: they say where to start
    never: Vector  # `NEVER` for rows that the act cannot have made, 0 for others; shape (n,)

    @classmethod
    def swap(
        cls, layout: Layout, codes: Codes, columns: Mapping[int, Column], nodes: tuple[int, int]
    ) -> Act:
        """Return the exchange of two columns of some rows."""
        is_there = np.isfinite(columns[nodes[0]].values) & np.isfinite(columns[nodes[1]].values)
        if not is_there.any():
            return cls(nodes, is_there, [], [], np.zeros(0))
        one, other = (replace(columns[i], values=columns[i].values[is_there]) for i in nodes)
        fine, read = _refine(one, other), (_swap(one, other.values), _swap(other, one.values))
        parts = list(_list_parts(layout, codes[is_there], dict(zip(nodes, read, strict=True))))
        if not any(f[-1] in nodes and {*nodes} <= {*f} for f in layout.families):
            parts += _join(*read)
        if fine:
            parts += [*fine, *_divide_by(read)]
        cannot = (one.read(other.values) < 0) | (other.read(one.values) < 0)
        return cls(nodes, is_there, parts, fine or read, np.where(cannot, NEVER, 0.0))

    @classmethod
    def scale(
        cls,
        layout: Layout,
        codes: Codes,
        columns: Mapping[int, Column],
        node: int,
        scale: Scale,
        given: int | None = None,
    ) -> Act:
        """Return the scaling of a column of numbers of some rows.

        given : node whose values are places: its families say which of them have which numbers.
        """
        is_there = np.isfinite(columns[node].values)
        column = replace(columns[node], values=columns[node].values[is_there])
        if not len(column.values):
            return cls((node,), is_there, [], [], np.zeros(0))
        fine, read = scale_alone(column.values, scale), _swap(column, scale.undo(column.values))
        parts = [*_list_parts(layout, codes[is_there], {node: read}, given)]
        parts += [fine, *_divide_by([read])]
        return cls((node,), is_there, parts, [fine], np.zeros(len(column.values)))

    def weigh(self, who: Vector | None = None, parts: Sequence[_Part] | None = None) -> Vector:
        """Return the log-odds of each row to be changed, given who is; None: nobody.

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
    codes: Codes,
    columns: Mapping[int, Column],
    nodes: tuple[int, ...],
    rows: Places,
    scale: Scale | None = None,
) -> tuple[Codes, dict[int, Column]]:
    """Return the rows with two columns exchanged, or one scaled back, in some of them."""
    codes, mended = codes.copy(), {**columns}
    for node, source in zip(nodes, nodes[::-1], strict=True):
        values, found = columns[node].values.copy(), columns[source].values[rows]
        values[rows] = found if scale is None else scale.undo(found)
        codes[rows, node] = columns[node].read(values[rows])
        mended[node] = replace(columns[node], values=values)
    return codes, mended


@dataclass(frozen=True, eq=False)
class _Part:
    """A factor of the density: a table whose cells rows show, as they are and swapped."""

    # as_is, swapped: cell of each row, -1 for none; shape (n,)
    as_is: Places
    swapped: Places
    card: int  # states of each configuration
    sign: int = 1  # 1 for a factor, -1 for a divisor

    def weigh(self, chances: Vector) -> Vector:
        """Return the log of the factor of each row if it is swapped, over that as it is."""
        # The table is that of the rows with their values put back.
        counts = self._count(chances)
        logs = np.append(self.sign * np.log(counts / counts.sum(axis=1, keepdims=True)), 0.0)
        odds: Vector = logs[self.swapped] - logs[self.as_is]
        return odds

    def find_evidence(self, chances: Vector) -> float:
        """Return the log-probability of the rows put back, tables integrated out."""
        # Tables that only swapped rows need are so paid for by whoever does not put them back.
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
    layout: Layout, codes: Codes, read: Mapping[int, _Part], given: int | None = None
) -> Iterator[_Part]:
    """Yield the factors of the families of some columns, whose states change; not of one node."""
    changed = codes.copy()
    for node, part in read.items():
        changed[:, node] = part.swapped
    for family in layout.families:
        if {*family} & {*read} and given not in family:
            cells = [_find_cells(layout, each, family) for each in (codes, changed)]
            yield _Part(cells[0], cells[1], layout.cards[family[-1]])


def _join(one: _Part, other: _Part) -> Iterator[_Part]:
    """Yield the factors of an edge of two columns: one that the network lacks looks like a swap."""
    as_is = one.as_is * other.card + other.as_is
    yield _Part(as_is, one.swapped * other.card + other.swapped, one.card * other.card)
    yield from _divide_by((one, other))


def _divide_by(parts: Sequence[_Part]) -> Iterator[_Part]:
    """Yield factors as divisors."""
    return (replace(part, sign=-1) for part in parts)


def _refine(one: Column, other: Column) -> tuple[_Part, ...]:
    """Return the factors of columns alone, in intervals fine enough for both; none of labels."""
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


def scale_alone(values: Vector, scale: Scale) -> _Part:
    """Return the factor of a column of numbers alone, as they are and scaled back."""
    apart = values - scale.centre
    is_apart = apart != 0
    sizes = np.log(np.abs(apart, where=is_apart, out=np.ones_like(apart)))
    low, high = float(sizes.min()), float(sizes.max())
    step, n_steps = max(high - low, 1.0) / FINE, 0
    if abs(scale.factor) != 1:
        length = np.log(abs(scale.factor))
        n_steps = max(round(abs(length) / step), 1) * int(np.sign(length))
        step = length / n_steps
    places = np.floor((sizes - low) / step + OFF_EDGES).astype(np.int64)
    both = np.stack([places, places - n_steps])
    both += 1 - both.min()
    signs = np.stack([apart > 0, scale.factor * apart > 0])
    cells = np.where(is_apart, 2 * both + signs, 0)
    return _Part(cells[0], cells[1], int(cells.max()) + 1)


def _find_cells(layout: Layout, codes: Codes, family: Sequence[int]) -> Places:
    """Return the cell of a family that each row shows; -1 for none."""
    cells, is_shown = layout.joint_states(codes, family)
    return np.where(is_shown, cells, -1)
