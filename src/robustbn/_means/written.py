"""What weighted rows look like, from a covariance that is written down instead of passes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robustbn._core.expansion import Contrasts, Expansion, PairMemory
from robustbn._core.protocols import RowVector, Vector, Vectors
from robustbn._core.spectrum import top_of_products
from robustbn._means.weighting import Look, look_at


@dataclass(frozen=True)
class WrittenLook(Look):
    """A look that keeps what it saw."""

    covariance: Vector  # `Sigma(w)` in the coordinates of `Contrasts`; shape (M - m, M - m)


@dataclass(frozen=True, eq=False)
class WrittenVectors:
    """An expansion of which covariances can be written down.

    The same numbers as by passes over the rows, up to rounding. A new look passes over the rows
    whose weights changed; products with what was seen take none.
    """

    vectors: Expansion  # the expansion
    pairs: PairMemory  # of its rows

    @cached_property
    def contrasts(self) -> Contrasts:
        """The coordinates."""
        return Contrasts(self.vectors.rows.layout, self.vectors.q, self.vectors.scale)

    @cached_property
    def expected(self) -> Vector:
        """The covariance that good rows should have, in these coordinates."""
        vectors = self.vectors
        shares = vectors.pi[vectors.rows.layout.config_of_cell] * vectors.q
        return self.contrasts.moments(np.diag(shares))

    @cached_property
    def _diagonal(self) -> Vector | None:
        """The diagonal of `expected`, if there is nothing beside it: all nodes have two states."""
        diagonal = np.diag(self.expected).copy()
        return diagonal if np.count_nonzero(self.expected) == np.count_nonzero(diagonal) else None

    def expect(self, V: Vector) -> Vector:
        """Return `expected` times V."""
        return self.expected @ V if self._diagonal is None else self._diagonal[:, None] * V

    def look_at(self, weights: RowVector, *, seed: int = 0) -> WrittenLook:
        """Return the weighted mean, the weighted covariance and its top."""
        mean = self.vectors.mean(weights)
        total = float(weights.sum(dtype=np.float64))
        short = self.contrasts.reduce(mean[:, None])
        moments = self.contrasts.moments(self.pairs.at(weights))
        covariance = moments / total - short * short.T
        spectrum = top_of_products(
            lambda V: self.contrasts.lift(covariance @ self.contrasts.reduce(V)),
            self.vectors.dim,
            seed=seed,
        )
        return WrittenLook(mean, total, spectrum, covariance)


@dataclass(frozen=True, eq=False)
class PassedVectors:
    """Vectors that are only known through passes over the rows."""

    vectors: Vectors

    def look_at(self, weights: RowVector, *, seed: int = 0) -> Look:
        """Return the weighted mean and the top of the weighted covariance."""
        return look_at(self.vectors, weights, seed=seed)


def see(vectors: Vectors) -> WrittenVectors | PassedVectors:
    """Return the vectors with covariances written down, unless passes are the better way."""
    if isinstance(vectors, Expansion) and vectors.pairs is not None:
        return WrittenVectors(vectors, vectors.pairs)
    return PassedVectors(vectors)
