"""The N x M matrix that is never built, and the algebra of what counts say about tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from robustbn._core.layout import Layout
from robustbn._core.protocols import Rows, RowVector, Vector

DAMPING = 30.0  # rows: cells that fewer touch are scaled down, or a handful decides the top
ROUNDING_OF_TRUST = float(np.finfo(np.float32).eps)
MOST_WRITTEN_CELLS = 2048  # 32 MiB a matrix, of which five or so are held at a time


def normalise_counts(layout: Layout, counts: Vector, pseudo_counts: Vector | float = 0.0) -> Vector:
    """Return `q[k, v] = (C[k, v] + A[k, v]) / sum over v of (C[k, v] + A[k, v])`; shape (M,).

    A configuration with neither counts nor pseudo-counts is uniform. Counts and pseudo-counts of
    shape (M, r) give tables of that shape.
    """
    smoothed = counts + pseudo_counts
    total = layout.sum_configurations(smoothed)[layout.config_of_cell]
    tables = np.empty_like(smoothed, float)
    tables.T[:] = 1.0 / layout.config_cards[layout.config_of_cell]
    return np.divide(smoothed, total, out=tables, where=total > 0)


def drop_rounding(layout: Layout, counts: Vector, plain_counts: Vector) -> Vector:
    """Return counts of trusted rows, 0 in configurations of which only rounding is left; (M,)."""
    # The trust in a row is a number of single precision: what is left of rows that are all
    # distrusted is below its rounding, and says nothing of a table. `plain_counts` are with every
    # row trusted.
    trusted, plain = (layout.sum_configurations(each) for each in (counts, plain_counts))
    is_seen = trusted > ROUNDING_OF_TRUST * plain
    return np.where(is_seen[layout.config_of_cell], counts, 0.0)


def bdeu_pseudo_counts(layout: Layout, equivalent_sample_size: float) -> Vector:
    """Return `A[k, v] = equivalent_sample_size / (cells of the node)`; shape (M,)."""
    return np.repeat(
        [equivalent_sample_size / n for n in layout.cells_per_node], layout.cells_per_node
    )


def uniform_tables(layout: Layout) -> Vector:
    """Return the tables that know nothing; shape (M,)."""
    return 1.0 / layout.config_cards[layout.config_of_cell]


def standard_errors(layout: Layout, counts: Vector, q: Vector) -> Vector:
    """Return `sqrt(q (1 - q) / C[k])` of each cell, never less than that of half a row."""
    of_config = np.maximum(layout.sum_configurations(counts), 0.5)[layout.config_of_cell]
    return np.sqrt(np.maximum(q * (1 - q), 0.25 / of_config) / of_config)


def chi_distance(layout: Layout, pi: Vector, p: Vector, q: Vector) -> float:
    """Return `sqrt(sum of pi (p - q)^2 / q)`: for small differences, 2.5 times total variation."""
    weight = pi[layout.config_of_cell] / np.maximum(q, 1e-9)
    return float(np.sqrt(weight @ (p - q) ** 2))


def log_probabilities(probabilities: Vector) -> Vector:
    """Return the logarithm, minus infinity for a probability of zero."""
    with np.errstate(divide="ignore"):
        return np.log(probabilities)


def sum_over_rows(layout: Layout, cells: Vector) -> Vector:
    """Return the sum over all rows from sums over the rows of each cell: any one node has it.

    Where values are missing no node may have it: then the one that is shown most often says how
    many rows there are at least. Shape () for counts of shape (M,), shape (r,) for (M, r).
    """
    first: Vector = cells[: layout.cells_per_node[0]].sum(axis=0)
    most = np.add.reduceat(cells, layout.cell_start[:-1], axis=0).max(axis=0)
    return np.where(most > first * (1 + 1e-9), most, first)


def total_weight(layout: Layout, counts: Vector, weights: RowVector) -> Vector:
    """Return the weight of all rows, shape () or (r,), for weights of shape (N,) or (N, r)."""
    if layout.holed:
        total: Vector = weights.sum(axis=0, dtype=np.float64)
        return total
    return sum_over_rows(layout, counts)


@dataclass(frozen=True)
class Expansion:
    """Rows seen as the vectors `f^(x, q)` of the paper, without ever writing one down.

    Notation: cell j = (k, v) is state v of configuration k. A row x that shows configuration k has
    `f^[k, v] = s[k, v] (1[x shows v] - q[k, v])`; configurations it does not show have 0
    (Definitions f(X, q) and hat-f, for any number of states). A row touches d cells, so its product
    with a vector V is a sum of d entries of the table

        T[k, v] = s[k, v] V[k, v] - sum over u of q[k, u] s[k, u] V[k, u]

    and changing q or s costs O(M), not O(N d).
    """

    rows: Rows  # the rows, wherever they are
    q: Vector  # current tables, each configuration summing to 1; shape (M,)
    pi: Vector  # probability of each configuration; shape (m,)
    scale: Vector  # s; shape (M,)
    # of the rows' cells, for those who write covariances down; None where it does not pay
    pairs: PairMemory | None = None

    @classmethod
    def at_weights_of(
        cls,
        rows: Rows,
        weights: RowVector,
        damping: float = DAMPING,
        pairs: PairMemory | None = None,
    ) -> Self:
        """Centre and scale at weighted counts: zero mean, variances close to 1. One pass.

        `s = 1 / sqrt(pi q + damping / N)`: a cell that fewer than about `damping` rows touch is
        scaled down, so that a handful of rows in rare configurations cannot dominate the spectrum.
        For common cells this is the paper's scaling (isometric to it for two states). Where values
        are missing, pi is the share of the rows that show a configuration.
        """
        counts, layout = rows.count(weights), rows.layout
        n = total_weight(layout, counts, weights)
        return cls(
            rows,
            normalise_counts(layout, counts),
            layout.sum_configurations(counts) / n,
            np.sqrt(n / (counts + damping)),
            pairs,
        )

    @property
    def n_rows(self) -> int:
        return self.rows.n_rows

    @property
    def dim(self) -> int:
        return self.rows.layout.n_cells

    def mean(self, weights: RowVector | None = None) -> Vector:
        """Return the weighted mean, `s pi_w (q_w - q)`; shape (M,). One pass."""
        counts = self.rows.count(weights)
        if weights is None:
            weights = np.ones(self.n_rows, np.float32)
        total = total_weight(self.rows.layout, counts, weights)
        return self._vectors(counts[:, None])[:, 0] / total

    def gram(self, V: Vector, weights: RowVector | None, center: Vector) -> Vector:
        table, offset = self.table(V), center @ V
        cells = self.rows.gram(table, offset, weights)
        return self._vectors(cells) - center[:, None] * self._sum(table, offset, weights, cells)

    def _sum(
        self, table: Vector, offset: Vector, weights: RowVector | None, cells: Vector
    ) -> Vector:
        """Return `sum of weights[n] y[n]` over all rows; `cells` has it if no value is missing."""
        if not self.rows.layout.holed:
            return sum_over_rows(self.rows.layout, cells)
        total = self.n_rows if weights is None else weights.sum(dtype=np.float64)
        return self.rows.count(weights) @ table - total * offset

    def score(self, V: Vector, center: Vector) -> RowVector:
        return self.rows.score(self.table(V), center @ V)

    def square_norms(self, center: Vector) -> RowVector:
        """Return `|x[n] - center|^2`; one pass with two columns."""
        layout = self.rows.layout
        squares = layout.sum_configurations((self.scale * self.q) ** 2)[layout.config_of_cell]
        own = self.scale**2 * ((1 - self.q) ** 2 - self.q**2) + squares
        table = np.stack([own, self.table(center[:, None])[:, 0]], axis=1)
        y = self.rows.project(table)
        return y[:, 0] - 2 * y[:, 1] + center @ center

    def expected(self, V: Vector) -> Vector:
        """Return the covariance of `f^` at q, times V: per configuration a scaled projection."""
        weight = (self.pi[self.rows.layout.config_of_cell] * self.q)[:, None]
        return self.scale[:, None] * weight * self.table(V)

    def table(self, V: Vector) -> Vector:
        """Return T, the table whose sum over a row's cells is the row's product with V."""
        layout = self.rows.layout
        scaled = self.scale[:, None] * V
        inner = layout.sum_configurations(self.q[:, None] * scaled)
        return scaled - inner[layout.config_of_cell]

    def _vectors(self, cells: Vector) -> Vector:
        """Return `sum of weights[n] f^[n] y[n]'` from sums over cells; the adjoint of `table`."""
        layout = self.rows.layout
        by_config = layout.sum_configurations(cells)[layout.config_of_cell]
        return self.scale[:, None] * (cells - self.q[:, None] * by_config)


@dataclass(frozen=True)
class FollowingExpansion(Expansion):
    """An expansion whose centre and scale follow the weights while an oracle lowers them."""

    def at_weights(self, weights: RowVector) -> Self:
        """Centre and scale at the counts of the rows that are trusted now; one pass."""
        return self.at_weights_of(self.rows, weights, pairs=self.pairs)


# --- covariances, written down: for networks whose cells are few beside the rows -----------------
#
# `P(w)[i, j]` is the weight of the rows that touch both cell i and cell j. A row's vector is a
# linear function of the cells it touches, so `P(w)` has all second moments at any q and scale.


@dataclass(eq=False)
class PairMemory:
    """`P(w)` for one w after another, each from one that was asked for before.

    Kept are the first, which in most uses trusts all rows, and the last. What lies between the next
    one and the nearer of them are the rows whose weight differs, and only those are passed over.
    """

    rows: Rows  # that are counted
    _kept: list[tuple[RowVector, Vector]] = field(default_factory=list)

    def at(self, weights: RowVector) -> Vector:
        """Return `P(weights)`; shape (M, M), not to be changed."""
        w = weights.astype(np.float64)
        differing = [np.count_nonzero(kept != w) for kept, _ in self._kept]
        if min(differing, default=len(w)) > len(w) // 2:
            pairs = self.rows.count_pairs(w)
        else:
            near, of_near = self._kept[int(np.argmin(differing))]
            pairs = of_near + self.rows.count_pairs(w - near) if min(differing) else of_near
        self._kept = [*self._kept[:1], (w, pairs)]
        return pairs


def remember_pairs(rows: Rows) -> PairMemory | None:
    """Return a memory of pairs, or None where passes over the rows are the better way."""
    layout = rows.layout
    is_small = layout.n_cells**2 <= rows.n_rows * layout.n_nodes
    return PairMemory(rows) if is_small and layout.n_cells <= MOST_WRITTEN_CELLS else None


@dataclass(frozen=True, eq=False)
class Contrasts:
    """Coordinates of an expansion's vectors that leave out what is always zero: M - m of M.

    Within a configuration every vector is orthogonal to `1 / s`. The reflection that takes `1 / s`
    to the last state's axis, `I - 2 u u'`, leaves the other states' axes as coordinates. They are
    orthonormal: norms, traces and eigenvalues stay what they are.
    """

    layout: Layout  # of the M cells
    # q, scale: of the expansion; shape (M,)
    q: Vector
    scale: Vector

    @cached_property
    def _reflector(self) -> Vector:
        """u, of length 1 in each configuration; shape (M,)."""
        layout = self.layout
        u = self._share_of_configuration(1.0 / self.scale)
        last = layout.first_cell_of_config + layout.config_cards - 1
        u[last] += 1.0
        return self._share_of_configuration(u)

    def _share_of_configuration(self, values: Vector) -> Vector:
        """Return the values, divided by their length within the configuration."""
        squares = self.layout.sum_configurations(values**2)
        return values / np.sqrt(squares)[self.layout.config_of_cell]

    @cached_property
    def _kept(self) -> NDArray[np.int64]:
        """All cells but the last of each configuration; shape (M - m,)."""
        layout = self.layout
        last = layout.first_cell_of_config + layout.config_cards - 1
        return np.delete(np.arange(layout.n_cells), last)

    def _reflect(self, V: Vector) -> Vector:
        layout, u = self.layout, self._reflector[:, None]
        return V - 2.0 * u * layout.sum_configurations(u * V)[layout.config_of_cell]

    def reduce(self, V: Vector) -> Vector:
        """Return the coordinates of what V has in common with vectors; shape (M - m, r)."""
        return self._reflect(V)[self._kept]

    def lift(self, coordinates: Vector) -> Vector:
        """Return what has these coordinates, the adjoint of `reduce`; shape (M, r)."""
        V = np.zeros((self.layout.n_cells, coordinates.shape[1]))
        V[self._kept] = coordinates
        return self._reflect(V)

    def moments(self, pairs: Vector) -> Vector:
        """Return `sum of w x x'` in these coordinates from `P(w)`; O(M^2) time for few states."""
        return self._combine(self._combine(pairs).T)

    @cached_property
    def _lines(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64], Vector]]:
        """The map from cells to coordinates, a state at a time: coordinates, cells, factors."""
        layout, u, s = self.layout, self._reflector, self.scale
        own = self._kept
        config = layout.config_of_cell[own]
        shift = layout.sum_configurations(u * s * self.q)[config]
        lines = []
        for state in range(int(layout.config_cards.max(initial=0))):
            here = np.flatnonzero(layout.config_cards[config] > state)
            i, j = own[here], layout.first_cell_of_config[config[here]] + state
            factors = s[i] * ((i == j) - self.q[i]) - 2.0 * u[i] * (u[j] * s[j] - shift[here])
            lines.append((here, j, factors))
        return lines

    def _combine(self, cells: Vector) -> Vector:
        """Return `reduce` of the vectors that are known by their sums over cells."""
        combined = np.zeros((len(self._kept), cells.shape[1]))
        for coordinates, j, factors in self._lines:
            part = cells[j]
            part *= factors[:, None]
            if len(part) == len(combined):  # all have this state: no need to pick lines
                combined += part
            else:
                combined[coordinates] += part
        return combined
