"""How columns go together, two at a time, among some rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.layout import Codes
from robustbn._core.protocols import Vector

MOST_STATES_PAIRED = 1024  # states of all columns together up to which all pairs are looked at


class Pairs:
    """The weight of some rows in each state of each column, and in each pair of states.

    Parameters
    ----------
    cards : number of states of each column.
    codes, weights : the rows; a code past the last state is a hole.
    """

    def __init__(self, cards: Sequence[int], codes: Codes, weights: Vector) -> None:
        self._cards, self._codes, self._weights = cards, codes, weights
        self._start = np.concatenate([[0], np.cumsum(cards)])
        self._known: dict[tuple[int, int], Vector] = {}

    @property
    def has_all(self) -> bool:
        """Whether the columns have few enough states for all pairs at once."""
        return int(self._start[-1]) <= MOST_STATES_PAIRED

    def alone(self, column: int) -> Vector:
        """Return the weight of the rows in each state of a column."""
        return self._alone[column]

    @cached_property
    def _alone(self) -> list[Vector]:
        return [
            np.bincount(self._codes[:, column], self._weights, card + 1)[:card].astype(np.float64)
            for column, card in enumerate(self._cards)
        ]

    def together(self, one: int, other: int) -> Vector:
        """Return the weight of the rows in each pair of states of two columns."""
        if self.has_all:
            a, b = self._start[one], self._start[other]
            return self._all[a : a + self._cards[one], b : b + self._cards[other]]
        if (one, other) not in self._known:
            a, b = self._cards[one], self._cards[other]
            values = self._codes[:, one].astype(np.int64) * (b + 1) + self._codes[:, other]
            counts = np.bincount(values, self._weights, (a + 1) * (b + 1)).astype(np.float64)
            self._known[one, other] = counts.reshape(-1, b + 1)[:a, :b]
        return self._known[one, other]

    @cached_property
    def _all(self) -> Vector:
        """Weight of every pair of states of all columns; shape (D, D)."""
        shown = np.zeros((len(self._codes), int(self._start[-1])), np.float32)
        lines = np.arange(len(shown))
        for column, card in enumerate(self._cards):
            values = self._codes[:, column]
            is_there = values < card
            shown[lines[is_there], self._start[column] + values[is_there].astype(np.int64)] = 1
        together: NDArray[np.float32] = shown.T @ (shown * self._weights[:, None].astype("f4"))
        return together.astype(np.float64)

    @cached_property
    def _column_of(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(len(self._cards)), self._cards)

    def _sum_blocks(self, cells: Vector) -> Vector:
        by_column = np.add.reduceat(cells, self._start[:-1], axis=1)
        total: Vector = np.add.reduceat(by_column, self._start[:-1], axis=0)
        return total

    def _lift(self, weight: float) -> Vector:
        """Return `log of P(a, b) / (P(a) P(b))` of every pair of states; shape (D, D).

        Parameters
        ----------
        weight : rows in which columns are independent, added to those seen.
        """
        seen, of = self._all, self._column_of
        lines = np.add.reduceat(seen, self._start[:-1], axis=1)
        total = np.maximum(np.add.reduceat(lines, self._start[:-1], axis=0), 1e-9)[np.ix_(of, of)]
        apart = lines[:, of] * lines[:, of].T / total
        with np.errstate(divide="ignore", invalid="ignore"):
            lift = np.log((seen + weight * apart / total) / (apart * (1 + weight / total)))
        lift[~np.isfinite(lift)] = 0.0
        return lift

    def dependence(self) -> Vector:
        """Return the nats by which each two columns tell of each other, in sample; shape (d, d)."""
        return self._sum_blocks(self._all * self._lift(0.0))

    def agreement(self, good: Pairs, pairs: Sequence[tuple[int, int]]) -> Vector:
        """Return how far each two columns go together as they do among good rows.

        Nats for the dependence among good rows and against none: above 0 if these rows follow it,
        0 where good rows show none beyond chance.
        """
        if self.has_all:
            agreement = self._sum_blocks(self._all * good._lift(2.0)) * good._do_depend
            return np.array([agreement[i, j] for i, j in pairs])
        return np.array([self._agree_on(good, i, j) for i, j in pairs])

    @cached_property
    def _do_depend(self) -> NDArray[np.bool_]:
        """Which columns depend on each other beyond chance; shape (d, d)."""
        free = np.array(self._cards) - 1.0
        do_depend: NDArray[np.bool_] = self.dependence() > _by_chance(np.outer(free, free))
        return do_depend

    def _agree_on(self, good: Pairs, i: int, j: int) -> float:
        seen = good.together(i, j)
        total = max(float(seen.sum()), 1e-9)
        apart = np.outer(seen.sum(axis=1), seen.sum(axis=0)) / total
        with np.errstate(divide="ignore", invalid="ignore"):
            lift = np.log((seen + 2 * apart / total) / (apart * (1 + 2 / total)))
        lift = np.where(np.isfinite(lift), lift, 0.0)
        if float((seen * lift).sum()) <= _by_chance((len(seen) - 1.0) * (len(seen.T) - 1.0)):
            return 0.0
        return float((self.together(i, j) * lift).sum())


def _by_chance(n_free: Any) -> Any:
    """Return the nats that independent columns hardly ever seem to tell of each other."""
    return 0.5 * n_free + 3 * np.sqrt(0.5 * n_free) + 3


def strongest_tree(pairs: Pairs, price: float) -> tuple[tuple[int, int], ...]:
    """Return the edges of a forest of largest dependence, each worth what its cells cost.

    Parameters
    ----------
    price : nats that one free number costs.
    """
    free = np.array(pairs._cards) - 1.0
    worth = pairs.dependence() - price * np.outer(free, free)
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
