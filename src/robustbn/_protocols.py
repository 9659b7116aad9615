"""What a backend must offer: three primitives over rows, and a way to draw rows.

Whoever decides which rows to trust sees only `Rows`; whoever holds the rows never learns why it is
called. Vectors of length M are NumPy arrays on the host; vectors of length N stay with the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from robustbn._layout import Layout

Vector = NDArray[np.float64]  # of length M, or (M, r)
RowVector = NDArray[np.floating]  # of length N


class Rows(Protocol):
    """Encoded rows. Row n touches d cells, one a node; `cells(n)` below is that set."""

    @property
    def layout(self) -> Layout:
        """Where each cell lives."""

    @property
    def n_rows(self) -> int:
        """Number of rows, N."""

    def count(self, weights: RowVector | None = None) -> Vector:
        """Return `C[j] = sum of weights[n] over rows n with j in cells(n)`; shape (M,)."""

    def project(self, table: Vector, offset: Vector | None = None) -> NDArray[np.floating]:
        """Return `y[n] = sum of table[j] over j in cells(n), minus offset`; shape (N, r)."""

    def score(self, table: Vector, offset: Vector | None = None) -> RowVector:
        """Return `|y[n]|^2` with y as in `project`; shape (N,)."""

    def gram(
        self, table: Vector, offset: Vector | None = None, weights: RowVector | None = None
    ) -> Vector:
        """Return `G[j] = sum of weights[n] y[n] over rows n with j in cells(n)`; shape (M, r)."""


class Backend(Protocol):
    """A module that holds rows somewhere and works on them."""

    def encode(
        self, layout: Layout, codes: NDArray[np.uint8], n_threads: int | None = None
    ) -> Rows:
        """Check that every code is in range and return the rows in the backend's own form.

        Raises `CodeRangeError` with the first offending row and column.
        """

    def sample(
        self,
        layout: Layout,
        order: Sequence[int],
        probabilities: Vector,
        n_rows: int,
        key: int,
        n_threads: int | None = None,
    ) -> NDArray[np.uint8]:
        """Draw rows; the same `key` gives the same rows in every backend; shape (N, d)."""
