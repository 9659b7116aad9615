"""What the rooms ask of each other: rows that can be counted, vectors that are never written down.

Whoever decides which rows to trust sees only `Vectors` or `Rows`; whoever holds the rows never
learns why it is called. Vectors of length M are NumPy arrays on the host; vectors of length N stay
with the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from robustbn._core.layout import Codes, Layout
from robustbn._core.origins import ContextColumn

if TYPE_CHECKING:
    from robustbn._core.holes import Holes

Vector = NDArray[np.float64]  # of length M, or (M, r)
RowVector = NDArray[np.floating[Any]]  # of length N


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a stretch of a table, as whoever holds the table hands it over."""

    # numbers, truth values or objects; or, if there are `labels`, positions in them, where a
    # negative one stands for a missing value; shape (n,)
    values: NDArray[Any]
    labels: Sequence[Any] | None = None  # the values that positions stand for; not all need occur
    # which values are missing, besides None and NaN; None if no other is
    is_missing: NDArray[np.bool_] | None = None
    # of values that are moments of a time zone, held in UTC; None for all others
    zone: str | None = None
    is_ordered: bool = False  # whether the labels are categories in an order that means something
    # which rows repeat the header of a file and are to be left out; None if none does
    is_title: NDArray[np.bool_] | None = None

    def __getitem__(self, rows: slice | NDArray[np.bool_]) -> Column:
        """Return some of its rows; a stretch of them without a copy."""
        missing = None if self.is_missing is None else self.is_missing[rows]
        title = None if self.is_title is None else self.is_title[rows]
        return Column(self.values[rows], self.labels, missing, self.zone, self.is_ordered, title)


@dataclass(frozen=True, eq=False)
class Divided:
    """Rows whose weight was divided among 1 + r columns; see `Rows.divide`."""

    counts: Vector  # weight of each column's rows on each cell; shape (M, 1 + r)
    masses: Vector  # weight of each column's rows; shape (1 + r,)
    log_sum: float  # sum of `weights[n] log(1 + sum of exp(y[n]))`


@dataclass(frozen=True, eq=False)
class DividedApart:
    """Rows whose weight was divided in each of r columns on its own; see `Rows.divide_apart`."""

    counts: Vector  # weight of each column's rows on each cell; shape (M, r)
    masses: Vector  # weight of each column's rows; shape (r,)
    log_sums: Vector  # sum of `weights[n] log(1 + exp(y[n] - against[n]))`; shape (r,)


@dataclass(frozen=True)
class TwoSides:
    """Which columns are on which side, and how rows are divided between the two."""

    # columns of y that are on the first side, the first ones; beside a column of zeros
    n_first: int
    # intercept, slope: the second side gets `1 / (1 + exp(-intercept - slope odds))`
    intercept: float = 0.0
    slope: float = 1.0


@dataclass(frozen=True, eq=False)
class DividedInTwo:
    """Rows whose weight was divided between two sides, and on each of them among its columns."""

    counts: Vector  # weight of each column's rows on each cell; shape (M, 1 + r)
    masses: Vector  # weight of each column's rows; shape (1 + r,)
    odds: RowVector  # of each row, see `Rows.odds`; shape (N,)


LoadCodes = Callable[[Codes], "Rows"]  # encode codes of shape (n, d)


class Rows(Protocol):
    """Encoded rows. Row n touches one cell a node; `cells(n)` below is that set.

    A node touches none where its value, or a parent's, is missing.

    Looking at all rows costs far more than what is done with them. So whatever is asked again and
    again is a pass of its own, which holds nothing of shape (N, r); that is the reason of each:

    - `parts` bounds memory; `unpack` gives codes back to whoever holds packed rows only;
      `fingerprints` tell which rows are copies.
    - `count` gives tables. `project` and `score` give numbers a row, `gram` sums of them: products
      with a covariance that is never built. `count_pairs` is that covariance, where cells are few.
    - `divide` is a step that fits components to rows; `divide_apart` is the same of many starts
      that do not know of each other, in one pass.
    - `odds` is the verdict on rows; `divide_in_two` is a step by that verdict once it is
      calibrated, which softmax over all columns does not give.
    """

    @property
    def layout(self) -> Layout:
        """Where each cell lives."""

    @property
    def n_rows(self) -> int:
        """Number of rows, N."""

    def parts(self, max_rows: int) -> Iterator[tuple[slice, Rows]]:
        """Yield ranges of rows with those rows, at most about `max_rows` each, in order."""

    def count(self, weights: RowVector | None = None) -> Vector:
        """Return `C[j] = sum of weights[n] over rows n with j in cells(n)`; shape (M,).

        Weights of shape (N, r) give counts of shape (M, r).
        """

    def project(self, table: Vector, offset: Vector | None = None) -> RowVector:
        """Return `y[n] = sum of table[j] over j in cells(n), minus offset`; shape (N, r)."""

    def score(self, table: Vector, offset: Vector | None = None) -> RowVector:
        """Return `|y[n]|^2` with y as in `project`; shape (N,)."""

    def gram(
        self, table: Vector, offset: Vector | None = None, weights: RowVector | None = None
    ) -> Vector:
        """Return `G[j] = sum of weights[n] y[n] over rows n with j in cells(n)`; shape (M, r)."""

    def divide(
        self, table: Vector, offset: Vector | None = None, weights: RowVector | None = None
    ) -> Divided:
        """Divide each row's weight by `softmax(0, y[n])`, y as in `project`, and count each part.

        The first column is the one of the 0. Nothing of length N is kept.
        """

    def divide_apart(
        self,
        table: Vector,
        offset: Vector | None,
        against: RowVector,
        weights: RowVector | None = None,
    ) -> DividedApart:
        """Give each column `1 / (1 + exp(against[n] - y[n]))` of each row's weight, and count that.

        Columns do not know of each other. Nothing of shape (N, r) is kept.
        """

    def odds(self, table: Vector, offset: Vector | None, n_first: int) -> RowVector:
        """Return the log-odds of a second side of columns against the first; shape (N,).

        `log of the sum of exp(y[n, n_first:])` less `log of (1 + the sum of exp(y[n, :n_first]))`,
        y as in `project`.
        """

    def divide_in_two(
        self,
        table: Vector,
        offset: Vector | None,
        sides: TwoSides,
        weights: RowVector | None = None,
    ) -> DividedInTwo:
        """Divide each row's weight between two sides by its odds, and count each column's part.

        On each side it is divided by softmax: over `(0, y[n, :n_first])`, over `y[n, n_first:]`.
        """

    def count_pairs(self, weights: RowVector | None = None) -> Vector:
        """Return `P[i, j] = sum of weights[n] over rows n with i, j in cells(n)`; shape (M, M)."""

    def unpack(self) -> Codes:
        """Return the codes of the rows; shape (N, d)."""

    def fingerprints(self) -> NDArray[np.uint64]:
        """Return a 64-bit hash of each row: equal rows, equal numbers; shape (N,).

        Rows with holes are equal if the same values are missing. The numbers depend on the codes
        alone: not on the kernels, nor on which columns might have holes.
        """


@dataclass(frozen=True, eq=False)
class Copied:
    """Fingerprints that occur several times, and where."""

    prints: NDArray[np.uint64]  # each once, increasing; shape (k,)
    # first, seen: the first row that has it, and how many have; shape (k,)
    first: NDArray[np.int64]
    seen: NDArray[np.int64]
    # all that have the first of them, in order, then those of the second, and so on
    rows: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Survey:
    """What one pass over a table gives: counts of every row, and some rows drawn at random."""

    n_rows: int  # of the table, N
    counts: Vector  # weight of all rows that touch each cell; shape (M,)
    codes: Codes  # of the rows that were drawn; shape (n, d)
    numbers: NDArray[np.int64]  # which rows they are, increasing; shape (n,)
    rows: Rows  # the same rows, encoded
    context: tuple[ContextColumn, ...] = ()  # of the same rows: columns outside the network
    # prints of their numbers before these were cut, 0 where they are not known; shape (n,)
    written: NDArray[np.uint64] | None = None

    @property
    def is_whole(self) -> bool:
        """Whether every row of the table was drawn."""
        return self.n_rows == len(self.codes)


@dataclass(frozen=True, eq=False)
class Judged:
    """What a pass gives that judges all rows of a table."""

    counts: Vector  # trust in the rows that touch each cell, times their own weights; shape (M,)
    total: float  # the same of all rows, whatever they show
    trust: RowVector | None  # in each row; shape (N,), or None where nobody can hold a number a row
    # what the rows that miss values ask, each by its trust (`_core.holes.Holes`); None if no value
    # is missing, or if nobody asked
    holes: Any = None


CountRows = Callable[[Rows, RowVector], Vector]


class Data(Protocol):
    """A table as rows, wherever they live: in memory, in files, on a cluster."""

    def survey(self, weights: RowVector | None, n_most: int, seed: int) -> Survey:
        """Count all rows and draw at most `n_most` of them, evenly. One pass."""

    def judge(
        self,
        weigh: Callable[[Rows], RowVector],
        weights: RowVector | None,
        *,
        gathers: bool = False,
        count: CountRows | None = None,
        surveyed: RowVector | None = None,
    ) -> Judged:
        """Return the counts of all rows, each by what `weigh` makes of it, and those weights.

        One pass. `weights` are the rows' own; `gathers` asks for what rows with missing values ask;
        `surveyed` is what `weigh` makes of all rows, if a survey had them all.
        """


class Vectors(Protocol):
    """N vectors x[n] of length `dim`, known only through products. What an oracle works on."""

    @property
    def n_rows(self) -> int:
        """Number of vectors, N."""

    @property
    def dim(self) -> int:
        """Length of each."""

    def mean(self, weights: RowVector | None = None) -> Vector:
        """Return `sum of weights[n] x[n] / sum of weights[n]`; shape (dim,)."""

    def gram(self, V: Vector, weights: RowVector | None, center: Vector) -> Vector:
        """Return `sum of weights[n] (x[n] - center) (x[n] - center)' V`; shape (dim, r)."""

    def score(self, V: Vector, center: Vector) -> RowVector:
        """Return `|V' (x[n] - center)|^2`; shape (N,)."""

    def square_norms(self, center: Vector) -> RowVector:
        """Return `|x[n] - center|^2`; shape (N,)."""

    def expected(self, V: Vector) -> Vector:
        """Return the covariance that good vectors should have, times V: `V` itself for I."""


class Kernels(Protocol):
    """A module that holds rows and passes over them."""

    def encode(self, layout: Layout, codes: Codes, n_threads: int | None = None) -> Rows:
        """Check that every code is in range and return the rows in a form of its own.

        Raises `CodeRangeError` with the first offending row and column.
        """

    def restore(
        self, layout: Layout, packed: NDArray[np.uint8], n_rows: int, n_threads: int | None = None
    ) -> Rows:
        """Return rows from the bytes in their `packed`, which `encode` made."""

    def sample(
        self,
        layout: Layout,
        order: Sequence[int],
        probabilities: Vector,
        n_rows: int,
        key: int,
        n_threads: int | None = None,
    ) -> Codes:
        """Draw rows; the same `key` gives the same rows in all kernels; shape (N, d).

        They have no holes, whatever the layout says.
        """

    def make_holes(self, layout: Layout, n_threads: int | None, seed: int) -> Holes:
        """Return what rows with missing values ask, of no rows yet."""

    def find_copied(self, prints: NDArray[np.uint64], least: int) -> Copied:
        """Return the fingerprints that occur at least so often."""
