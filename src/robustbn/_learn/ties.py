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

AS_GOOD, ALONE, OWN = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Tied:
    """Tables of a kind, and how each family came by its own.

    Parameters
    ----------
    tables : shape (M,).
    modes : `AS_GOOD`, `ALONE` (independent of its parents) or `OWN`, a node; shape (d,).
    n_parameters : free numbers that are not the good tables'.
    """

    tables: Vector
    modes: NDArray[np.int64]
    n_parameters: float


@dataclass(frozen=True, eq=False)
class Families:
    """The cells of a network by node, and what is needed to tie tables.

    Parameters
    ----------
    layout : where each cell lives.
    prior : tables that every table shrinks to where it has few rows; shape (M,).
    plain_counts : of all rows; shape (M,).
    """

    layout: Layout
    prior: Vector
    plain_counts: Vector

    @cached_property
    def node_of_cell(self) -> NDArray[np.int64]:
        """The node of each cell; shape (M,)."""
        return np.repeat(np.arange(self.layout.n_nodes), self.layout.cells_per_node)

    @cached_property
    def state_of_cell(self) -> NDArray[np.int64]:
        """The state of each cell; shape (M,)."""
        cards = np.asarray(self.layout.cards)[self.node_of_cell]
        start = np.asarray(self.layout.cell_start)[:-1][self.node_of_cell]
        state: NDArray[np.int64] = (np.arange(self.layout.n_cells) - start) % cards
        return state

    @cached_property
    def _first_state(self) -> NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(self.layout.cards)])

    @cached_property
    def _marginal_of_cell(self) -> NDArray[np.int64]:
        return self._first_state[self.node_of_cell] + self.state_of_cell

    @cached_property
    def _node_of_marginal(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(self.layout.n_nodes), self.layout.cards)

    @cached_property
    def _node_of_config(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(self.layout.n_nodes), np.diff(self.layout.config_start))

    @cached_property
    def _has_parents(self) -> NDArray[np.bool_]:
        return np.array([len(family) > 1 for family in self.layout.families])

    @cached_property
    def _plain_marginals(self) -> Vector:
        """Share of the rows in each state, as pseudo-counts of one row a node."""
        n = float(sum_over_rows(self.layout, self.plain_counts))
        return (self._marginals(self.plain_counts) + 0.5) / (n or 1.0)  # all may be missing

    def _marginals(self, cells: Vector) -> Vector:
        n = len(self._node_of_marginal)
        marginals: Vector = np.bincount(self._marginal_of_cell, cells, n).astype(np.float64)
        return marginals

    def sum_by_node(self, cells: Vector) -> Vector:
        """Return the sum over the cells of each node; shape (d,)."""
        start = np.asarray(self.layout.cell_start[:-1])
        return np.add.reduceat(cells, start, axis=0)

    def own(self, counts: Vector) -> Vector:
        """Return tables of counts, each family its own; shape (M,)."""
        return normalise_counts(self.layout, counts, self.prior)

    def alone(self, counts: Vector) -> Vector:
        """Return tables of counts in which no node depends on its parents; shape (M,)."""
        marginals = self._marginals(counts) + self._plain_marginals
        total = np.bincount(self._node_of_marginal, marginals)
        return (marginals / total[self._node_of_marginal])[self._marginal_of_cell]

    def tie(self, counts: Vector, good: Vector, modes: NDArray[np.int64] | None = None) -> Tied:
        """Return the tables of a kind, each family in the form with the shortest description.

        Parameters
        ----------
        counts : weight of the kind's rows on each cell; shape (M,).
        good : the good tables; shape (M,).
        modes : forms to keep; by default they are chosen anew.
        """
        layout, cards = self.layout, np.asarray(self.layout.cards)
        own, alone = self.own(counts), self.alone(counts)
        is_seen = layout.sum_configurations(counts) > 1
        free = np.bincount(
            self._node_of_config, is_seen * (layout.config_cards - 1.0), layout.n_nodes
        )
        if modes is None:
            price = 0.5 * np.log(max(float(sum_over_rows(layout, counts)), 2.0))
            fits = [self.sum_by_node(counts * np.log(table)) for table in (good, alone, own)]
            fits[ALONE] = fits[ALONE] - price * (cards - 1)
            fits[OWN] = np.where(self._has_parents, fits[OWN] - price * free, -np.inf)
            modes = np.stack(fits).argmax(axis=0)
        mode = modes[self.node_of_cell]
        tables = np.where(mode == AS_GOOD, good, np.where(mode == ALONE, alone, own))
        n_parameters = float((modes == ALONE) @ (cards - 1) + (modes == OWN) @ free)
        return Tied(tables, modes, n_parameters)
