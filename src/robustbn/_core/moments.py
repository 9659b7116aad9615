"""Covariances of an expansion, written down: for networks whose cells are few beside the rows.

Notation: `P(w)[i, j]` is the weight of the rows that touch both cell i and cell j. A row's vector
is a linear function of the cells it touches, so `P(w)` has all second moments at any q and scale.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from robustbn._core.layout import Layout
from robustbn._core.protocols import PairCounting, Rows, RowVector, Vector

MOST_WRITTEN_CELLS = 2048  # 32 MiB a matrix, of which five or so are held at a time


@dataclass(eq=False)
class PairMemory:
    """`P(w)` for one w after another, each from one that was asked for before.

    Kept are the first, which in most uses trusts all rows, and the last. What lies between the next
    one and the nearer of them are the rows whose weight differs, and only those are passed over.

    Parameters
    ----------
    rows : that are counted.
    """

    rows: PairCounting
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
    """Return a memory of pairs, or None where passes over the rows are the better way.

    They are where the pairs of cells are more than the entries of the table, M^2 > N d, so that
    memory would no longer be linear in it; and where there are more than `MOST_WRITTEN_CELLS`.
    """
    layout = rows.layout
    is_small = layout.n_cells**2 <= rows.n_rows * layout.n_nodes
    if not is_small or layout.n_cells > MOST_WRITTEN_CELLS or not isinstance(rows, PairCounting):
        return None
    return PairMemory(rows)


@dataclass(frozen=True, eq=False)
class Contrasts:
    """Coordinates of an expansion's vectors that leave out what is always zero: M - m of M.

    Within a configuration every vector is orthogonal to `1 / s`. The reflection that takes `1 / s`
    to the last state's axis, `I - 2 u u'`, leaves the other states' axes as coordinates. They are
    orthonormal: norms, traces and eigenvalues stay what they are.

    Parameters
    ----------
    layout : of the M cells.
    q, scale : of the expansion; shape (M,).
    """

    layout: Layout
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
        shares: Vector = values / np.sqrt(squares)[self.layout.config_of_cell]
        return shares

    @cached_property
    def _kept(self) -> NDArray[np.int64]:
        """All cells but the last of each configuration; shape (M - m,)."""
        layout = self.layout
        last = layout.first_cell_of_config + layout.config_cards - 1
        return np.delete(np.arange(layout.n_cells), last)

    def _reflect(self, V: Vector) -> Vector:
        layout, u = self.layout, self._reflector[:, None]
        reflected: Vector = V - 2.0 * u * layout.sum_configurations(u * V)[layout.config_of_cell]
        return reflected

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
