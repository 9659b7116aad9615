"""The N x M matrix that is never built, and the algebra of what counts say about tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from robustbn._core.layout import Layout
from robustbn._core.moments import PairMemory
from robustbn._core.protocols import Rows, RowVector, Vector
from robustbn._core.tuning import TUNING

ROUNDING_OF_TRUST = float(np.finfo(np.float32).eps)


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
    """Return counts of trusted rows, 0 in configurations of which only rounding is left; (M,).

    The trust in a row is a number of single precision: what is left of rows that are all distrusted
    is below its rounding, and says nothing of a table.

    Parameters
    ----------
    plain_counts : the same with every row trusted.
    """
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
    uniform: Vector = 1.0 / layout.config_cards[layout.config_of_cell]
    return uniform


def standard_errors(layout: Layout, counts: Vector, q: Vector) -> Vector:
    """Return `sqrt(q (1 - q) / C[k])` of each cell, never less than that of half a row."""
    of_config = np.maximum(layout.sum_configurations(counts), 0.5)[layout.config_of_cell]
    errors: Vector = np.sqrt(np.maximum(q * (1 - q), 0.25 / of_config) / of_config)
    return errors


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
    """Return the weight of all rows, shape () or (r,).

    Parameters
    ----------
    layout : of the rows, with the columns in which values are missing.
    counts, weights : of shapes (M,) and (N,), or (M, r) and (N, r).
    """
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

    Parameters
    ----------
    rows : the rows, wherever they are.
    q : current tables, each configuration summing to 1; shape (M,).
    pi : probability of each configuration; shape (m,).
    scale : s; shape (M,).
    pairs : of the rows' cells, for those who write covariances down; None where it does not pay.
    """

    rows: Rows
    q: Vector
    pi: Vector
    scale: Vector
    pairs: PairMemory | None = None

    @classmethod
    def at_weights_of(
        cls,
        rows: Rows,
        weights: RowVector,
        damping: float = TUNING.spectrum_damping,
        pairs: PairMemory | None = None,
        counts: Vector | None = None,
    ) -> Self:
        """Centre and scale at weighted counts: zero mean, variances close to 1. One pass.

        None where the counts are known.

        `s = 1 / sqrt(pi q + damping / N)`: a cell that fewer than about `damping` rows touch is
        scaled down, so that a handful of rows in rare configurations cannot dominate the spectrum.
        For common cells this is the paper's scaling (isometric to it for two states). Where values
        are missing, pi is the share of the rows that show a configuration.
        """
        counts, layout = rows.count(weights) if counts is None else counts, rows.layout
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
        """Number of rows, N."""
        return self.rows.n_rows

    @property
    def dim(self) -> int:
        """Length of the vectors, M."""
        return self.rows.layout.n_cells

    def mean(self, weights: RowVector | None = None) -> Vector:
        """Return the weighted mean, `s pi_w (q_w - q)`; shape (M,). One pass."""
        counts = self.rows.count(weights)
        if weights is None:
            weights = np.ones(self.n_rows, np.float32)
        total = total_weight(self.rows.layout, counts, weights)
        return self._vectors(counts[:, None])[:, 0] / total

    def gram(self, V: Vector, weights: RowVector | None, center: Vector) -> Vector:
        """Return `sum of weights[n] (x[n] - center) (x[n] - center)' V`; one pass."""
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
        product: Vector = self.rows.count(weights) @ table - total * offset
        return product

    def score(self, V: Vector, center: Vector) -> RowVector:
        """Return `|V' (x[n] - center)|^2`; one pass."""
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
        table: Vector = scaled - inner[layout.config_of_cell]
        return table

    def _vectors(self, cells: Vector) -> Vector:
        """Return `sum of weights[n] f^[n] y[n]'` from sums over cells; the adjoint of `table`."""
        layout = self.rows.layout
        by_config = layout.sum_configurations(cells)[layout.config_of_cell]
        vectors: Vector = self.scale[:, None] * (cells - self.q[:, None] * by_config)
        return vectors


@dataclass(frozen=True)
class FollowingExpansion(Expansion):
    """An expansion whose centre and scale follow the weights while an oracle lowers them."""

    def at_weights(self, weights: RowVector) -> Self:
        """Centre and scale at the counts of the rows that are trusted now; one pass."""
        return self.at_weights_of(self.rows, weights, pairs=self.pairs)
