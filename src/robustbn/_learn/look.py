"""Whether rows look like rows of the network: both ends of their covariance, and drawn rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robustbn._core.expansion import DAMPING, Expansion
from robustbn._core.protocols import Rows, RowVector, Vector
from robustbn._core.row_model import Draw
from robustbn._core.spectrum import top_eigenpairs
from robustbn._core.trust import even_weights, sum_weights

WIDTH = 8  # columns: a pass costs the same for 1 to 8
DEPTH = 4  # passes: enough for a top well above the rest
OBVIOUS = 2.0  # eigenvalue: a top above it need not be known more precisely
DIRECTIONS = 8  # kept, of those in which rows vary most
ALLOWANCE = 0.02  # eigenvalue that rows may have above what drawn ones have
NOISE = 1.25  # times the excess of drawn rows over 1, which is noisy itself
QUIET = 0.15  # sampling noise, sqrt(parameters / rows): good rows of any network may have this top
LEAST_DRAWN, MOST_DRAWN = 1_000, 50_000  # rows drawn from the tables, to compare
MOST_DRAWS = 8  # tables drawn, of rows fewer than that: the top of one varies by 0.01 to 0.05


@dataclass(frozen=True, eq=False)
class RowSpectrum:
    """Tables of weighted rows, and the top of their covariance."""

    q: Vector  # weighted tables; shape (M,)
    values: Vector  # top eigenvalues, largest first
    # for each, the table whose sum over a row's cells is its score along it; shape (M, k)
    table: Vector

    @property
    def top(self) -> float:
        """The largest eigenvalue: about 1 for good rows."""
        return float(self.values[0]) if len(self.values) else 0.0


@dataclass(frozen=True, eq=False)
class Look:
    """What some rows look like."""

    spectrum: RowSpectrum  # of the rows
    limit: float  # what its top may be for rows of the network
    # as many rows drawn from their tables, if there was a reason to draw some
    clean: Rows | None = None

    @property
    def top(self) -> float:
        """The largest eigenvalue."""
        return self.spectrum.top

    @property
    def excess(self) -> float:
        """By how much rows vary more than drawn ones do; negative for rows of the network."""
        return self.top - self.limit


def look_at(rows: Rows, weights: RowVector, draw: Draw, *, closely: bool = False) -> Look:
    """Look at weighted rows, and at rows drawn from their tables, several times if they are few.

    None are drawn, unless `closely`, where the top is what good rows may have, or far too large.
    """
    order = order_cells(rows)
    spectrum, n = find_spectrum(rows, weights, order), max(sum_weights(weights), 1.0)
    if not closely:
        quiet = 1 + QUIET * float(np.sqrt(rows.layout.n_free / n))
        if spectrum.top <= quiet:
            return Look(spectrum, quiet + ALLOWANCE)
        if spectrum.top > OBVIOUS:
            return Look(spectrum, 1.0)
    size = int(min(max(n, LEAST_DRAWN), MOST_DRAWN))
    drawn = [draw([(spectrum.q, size)]) for _ in range(min(MOST_DRAWN // size, MOST_DRAWS))]
    top = float(np.mean([clean_top(clean, n, order) for clean in drawn]))
    return Look(spectrum, 1 + NOISE * (top - 1) + ALLOWANCE, drawn[0])


def find_spectrum(
    rows: Rows,
    weights: RowVector,
    order: NDArray[np.int64] | None = None,
    damping: float = DAMPING,
) -> RowSpectrum:
    """Centre and scale rows at their own weighted counts and find the top of the covariance."""
    expansion = Expansion.at_weights_of(rows, weights, damping)
    spectrum = top_eigenpairs(
        expansion,
        weights,
        np.zeros(expansion.dim),
        sum_weights(weights),
        width=WIDTH,
        depth=DEPTH,
        enough=OBVIOUS,
        order=order_cells(rows) if order is None else order,
    )
    directions = spectrum.vectors[:, :DIRECTIONS]
    return RowSpectrum(expansion.q, spectrum.values, expansion.table(directions))


def order_cells(rows: Rows) -> NDArray[np.int64]:
    """Return the cells by what the rows show, wherever nodes and states stand. One pass."""
    layout, counts = rows.layout, rows.count()
    of_node = np.add.reduceat(counts**2, layout.cell_start[:-1])
    keys = (
        np.repeat(of_node, layout.cells_per_node),
        counts,
        layout.sum_configurations(counts)[layout.config_of_cell],
    )
    return np.lexsort(keys)


def clean_top(clean: Rows, n_rows: float, order: NDArray[np.int64] | None = None) -> float:
    """Return the top eigenvalue to expect of `n_rows` good rows, from drawn ones."""
    # With n rows instead of n' the excess over 1, which is sampling noise, changes by at most
    # `sqrt(n' / n)`.
    ratio = clean.n_rows / n_rows
    top = find_spectrum(clean, even_weights(clean.n_rows), order, DAMPING * ratio).top
    return 1.0 + max(0.0, top - 1.0) * float(np.sqrt(ratio))


# --- the other end --------------------------------------------------------------------------------


def look_at_bottom(rows: Rows, weights: RowVector, good: Vector, draw: Draw) -> tuple[float, float]:
    """Return the bottom of weighted rows' covariance, and that of rows drawn from tables."""
    n = max(sum_weights(weights), LEAST_DRAWN)
    drawn = draw([(good, int(min(n, MOST_DRAWN)))])
    noise = 1 - find_bottom(drawn, even_weights(drawn.n_rows))
    return find_bottom(rows, weights), 1 - noise * float(np.sqrt(drawn.n_rows / n))


@dataclass(frozen=True, eq=False)
class _Shortfall:
    """Rows whose products say by how much they vary less than rows of their tables would."""

    expansion: Expansion
    total: float

    @property
    def dim(self) -> int:
        return self.expansion.dim

    def gram(self, V: Vector, weights: RowVector | None, center: Vector) -> Vector:
        return self.expansion.expected(V) * self.total - self.expansion.gram(V, weights, center)


def find_bottom(rows: Rows, weights: RowVector) -> float:
    """Return 1 less the largest shortfall of the covariance against that of the tables."""
    # About 1 for rows of a network. An edge that is missing moves eigenvalues up and down alike;
    # bad rows move the top far more than the bottom.
    expansion, total = Expansion.at_weights_of(rows, weights, DAMPING), sum_weights(weights)
    short = top_eigenpairs(
        _Shortfall(expansion, total),  # type: ignore[arg-type]
        weights,
        np.zeros(expansion.dim),
        total,
        width=WIDTH,
        depth=DEPTH,
        order=order_cells(rows),
    )
    return 1.0 - short.top
