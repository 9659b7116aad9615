"""What weighted rows look like from their own tables: the top of their covariance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robustbn._core.expansion import Expansion
from robustbn._core.protocols import Rows, RowVector, Vector
from robustbn._core.spectrum import top_eigenpairs
from robustbn._core.trust import even_weights, sum_weights
from robustbn._core.tuning import Tuning


@dataclass(frozen=True, eq=False)
class RowSpectrum:
    """Tables of weighted rows, and the top of their covariance.

    Parameters
    ----------
    q : weighted tables; shape (M,).
    values : top eigenvalues, largest first.
    table : for each, the table whose sum over a row's cells is its score along it; shape (M, k).
    """

    q: Vector
    values: Vector
    table: Vector

    @property
    def top(self) -> float:
        """The largest eigenvalue: about 1 for good rows."""
        return float(self.values[0]) if len(self.values) else 0.0


def find_spectrum(
    rows: Rows,
    weights: RowVector,
    tuning: Tuning,
    damping: float | None = None,
    counts: Vector | None = None,
) -> RowSpectrum:
    """Centre and scale rows at their own weighted counts and find the top of the covariance.

    Parameters
    ----------
    counts : of the rows by these weights, if they are known; shape (M,).
    """
    damping = tuning.spectrum_damping if damping is None else damping
    expansion = Expansion.at_weights_of(rows, weights, damping, counts=counts)
    spectrum = top_eigenpairs(
        expansion,
        weights,
        np.zeros(expansion.dim),
        sum_weights(weights),
        width=tuning.spectrum_width,
        depth=tuning.spectrum_depth,
        enough=tuning.spectrum_obvious,
    )
    directions = spectrum.vectors[:, : tuning.spectrum_directions]
    return RowSpectrum(expansion.q, spectrum.values, expansion.table(directions))


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


def find_bottom(rows: Rows, weights: RowVector, tuning: Tuning) -> float:
    """Return 1 less the largest shortfall of the covariance against that of the tables.

    About 1 for rows of a network. An edge that is missing moves eigenvalues up and down alike; bad
    rows move the top far more than the bottom.
    """
    expansion = Expansion.at_weights_of(rows, weights, tuning.spectrum_damping)
    total = sum_weights(weights)
    short = top_eigenpairs(
        _Shortfall(expansion, total),  # type: ignore[arg-type]
        weights,
        np.zeros(expansion.dim),
        total,
        width=tuning.spectrum_width,
        depth=tuning.spectrum_depth,
    )
    return 1.0 - short.top


def clean_top(clean: Rows, n_rows: float, tuning: Tuning) -> float:
    """Return the top eigenvalue to expect of `n_rows` good rows, from drawn ones.

    With n rows instead of n' the excess over 1, which is sampling noise, changes by at most
    `sqrt(n' / n)`.
    """
    ratio = clean.n_rows / n_rows
    even, damping = even_weights(clean.n_rows), tuning.spectrum_damping * ratio
    top = find_spectrum(clean, even, tuning, damping).top
    return 1.0 + max(0.0, top - 1.0) * float(np.sqrt(ratio))
