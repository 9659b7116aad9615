"""Where each cell of a network lives in a vector of length M.

Holds integers only: no labels, no probabilities, no rows. Everything that touches rows is given a
`Layout`; everything that speaks to people is given a `BayesianNetwork`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn.exceptions import DataError, InsufficientMemoryError

Codes = NDArray[np.uint8 | np.uint16]  # of rows, shape (n, d); see `Layout.code_dtype`

MOST_CODES = 2**16  # a code has two bytes at most
MOST_CELLS = 2**31 - 1  # cells are addressed by 32-bit integers in the kernels


def take_rows(codes: Codes, which: NDArray[np.int64]) -> Codes:
    """Return some rows of codes; several times as fast as an index where they lie in one piece."""
    if codes.flags.f_contiguous:
        return np.take(codes.T, which, axis=1).T
    return np.take(codes, which, axis=0) if codes.flags.c_contiguous else codes[which]


@dataclass(frozen=True)
class Layout:
    """The cells of a network: node by node, configurations in C order, states innermost.

    Notation: d nodes, m configurations, M cells. The cell of node `i` in a row `x` is
    `cell_start[i] + sum_k strides[i][k] * x[families[i][k]]`.

    A code `x[i] == cards[i]`, one past the last state, stands for a missing value: a hole. A family
    with a hole touches no cell, so holes change neither the cells nor their numbers.
    """

    cards: tuple[int, ...]  # number of states of each of the d nodes
    # for each node the columns of its parents, in the order of its table's axes, then its own
    # column
    families: tuple[tuple[int, ...], ...]
    holed: tuple[int, ...] = ()  # the columns in which values may be missing, increasing

    def with_holes(self, columns: Iterable[int]) -> Layout:
        """Return the same cells for rows whose values may be missing in these columns only."""
        holed = tuple(sorted({int(c) for c in columns}))
        for c in holed:
            if not 0 <= c < self.n_nodes:
                raise DataError(
                    f"There is no column {c} that could have missing values: columns are 0 to "
                    f"{self.n_nodes - 1}."
                )
            if self.cards[c] >= MOST_CODES:
                raise DataError(
                    f"Column {c} has {self.cards[c]:,} states and missing values; a code has two "
                    f"bytes, so at most {MOST_CODES - 1:,} states leave room for a missing value."
                )
        return replace(self, holed=holed)

    @property
    def n_nodes(self) -> int:
        """Number of nodes, d."""
        return len(self.cards)

    @cached_property
    def codes_per_column(self) -> tuple[int, ...]:
        """Number of different codes in each column: its states, and one for a missing value."""
        holed = frozenset(self.holed)
        return tuple(card + (c in holed) for c, card in enumerate(self.cards))

    @property
    def code_dtype(self) -> type[np.uint8 | np.uint16]:
        """The type of codes: one byte where all fit, else two."""
        return np.uint8 if max(self.codes_per_column, default=0) <= 2**8 else np.uint16

    @cached_property
    def cells_per_node(self) -> tuple[int, ...]:
        """Size of each node's table: its configurations times its states."""
        return tuple(prod(self.cards[c] for c in family) for family in self.families)

    @cached_property
    def n_cells(self) -> int:
        """Number of cells, M."""
        return sum(self.cells_per_node)

    @cached_property
    def n_configurations(self) -> int:
        """Number of configurations, m."""
        return sum(n // c for n, c in zip(self.cells_per_node, self.cards, strict=True))

    @property
    def n_free(self) -> int:
        """Number of free parameters, M - m: the dimension that sampling noise is spread over."""
        return self.n_cells - self.n_configurations

    @cached_property
    def strides(self) -> tuple[tuple[int, ...], ...]:
        """Step, in cells, that each member of a family takes; the node's own step is 1."""
        return tuple(
            tuple(prod(self.cards[c] for c in family[k + 1 :]) for k in range(len(family)))
            for family in self.families
        )

    @cached_property
    def cell_start(self) -> NDArray[np.int64]:
        """First cell of each node, and M at the end; shape (d + 1,)."""
        self.require_addressable()
        return _running_sum(self.cells_per_node)

    @cached_property
    def config_start(self) -> NDArray[np.int64]:
        """First configuration of each node, and m at the end; shape (d + 1,)."""
        self.require_addressable()
        return _running_sum([n // c for n, c in zip(self.cells_per_node, self.cards, strict=True)])

    @cached_property
    def config_cards(self) -> NDArray[np.int64]:
        """Number of states in each configuration; shape (m,)."""
        return np.repeat(self.cards, np.diff(self.config_start)).astype(np.int64)

    @cached_property
    def config_of_cell(self) -> NDArray[np.int64]:
        """The configuration that each cell belongs to; shape (M,)."""
        return np.repeat(np.arange(self.n_configurations), self.config_cards)

    @cached_property
    def first_cell_of_config(self) -> NDArray[np.int64]:
        """First cell of each configuration; shape (m,)."""
        return _running_sum(self.config_cards)[:-1]

    def table_of(self, i: int, cells: NDArray[Any]) -> NDArray[Any]:
        """Return what a node's cells hold, a line a configuration: a view, not a copy."""
        own = cells[self.cell_start[i] : self.cell_start[i + 1]]
        return own.reshape(-1, self.cards[i], *cells.shape[1:])

    def node_of_configuration(self, k: int) -> int:
        """Return the column of the node that a configuration belongs to."""
        return int(np.searchsorted(self.config_start, k, side="right")) - 1

    def sum_configurations(self, cells: NDArray[Any]) -> NDArray[np.float64]:
        """Return `result[k] = sum of cells[j] over the states j of configuration k`."""
        total: NDArray[np.float64]
        total = np.add.reduceat(cells, self.first_cell_of_config, axis=0, dtype=np.float64)
        return total

    def joint_states(
        self, codes: Codes, columns: Sequence[int]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return which joint state of some columns each row shows, and which rows show one."""
        states, is_shown = np.zeros(len(codes), np.int64), np.ones(len(codes), bool)
        for c in columns:
            is_shown &= codes[:, c] < self.cards[c]
            states *= self.cards[c]
            states += codes[:, c]
        return states, is_shown

    def require_addressable(self) -> None:
        """Refuse, before anything is allocated, a network whose tables cannot be addressed."""
        if self.n_cells <= MOST_CELLS:
            return
        worst = max(range(self.n_nodes), key=lambda i: self.cells_per_node[i])
        raise InsufficientMemoryError(
            f"The tables have {self.n_cells:.3g} cells ({self.n_cells * 8 / 2**30:.3g} GiB as "
            f"float64); at most {MOST_CELLS:.3g} can be addressed. The largest belongs to node "
            f"number {worst}: {len(self.families[worst]) - 1} parents, "
            f"{self.cells_per_node[worst]:.3g} cells. Give that node fewer parents or fewer states."
        )


def _running_sum(sizes: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
