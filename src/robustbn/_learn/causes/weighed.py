"""Some rows with their weights, and what is counted of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.layout import Codes, Layout
from robustbn._core.protocols import Vector

MOST_STATES_PAIRED = 1024  # states of all columns together up to which all pairs are looked at
INDEPENDENT = 2.0  # rows in which columns are independent, added to good rows: no zeros


class Weighed:
    """Rows with weights: how often each state, pair of states or cell is seen among them.

    layout : of the network.
    codes, weights : the rows; a code past the last state is a hole.
    """

    def __init__(self, layout: Layout, codes: Codes, weights: Vector) -> None:
        self.layout, self.cards = layout, layout.cards
        self.codes, self.weights = np.asfortranarray(codes), weights  # read column by column
        self._counts: dict[tuple[int, ...], Vector] = {}

    @cached_property
    def total(self) -> float:
        """What all rows weigh together."""
        return float(self.weights.sum())

    def spoil(self, codes: Codes, held: Vector | float = 1.0) -> Weighed:
        """Return the rows with other codes, of each as much as is held."""
        return Weighed(self.layout, codes, self.weights * held)

    def count(self, columns: tuple[int, ...]) -> Vector:
        """Return the weight of the rows in each joint state of some columns, one axis each."""
        if columns not in self._counts:
            shape = [self.cards[c] for c in columns]
            cells, is_there = self.layout.joint_states(self.codes, columns)
            counts = np.bincount(cells[is_there], self.weights[is_there], prod(shape))
            self._counts[columns] = counts.reshape(shape).astype(np.float64, copy=False)
        return self._counts[columns]

    @cached_property
    def log_tables(self) -> list[Vector]:
        """The logs of the network's tables, node by node, none of them -inf; shape (cells,)."""
        tables = []
        for family in self.layout.families:
            counts = self.count(family).reshape(-1, self.cards[family[-1]])
            marginal = counts.sum(axis=0) + 0.5
            filled = counts + marginal / marginal.sum()
            tables.append(np.log((filled / filled.sum(axis=1, keepdims=True)).ravel()))
        return tables

    def find_likelihood(self, codes: Codes) -> Vector:
        """Return the log-probability of rows under these rows' tables; a hole says nothing."""
        likely = np.zeros(len(codes))
        for family, table in zip(self.layout.families, self.log_tables, strict=True):
            cells, is_there = self.layout.joint_states(codes, family)
            likely[is_there] += table[cells[is_there]]
        return likely

    # --- two columns at a time --------------------------------------------------------------------

    @property
    def has_pairs(self) -> bool:
        """Whether the columns have few enough states for all pairs at once."""
        return sum(self.cards) <= MOST_STATES_PAIRED

    def together(self, one: int, other: int) -> Vector:
        """Return the weight of the rows in each pair of states of two columns."""
        if not self.has_pairs:
            return self.count((one, other))
        a, b = self._start[one], self._start[other]
        return self._pairs[a : a + self.cards[one], b : b + self.cards[other]]

    @cached_property
    def _start(self) -> NDArray[np.int64]:
        """The first of each column's states among those of all."""
        return np.cumsum([0, *self.cards[:-1]])

    @cached_property
    def _pairs(self) -> Vector:
        """Weight of every pair of states of all columns; shape (D, D)."""
        shown = np.zeros((len(self.codes), sum(self.cards)), np.float32)
        for start, card, values in zip(self._start, self.cards, self.codes.T, strict=True):
            is_there = np.flatnonzero(values < card)
            shown[is_there, start + values[is_there].astype(np.int64)] = 1
        together: NDArray[np.float32] = shown.T @ (shown * self.weights[:, None].astype("f4"))
        return together.astype(np.float64)

    def _lift_pairs(self, weight: float) -> Vector:
        """Return the lift of every pair of states, see `_lift`; shape (D, D)."""
        of = np.repeat(np.arange(len(self.cards)), self.cards)
        lines = np.add.reduceat(self._pairs, self._start, axis=1)
        total = np.maximum(np.add.reduceat(lines, self._start, axis=0), 1e-9)[np.ix_(of, of)]
        return _lift(self._pairs, lines[:, of] * lines[:, of].T / total, total, weight)

    def _sum_blocks(self, cells: Vector) -> Vector:
        by_column = np.add.reduceat(cells, self._start, axis=1)
        return np.add.reduceat(by_column, self._start, axis=0)

    @cached_property
    def dependence(self) -> Vector:
        """The nats by which each two columns tell of each other, in sample; shape (d, d)."""
        return self._sum_blocks(self._pairs * self._lift_pairs(0.0))

    def agree(self, good: Weighed, edges: Sequence[tuple[int, int]]) -> Vector:
        """Return how far each two columns go together as they do among good rows; shape (d, d).

        Nats for the dependence among good rows and against none: above 0 if these rows follow it,
        0 where good rows show none beyond chance. Of many states, only the edges are looked at.
        """
        if self.has_pairs:
            free = np.array(self.cards) - 1.0
            do_depend = good.dependence > _by_chance(np.outer(free, free))
            told = self._sum_blocks(self._pairs * good._lift_pairs(INDEPENDENT))
            upper: Vector = np.triu(told * do_depend, 1)
            return upper + upper.T
        found = np.zeros((len(self.cards), len(self.cards)))
        for i, j in edges:
            found[i, j] = found[j, i] = self._agree_on(good.count((i, j)), self.count((i, j)))
        return found

    @staticmethod
    def _agree_on(good: Vector, seen: Vector) -> float:
        total = max(float(good.sum()), 1e-9)
        apart = np.outer(good.sum(axis=1), good.sum(axis=0)) / total
        lift = _lift(good, apart, total, INDEPENDENT)
        if float((good * lift).sum()) <= _by_chance((len(good) - 1.0) * (len(good.T) - 1.0)):
            return 0.0
        return float((seen * lift).sum())


def _lift(seen: Vector, apart: Vector, total: Vector | float, weight: float) -> Vector:
    """Return `log of P(a, b) / (P(a) P(b))`, from the weight seen and that if independent."""
    with np.errstate(divide="ignore", invalid="ignore"):
        lift = np.log((seen + weight * apart / total) / (apart * (1 + weight / total)))
    return np.where(np.isfinite(lift), lift, 0.0)


def _by_chance(n_free: Any) -> Any:
    """Return the nats that independent columns hardly ever seem to tell of each other."""
    return 0.5 * n_free + 3 * np.sqrt(0.5 * n_free) + 3


def strongest_tree(rows: Weighed, price: float) -> tuple[tuple[int, int], ...]:
    """Return the edges of a forest of largest dependence, each worth what its cells cost."""
    free = np.array(rows.cards) - 1.0
    worth = rows.dependence - price * np.outer(free, free)
    best, parent = worth[0].copy(), np.zeros(len(free), np.int64)
    left, edges = list(range(1, len(free))), []
    while left:
        i = max(left, key=lambda k: float(best[k]))
        left.remove(i)
        if best[i] > 0:
            edges.append((int(parent[i]), i))
        closer = worth[i] > best
        best[closer], parent[closer] = worth[i][closer], i
    return tuple(edges)
