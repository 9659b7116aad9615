"""Tables of a kind that differ from the good ones only where the rows say so.

A kind of bad rows seldom breaks every family alike: a wrong join leaves most tables as they are, a
stuck column changes one. Each family of a kind is, by description length, as good, independent of
its parents, or its own. That leaves far fewer parameters to pay for, so that kinds of few rows can
be found; and natural variety, which breaks few families by a lot, can be told from bad rows, which
break many.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from robustbn._core.expansion import normalise_counts, sum_over_rows
from robustbn._core.layout import Layout
from robustbn._core.protocols import Vector

AS_GOOD, ALONE, OWN = 0, 1, 2  # places among the fits of a family: the simplest first, for draws


@dataclass(frozen=True, eq=False)
class Tied:
    """Tables of kinds, and how each family came by its own."""

    tables: Vector  # shape (M, K)
    # `AS_GOOD`, `ALONE` (independent of its parents) or `OWN`, a node; shape (d, K)
    modes: NDArray[np.int64]
    n_parameters: Vector  # free numbers that are not the good tables'; shape (K,)


@dataclass(frozen=True, eq=False)
class Families:
    """The cells of a network by node, and what is needed to tie tables."""

    layout: Layout  # where each cell lives
    prior: Vector  # tables that every table shrinks to where it has few rows; shape (M,)
    plain_counts: Vector  # of all rows; shape (M,)

    @cached_property
    def node_of_cell(self) -> NDArray[np.int64]:
        """The node of each cell; shape (M,)."""
        return np.repeat(np.arange(self.layout.n_nodes), self.layout.cells_per_node)

    @cached_property
    def state_of_cell(self) -> NDArray[np.int64]:
        """The state of each cell; shape (M,)."""
        layout = self.layout
        first: NDArray[np.int64] = layout.first_cell_of_config[layout.config_of_cell]
        return np.arange(layout.n_cells) - first

    @cached_property
    def _first_state(self) -> NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(self.layout.cards)])

    @cached_property
    def _by_marginal(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The cells of each state of each node, one after the other, and where each begins."""
        of_cell = self._marginal_of_cell
        cells = np.argsort(of_cell, kind="stable")
        return cells, np.searchsorted(of_cell[cells], np.arange(self._first_state[-1]))

    @cached_property
    def _marginal_of_cell(self) -> NDArray[np.int64]:
        return self._first_state[self.node_of_cell] + self.state_of_cell

    @cached_property
    def _node_of_marginal(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(self.layout.n_nodes), self.layout.cards)

    @cached_property
    def _has_parents(self) -> NDArray[np.bool_]:
        return np.array([len(family) > 1 for family in self.layout.families])

    @cached_property
    def _plain_marginals(self) -> Vector:
        """Share of the rows in each state, as pseudo-counts of one row a node."""
        n = float(sum_over_rows(self.layout, self.plain_counts))
        return (self._marginals(self.plain_counts) + 0.5) / (n or 1.0)  # all may be missing

    def _marginals(self, cells: Vector) -> Vector:
        order, start = self._by_marginal
        return np.add.reduceat(cells[order], start, axis=0)

    def sum_by_node(self, cells: Vector) -> Vector:
        """Return the sum over the cells of each node; shape (d,), or (d, r) for (M, r)."""
        return np.add.reduceat(cells, self.layout.cell_start[:-1], axis=0)

    def own(self, counts: Vector) -> Vector:
        """Return tables of counts, each family its own; shape (M,), or (M, r)."""
        return normalise_counts(self.layout, counts, _like(self.prior, counts))

    def alone(self, counts: Vector) -> Vector:
        """Return tables of counts in which no node has parents; shape (M,), or (M, r)."""
        marginals = self._marginals(counts) + _like(self._plain_marginals, counts)
        total = np.add.reduceat(marginals, self._first_state[:-1], axis=0)
        return (marginals / total[self._node_of_marginal])[self._marginal_of_cell]

    def tie(self, counts: Vector, good: Vector, modes: NDArray[np.int64] | None = None) -> Tied:
        """Return the tables of kinds, each family in the form with the shortest description.

        modes : forms to keep; shape (d, K). By default they are chosen anew.
        """
        layout, cards = self.layout, np.asarray(self.layout.cards)[:, None]
        own, alone, good = self.own(counts), self.alone(counts), good[:, None]
        is_seen = layout.sum_configurations(counts) > 1
        free = np.add.reduceat(
            is_seen * (layout.config_cards[:, None] - 1.0), layout.config_start[:-1], axis=0
        )
        if modes is None:
            price = 0.5 * np.log(np.maximum(sum_over_rows(layout, counts), 2.0))
            fits = [self.sum_by_node(counts * np.log(table)) for table in (good, alone, own)]
            fits[ALONE] = fits[ALONE] - price * (cards - 1)
            fits[OWN] = np.where(self._has_parents[:, None], fits[OWN] - price * free, -np.inf)
            modes = np.stack(fits).argmax(axis=0)
        mode = modes[self.node_of_cell]
        tables = np.where(mode == AS_GOOD, good, np.where(mode == ALONE, alone, own))
        n_parameters = ((modes == ALONE) * (cards - 1) + (modes == OWN) * free).sum(axis=0)
        return Tied(tables, modes, n_parameters)


def _like(cells: Vector, counts: Vector) -> Vector:
    """Return numbers of cells as counts are: for one column of them, or for several."""
    return cells if counts.ndim == 1 else cells[:, None]
