"""Rows of a matrix, dense or sparse, as the vectors that oracles work on.

Neither class copies the matrix to centre or scale it: a dense one is read in blocks of rows that
fit the cache, a sparse one through products with few columns, and scales act on the short side.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robustbn._core.numbers import count
from robustbn._core.protocols import RowVector, Vector, Vectors
from robustbn._means.weighting import MAD_TO_SD
from robustbn.exceptions import DataError

# A dense block is so small that its products stay in the cache and on one thread: a BLAS that wakes
# a second one for each of them is up to 30 times slower when the machine has other work, and not
# faster when it has none. OpenBLAS does so from 2^18 multiplications, or 9216 for a single vector.
BLOCK_ENTRIES = 2**15
SMALL_PRODUCT, SMALL_PRODUCT_WITH_VECTOR = 2**18, 9216
WIDE_BLOCK_ENTRIES = 2**20  # when a few rows exceed the limit already
BLOCK_COLUMNS = 16  # columns of one product with a sparse matrix
LARGEST = 1e100  # larger numbers overflow when squared and multiplied
SMALLEST = 1e-50  # columns of smaller numbers underflow when they are, and are lifted before
SCALED_ROWS = 30.0  # a column that fewer rows than this tell about is scaled as if it were so many

Locate = Callable[[int, int], tuple[int, int]]

VECTOR_METHODS = ("mean", "gram", "score", "square_norms", "expected")


def as_vectors(X: Any) -> Vectors:
    """Return the rows of X as vectors: an object that is such already, a SciPy matrix, an array.

    Raises `DataError` when X is none of these, is empty, or holds NaN or infinity.
    """
    if all(callable(getattr(X, name, None)) for name in VECTOR_METHODS):
        vectors: Vectors = X
        _require_shape((vectors.n_rows, vectors.dim))
        return vectors
    # A SciPy matrix can only be here if someone has imported SciPy.
    sparse = sys.modules.get("scipy.sparse")
    if sparse is not None and sparse.issparse(X):
        return SparseVectors.of(X)
    return DenseVectors.of(X)


@dataclass(frozen=True)
class ScaledRows:
    """Rows of a matrix, column j multiplied by `scale[j]`."""

    matrix: Any  # shape (N, dim); never changed
    scale: Vector  # shape (dim,)

    @property
    def n_rows(self) -> int:
        """Number of rows, N."""
        return int(self.matrix.shape[0])

    @property
    def dim(self) -> int:
        """Number of columns."""
        return int(self.matrix.shape[1])

    def rescaled(self, scale: Vector) -> Self:
        """Return the same rows with other scales."""
        return replace(self, scale=scale)

    def expected(self, V: Vector) -> Vector:
        """Return V: good rows are taken to have covariance I."""
        return V


class DenseVectors(ScaledRows):
    """Rows of a dense array of any real type, which is never copied.

    Time of a product with r columns: O(N dim r). Memory beside the array: one block of rows.
    """

    @classmethod
    def of(cls, X: ArrayLike) -> Self:
        """Check an array and hold it, with scale 1."""
        array = np.asarray(X)
        if array.ndim != 2:
            raise DataError(
                "X must be a matrix, shape (rows, columns); found "
                f"{count(array.ndim, 'dimension')}, shape {array.shape}. A single column is "
                "X.reshape(-1, 1)."
            )
        if array.dtype.kind not in "fiub":
            raise DataError(
                f"X must hold real numbers; found an array of type {array.dtype}. Convert it with "
                "X.astype(float)."
            )
        _require_shape(array.shape)
        held = cls(array, np.ones(array.shape[1]))
        for start, block in held._blocks(1):
            _require_finite(block, partial(_shift_row, start))
        return held

    def lifted(self, exponents: NDArray[np.int32]) -> Self:
        """Return the rows with columns multiplied by powers of two, which is exact; a copy."""
        return replace(self, matrix=np.ldexp(self.matrix.astype(np.float64), exponents))

    def column_sizes(self) -> Vector:
        """Return the largest number of each column, whatever its sign; one pass."""
        sizes = np.zeros(self.dim)
        for _, block in self._blocks(1):
            np.maximum(sizes, np.abs(block.astype(np.float64)).max(axis=0), out=sizes)
        return sizes

    def mean(self, weights: RowVector | None = None) -> Vector:
        """Return `sum of weights[n] x[n] / sum of weights[n]`; one pass."""
        total = np.zeros(self.dim)
        for start, block in self._blocks(1):
            total += (
                block.sum(axis=0, dtype=np.float64)
                if weights is None
                else weights[start : start + len(block)] @ block
            )
        return self.scale * total / _sum_weights(weights, self.n_rows)

    def gram(self, V: Vector, weights: RowVector | None, center: Vector) -> Vector:
        """Return `sum of weights[n] (x[n] - center) (x[n] - center)' V`; one pass."""
        table = self.scale[:, None] * V
        total = np.zeros_like(table)
        for start, block in self._centred(center, V.shape[1]):
            y = block @ table
            if weights is not None:
                y *= weights[start : start + len(block), None]
            total += block.T @ y
        return self.scale[:, None] * total

    def score(self, V: Vector, center: Vector) -> RowVector:
        """Return `|V' (x[n] - center)|^2`; one pass."""
        table = self.scale[:, None] * V
        scores = np.empty(self.n_rows)
        for start, block in self._centred(center, V.shape[1]):
            y = block @ table
            scores[start : start + len(block)] = np.einsum("nr,nr->n", y, y)
        return scores

    def square_norms(self, center: Vector) -> RowVector:
        """Return `|x[n] - center|^2`; one pass."""
        norms, squares = np.empty(self.n_rows), self.scale**2
        for start, block in self._centred(center, 1):
            norms[start : start + len(block)] = (block * block) @ squares
        return norms

    def column_medians(self) -> Vector:
        """Return the median of each column; O(N dim)."""
        medians = [np.median(columns, axis=1) for columns in self._columns()]
        return self.scale * np.concatenate(medians)

    def column_spreads(self) -> Vector:
        """Return a robust standard deviation of each column; O(N dim)."""
        spreads: Vector = np.concatenate([_spread_dense(c) for c in self._columns()])
        return self.scale * spreads

    def _blocks(self, width: int) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield blocks of rows for products with `width` columns, each with its first row."""
        limit = SMALL_PRODUCT // width if width > 1 else SMALL_PRODUCT_WITH_VECTOR
        n = min(BLOCK_ENTRIES, limit) // self.dim
        n = n if n >= 4 else max(1, WIDE_BLOCK_ENTRIES // self.dim)
        for start in range(0, self.n_rows, n):
            yield start, self.matrix[start : start + n]

    def _centred(self, center: Vector, width: int) -> Iterator[tuple[int, Vector]]:
        """Yield blocks of rows minus `center / scale`, so that scales act on short tables only."""
        offset = center / self.scale
        for start, block in self._blocks(width):
            yield start, np.subtract(block, offset, dtype=np.float64)

    def _columns(self) -> Iterator[Vector]:
        """Yield a few columns at a time, as lines."""
        n = max(8, BLOCK_ENTRIES // self.n_rows)
        for start in range(0, self.dim, n):
            yield np.ascontiguousarray(self.matrix[:, start : start + n].T, dtype=np.float64)


class SparseVectors(ScaledRows):
    """Rows of a SciPy sparse matrix, CSR or CSC, of float64.

    Time of a product with r columns: O((nnz + N + dim) r). Memory beside the matrix: N × 16.
    """

    @classmethod
    def of(cls, X: Any) -> Self:
        """Check a SciPy matrix and hold it, with scale 1.

        CSR and CSC of float64 are held as they are; other formats and types are converted once, and
        entries that are stored twice are summed, in a copy.
        """
        if X.ndim != 2:
            raise DataError(
                f"X must be a matrix, shape (rows, columns); found {count(X.ndim, 'dimension')}."
            )
        if X.dtype.kind not in "fiub":
            raise DataError(f"X must hold real numbers; found a matrix of type {X.dtype}.")
        _require_shape(X.shape)
        matrix = X if X.format in ("csr", "csc") else X.tocsr()
        matrix = matrix.astype(np.float64, copy=False)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()

        def locate(_: int, entry: int) -> tuple[int, int]:
            major = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
            minor = int(matrix.indices[entry])
            return (major, minor) if matrix.format == "csr" else (minor, major)

        _require_finite(matrix.data[None, :], locate)
        return cls(matrix, np.ones(X.shape[1]))

    def lifted(self, exponents: NDArray[np.int32]) -> Self:
        """Return the rows with columns multiplied by powers of two, which is exact; a copy."""
        matrix = self.matrix.copy()
        matrix.data = np.ldexp(matrix.data, exponents[self._column_of()])
        return replace(self, matrix=matrix)

    def column_sizes(self) -> Vector:
        """Return the largest number of each column, whatever its sign; O(nnz)."""
        sizes = np.zeros(self.dim)
        np.maximum.at(sizes, self._column_of(), np.abs(self.matrix.data))
        return sizes

    def mean(self, weights: RowVector | None = None) -> Vector:
        """Return `sum of weights[n] x[n] / sum of weights[n]`; one pass."""
        w = np.ones(self.n_rows) if weights is None else weights.astype(np.float64)
        total: Vector = self.matrix.T @ w
        return self.scale * total / _sum_weights(weights, self.n_rows)

    def gram(self, V: Vector, weights: RowVector | None, center: Vector) -> Vector:
        """Return `sum of weights[n] (x[n] - center) (x[n] - center)' V`; one pass."""
        total = np.empty_like(V)
        transposed = self.matrix.T
        for columns, y in self._project(V, center):
            if weights is not None:
                y *= weights[:, None]
            total[:, columns] = self.scale[:, None] * (transposed @ y)
            total[:, columns] -= center[:, None] * y.sum(axis=0)
        return total

    def score(self, V: Vector, center: Vector) -> RowVector:
        """Return `|V' (x[n] - center)|^2`; one pass."""
        scores = np.zeros(self.n_rows)
        for _, y in self._project(V, center):
            scores += np.einsum("nr,nr->n", y, y)
        return scores

    def square_norms(self, center: Vector) -> RowVector:
        """Return `|x[n] - center|^2 = |x[n]|^2 - 2 x[n]' center + |center|^2`; one pass."""
        m = self.matrix
        squares = type(m)((m.data**2, m.indices, m.indptr), shape=m.shape)
        norms = squares @ self.scale**2 - 2.0 * (m @ (self.scale * center)) + center @ center
        clipped: RowVector = np.maximum(norms, 0.0)
        return clipped

    def column_medians(self) -> Vector:
        """Return the median of each column, 0 where fewer than half of the entries are stored."""
        medians = np.zeros(self.dim)
        for j, column in self._full_columns():
            medians[j] = np.median(column)
        return self.scale * medians

    def column_spreads(self) -> Vector:
        """Return a robust standard deviation of each column; O(nnz log nnz)."""
        m = self.matrix
        stored, column_of = m.data != 0, self._column_of()
        spreads = _spread_of_differing(m.data[stored], column_of[stored], self.dim, self.n_rows)
        for j, column in self._full_columns():
            spreads[j] = _spread_dense(column[None, :])[0]
        return self.scale * spreads

    def _column_of(self) -> NDArray[np.intp]:
        """Return the column of each stored entry."""
        m, columns = self.matrix, np.arange(self.dim)
        return m.indices if m.format == "csr" else np.repeat(columns, np.diff(m.indptr))

    def _project(self, V: Vector, center: Vector) -> Iterator[tuple[slice, Vector]]:
        """Yield `X V - center' V`, a few columns at a time; N × 16 at the most."""
        for start in range(0, V.shape[1], BLOCK_COLUMNS):
            columns = slice(start, start + BLOCK_COLUMNS)
            part = V[:, columns]
            yield columns, self.matrix @ (self.scale[:, None] * part) - center @ part

    def _full_columns(self) -> Iterator[tuple[int, Vector]]:
        """Yield the columns of which half is stored or more, written out; there are few."""
        m = self.matrix
        is_csr = m.format == "csr"
        stored = np.bincount(m.indices, minlength=self.dim) if is_csr else np.diff(m.indptr)
        full = np.flatnonzero(2 * stored >= self.n_rows)
        some = m[:, full].tocsc()
        for k, j in enumerate(full):
            yield int(j), some[:, [k]].toarray()[:, 0]


def find_lifts(sizes: Vector) -> NDArray[np.int32]:
    """Return exponents of the powers of two that bring columns of very small numbers near 1."""
    is_small = (sizes > 0) & (sizes < SMALLEST)
    return np.where(is_small, -np.frexp(sizes)[1], 0).astype(np.int32)


# --- spread of columns ----------------------------------------------------------------------------


def _spread_dense(columns: Vector) -> Vector:
    """Return a robust standard deviation of each column, given as lines; shape (columns,)."""
    # The median distance from the median, times 1.4826. Where more than half of the entries are the
    # same number, that is 0; then from the entries that differ, see `_spread_of_differing`.
    differences = columns - np.median(columns, axis=1, keepdims=True)
    spreads: Vector = MAD_TO_SD * np.median(np.abs(differences), axis=1)
    flat = np.flatnonzero(spreads == 0)
    if len(flat):
        column_of, row_of = np.nonzero(differences[flat])
        values = differences[flat][column_of, row_of]
        spreads[flat] = _spread_of_differing(values, column_of, len(flat), columns.shape[1])
    return spreads


def _spread_of_differing(
    values: Vector, column_of: NDArray[np.intp], n_columns: int, n_rows: int
) -> Vector:
    """Return the spread of columns that are 0 in most rows, from their entries that are not."""
    # With the share p of such entries, a the median and b the robust spread of them: `sqrt(p (a^2 +
    # b^2) - (p a)^2)`, exact for a column of zeros and ones. A column that fewer than 30 rows tell
    # about gets p = 30 / N, so that a handful of rows is not blown up; 0 for none.
    counts = np.bincount(column_of, minlength=n_columns)
    a = _segment_medians(values, column_of, counts)
    b = MAD_TO_SD * _segment_medians(np.abs(values - a[column_of]), column_of, counts)
    p = np.minimum(np.maximum(counts, SCALED_ROWS) / n_rows, 0.5)
    return np.where(counts > 0, np.sqrt(p * (a**2 + b**2) - (p * a) ** 2), 0.0)


def _segment_medians(
    values: Vector, column_of: NDArray[np.intp], counts: NDArray[np.intp]
) -> Vector:
    """Return the median of the values of each column, 0 for a column without any."""
    medians = np.zeros(len(counts))
    if not len(values):
        return medians
    ordered = values[np.lexsort((values, column_of))]
    first = np.cumsum(counts) - counts
    some = counts > 0
    low, high = first + (counts - 1) // 2, first + counts // 2
    medians[some] = 0.5 * (ordered[low[some]] + ordered[high[some]])
    return medians


# --- checks ---------------------------------------------------------------------------------------


def _require_shape(shape: tuple[int, ...]) -> None:
    n_rows, n_columns = shape
    if n_rows < 2:
        raise DataError(
            f"X has {count(n_rows, 'row')}; a robust mean needs at least 2, and in practice "
            "hundreds. Check the file, the query or the filter that the rows come from."
        )
    if n_columns < 1:
        raise DataError(f"X has no columns; found shape {shape}.")


def _require_finite(entries: NDArray[Any], locate: Locate) -> None:
    """Refuse NaN, infinity and numbers too large to be squared; `locate` names row and column."""
    if entries.dtype.kind != "f":
        return
    wrong = ~(np.abs(entries) <= min(LARGEST, float(np.finfo(entries.dtype).max)))
    if wrong.any():
        row, column = (int(v) for v in np.argwhere(wrong)[0])
        found = entries[row, column]
        row, column = locate(row, column)
        raise DataError(
            f"X must hold finite numbers below 1e100 in size; found {found} at row {row}, column "
            f"{column}. Fill in or drop missing values first, and clip or drop implausible numbers."
        )


def _shift_row(start: int, row: int, column: int) -> tuple[int, int]:
    return start + row, column


def _sum_weights(weights: RowVector | None, n_rows: int) -> float:
    return float(n_rows) if weights is None else float(weights.sum(dtype=np.float64))
