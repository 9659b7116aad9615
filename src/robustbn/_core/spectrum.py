"""The top of a weighted covariance, by block Krylov iteration: products only, no matrix."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.protocols import RowVector, Vector, Vectors

SAME = 1e-7  # of a direction: where no more of it is new, only rounding is


@dataclass(frozen=True)
class Spectrum:
    """Ritz values, largest first, and the vectors of the first; shapes (k,) and (dim, width)."""

    values: Vector
    vectors: Vector

    @property
    def top(self) -> float:
        return float(self.values[0])


def top_eigenpairs(
    vectors: Vectors, weights: RowVector | None, center: Vector, total_weight: float, **how: Any
) -> Spectrum:
    """Return the top of `Sigma(w) = sum of w (x - center)(x - center)' / total_weight`.

    Rayleigh-Ritz on the Krylov space of a random block: `depth` passes over the rows with `width`
    columns each, fewer once the top value is above `enough`. An eigenvalue well above the rest is
    found to many digits; the edge of a bulk is approached from below, alike for two data sets of
    one kind, so compare like with like.
    """

    def multiply(V: Vector) -> Vector:
        return vectors.gram(V, weights, center) / total_weight

    return top_of_products(multiply, vectors.dim, **how)


def top_of_products(
    multiply: Callable[[Vector], Vector],
    dim: int,
    *,
    width: int = 8,
    depth: int = 4,
    enough: float = math.inf,
    seed: int = 0,
    order: NDArray[np.int64] | None = None,
) -> Spectrum:
    """Return the top of the symmetric matrix that `multiply` multiplies with, as above."""
    rng = np.random.default_rng(seed)
    width = min(width, dim)
    block = rng.normal(size=(dim, width))
    if order is not None:
        block[order] = block.copy()
    basis = np.empty((dim, 0))
    small = np.zeros((depth * width, depth * width))  # basis' Sigma basis, a block at a time
    for _ in range(depth):
        block = _orthonormal_to(basis, block)
        if not block.shape[1]:
            break
        old, new = basis.shape[1], basis.shape[1] + block.shape[1]
        product = multiply(block)
        basis = np.hstack([basis, block])
        small[:new, old:new] = basis.T @ product
        values, rotation = np.linalg.eigh(small[:new, :new], UPLO="U")
        if values[-1] > enough:
            break
        block = product
    return Spectrum(values[::-1], basis @ rotation[:, : -width - 1 : -1])


def _orthonormal_to(basis: Vector, block: Vector) -> Vector:
    """Return an orthonormal block of what is new in `block`; directions already there drop out."""
    # By the eigenvectors of its small matrix of products, twice: in a sixth of the time of a QR
    # decomposition of a long block, and as exactly.
    sizes = np.einsum("ij,ij->j", block, block)
    block = block / np.sqrt(np.maximum(sizes, 1e-300))
    for _ in range(2):
        block = block - basis @ (basis.T @ block)
        values, rotation = np.linalg.eigh(block.T @ block)
        kept = values > SAME**2
        block = block @ (rotation[:, kept] / np.sqrt(values[kept]))
    return block
