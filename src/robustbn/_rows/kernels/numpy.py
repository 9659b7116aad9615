"""The specification: every primitive in plain NumPy, in float64, slow and right."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.allocate import allocate
from robustbn._core.holes import Holes
from robustbn._core.layout import Codes, Layout
from robustbn._core.protocols import (
    Copied,
    Divided,
    DividedApart,
    DividedInTwo,
    Rows,
    RowVector,
    TwoSides,
    Vector,
)
from robustbn._rows.kernels import GOLDEN, scramble
from robustbn.exceptions import CodeRangeError

LARGEST_TABLE = 2**18  # entries, 2 MB: connected holes that need a larger one are sampled
ROWS_IN_BLOCK = 4096  # rows worked on at a time: memory stays O(block), never O(N r)


class DividedInParts(ABC):
    """Rows whose weight is divided among columns part by part: what fused passes give.

    A part costs one `project` and one `count`. O(N d r) time.
    """

    layout: Layout

    @abstractmethod
    def parts(self, max_rows: int) -> Iterator[tuple[slice, Any]]:
        """Yield ranges of rows with those rows, as `Rows.parts`."""

    def divide(
        self, table: Vector, offset: Vector | None = None, weights: RowVector | None = None
    ) -> Divided:
        n_columns = table.shape[1] + 1
        counts, masses = np.zeros((self.layout.n_cells, n_columns)), np.zeros(n_columns)
        log_sum = 0.0
        for _, given, rows in self._given(weights):
            y = np.zeros((rows.n_rows, n_columns))
            y[:, 1:] = rows.project(table, offset)
            largest = y.max(axis=1, keepdims=True)
            shares = np.exp(y - largest)
            sums = shares.sum(axis=1, keepdims=True)
            shares *= given[:, None] / sums
            log_sum += float(given @ (largest + np.log(sums))[:, 0])
            counts += rows.count(shares)
            masses += shares.sum(axis=0)
        return Divided(counts, masses, log_sum)

    def divide_apart(
        self,
        table: Vector,
        offset: Vector | None,
        against: RowVector,
        weights: RowVector | None = None,
    ) -> DividedApart:
        r = table.shape[1]
        counts, masses, log_sums = np.zeros((self.layout.n_cells, r)), np.zeros(r), np.zeros(r)
        for part, given, rows in self._given(weights):
            odds = rows.project(table, offset).astype(np.float64) - against[part, None]
            shares = given[:, None] * 0.5 * (1 + np.tanh(0.5 * odds))
            log_sums += given @ (np.maximum(odds, 0) + np.log1p(np.exp(-np.abs(odds))))
            counts += rows.count(shares)
            masses += shares.sum(axis=0)
        return DividedApart(counts, masses, log_sums)

    def odds(self, table: Vector, offset: Vector | None, n_first: int) -> RowVector:
        parts = [np.empty(0)]
        for _, rows in self.parts(ROWS_IN_BLOCK):
            first, second = _by_side(rows, table, offset, n_first)
            parts.append(np.logaddexp.reduce(second, axis=1) - np.logaddexp.reduce(first, axis=1))
        return np.concatenate(parts)

    def divide_in_two(
        self,
        table: Vector,
        offset: Vector | None,
        sides: TwoSides,
        weights: RowVector | None = None,
    ) -> DividedInTwo:
        n_columns = table.shape[1] + 1
        counts, masses = np.zeros((self.layout.n_cells, n_columns)), np.zeros(n_columns)
        all_odds = [np.empty(0)]
        for _, given, rows in self._given(weights):
            y = _by_side(rows, table, offset, sides.n_first)
            first, second = (np.logaddexp.reduce(side, axis=1) for side in y)
            odds = second - first
            v = sides.intercept + sides.slope * odds
            shares = np.hstack(
                [
                    np.exp(side - each[:, None])
                    * (given * 0.5 * (1 + np.tanh(0.5 * sign * v)))[:, None]
                    for side, each, sign in ((y[0], first, -1), (y[1], second, 1))
                ]
            )
            counts += rows.count(shares)
            masses += shares.sum(axis=0)
            all_odds.append(odds)
        return DividedInTwo(counts, masses, np.concatenate(all_odds))

    def _given(self, weights: RowVector | None) -> Iterator[tuple[slice, RowVector, Any]]:
        """Yield the places of each part's rows, their weights, and the rows."""
        for part, rows in self.parts(ROWS_IN_BLOCK):
            ones = np.ones(rows.n_rows) if weights is None else weights[part].astype(np.float64)
            yield part, ones, rows


def _by_side(
    rows: Rows, table: Vector, offset: Vector | None, n_first: int
) -> tuple[RowVector, RowVector]:
    """Return the columns of the two sides, a column of zeros before all."""
    y = rows.project(table, offset).astype(np.float64)
    return np.hstack([np.zeros((len(y), 1)), y[:, :n_first]]), y[:, n_first:]


@dataclass(frozen=True)
class NumpyRows(DividedInParts):
    """Rows as they came: codes of shape (N, d)."""

    layout: Layout
    codes: Codes

    @property
    def n_rows(self) -> int:
        return len(self.codes)

    @property
    def packed(self) -> NDArray[np.uint8]:
        """The rows as bytes; here, their codes."""
        return np.ascontiguousarray(self.codes).reshape(-1).view(np.uint8)

    def unpack(self) -> Codes:
        return self.codes

    def parts(self, max_rows: int) -> Iterator[tuple[slice, NumpyRows]]:
        for start in range(0, self.n_rows, max_rows):
            rows = slice(start, min(start + max_rows, self.n_rows))
            yield rows, NumpyRows(self.layout, self.codes[rows])

    def count(self, weights: RowVector | None = None) -> Vector:
        """Return `C[j]`, the weight of the rows that touch cell j. O(N d) time."""
        if weights is not None and weights.ndim == 2:
            by_column = [self.count(w) for w in weights.T]
            return np.array(by_column).reshape(-1, self.layout.n_cells).T
        counts = np.zeros(self.layout.n_cells + 1)
        for rows, cells in self._blocks():
            w = None if weights is None else np.repeat(weights[rows], cells.shape[1])
            counts += np.bincount(cells.ravel(), w, minlength=len(counts))
        return counts[:-1]

    def project(self, table: Vector, offset: Vector | None = None) -> NDArray[np.float64]:
        """Return `y[n] = sum of table[j] over the cells of row n, minus offset`. O(N d r) time."""
        y: NDArray[np.float64] = allocate((self.n_rows, table.shape[1]), float, "Projecting rows")
        table = _with_no_cell(table)
        for rows, cells in self._blocks():
            y[rows] = self._project_block(cells, table, offset)
        return y

    def score(self, table: Vector, offset: Vector | None = None) -> NDArray[np.float64]:
        """Return `|y[n]|^2`. O(N d r) time, O(N) memory."""
        scores: NDArray[np.float64] = allocate((self.n_rows,), float, "Scoring rows")
        table = _with_no_cell(table)
        for rows, cells in self._blocks():
            scores[rows] = np.square(self._project_block(cells, table, offset)).sum(axis=1)
        return scores

    def gram(
        self, table: Vector, offset: Vector | None = None, weights: RowVector | None = None
    ) -> Vector:
        """Return `G[j] = sum of weights[n] y[n] over the rows that touch cell j`. O(N d r) time."""
        table = _with_no_cell(table)
        total = np.zeros(table.shape)
        for rows, cells in self._blocks():
            y = self._project_block(cells, table, offset)
            if weights is not None:
                y *= weights[rows, None]
            for node_cells in cells.T:
                np.add.at(total, node_cells, y)
        return total[:-1]

    def count_pairs(self, weights: RowVector | None = None) -> Vector:
        """Return `P[i, j]`, the weight of the rows that touch both cells. O(N d^2 + M^2) time."""
        n = self.layout.n_cells + 1
        pairs = np.zeros((n, n))
        for rows, cells in self._blocks():
            w = np.ones(len(cells)) if weights is None else weights[rows].astype(np.float64)
            for first in cells.T:
                for second in cells.T:
                    np.add.at(pairs, (first, second), w)
        return pairs[:-1, :-1]

    def fingerprints(self) -> NDArray[np.uint64]:
        """Return a 64-bit hash of each row: equal rows, equal numbers. O(N d) time."""
        hashes = np.zeros(self.n_rows, np.uint64)
        for i, column in enumerate(self.codes.T):
            number = column.astype(np.uint64) + np.uint64(i * 2**16 + 1)
            hashes += scramble(number * GOLDEN)
        return hashes

    @staticmethod
    def _project_block(
        cells: NDArray[np.int64], table: Vector, offset: Vector | None
    ) -> NDArray[np.float64]:
        y: NDArray[np.float64] = table[cells].sum(axis=1)
        return y if offset is None else y - offset

    def _blocks(self) -> Iterator[tuple[slice, NDArray[np.int64]]]:
        """Yield ranges of rows with the d cells that each of their rows touches.

        A family with a hole touches cell M, which is not there: its line in tables is zero, and
        what is counted in it is dropped.
        """
        layout = self.layout
        cards = np.array(layout.cards)
        for start in range(0, self.n_rows, ROWS_IN_BLOCK):
            rows = slice(start, start + ROWS_IN_BLOCK)
            codes = self.codes[rows].astype(np.int64)
            is_hole = codes == cards
            cells = np.stack(
                [
                    np.where(
                        is_hole[:, family].any(axis=1),
                        layout.n_cells,
                        layout.cell_start[i] + codes[:, family] @ np.array(layout.strides[i]),
                    )
                    for i, family in enumerate(layout.families)
                ],
                axis=1,
            )
            yield rows, cells


def encode(layout: Layout, codes: Codes, n_threads: int | None = None) -> NumpyRows:
    """Check the range of every code; the codes themselves are kept as they are. O(N d) time."""
    layout.require_addressable()
    n_codes = np.array(layout.codes_per_column)
    if len(codes) and (codes.max(axis=0) >= n_codes).any():
        row, column = (int(v) for v in np.argwhere(codes >= n_codes)[0])
        raise wrong_code(layout, codes, row, column)
    return NumpyRows(layout, codes.astype(layout.code_dtype, copy=False))


def wrong_code(layout: Layout, codes: Codes, row: int, column: int) -> CodeRangeError:
    """Return the error for a code that is out of range."""
    n_states, is_holed = layout.cards[column], column in layout.holed
    return CodeRangeError(row, column, int(codes[row, column]), n_states, is_holed=is_holed)


def restore(
    layout: Layout, packed: NDArray[np.uint8], n_rows: int, n_threads: int | None = None
) -> NumpyRows:
    """Return rows from their bytes."""
    codes: Codes = packed.view(np.dtype(layout.code_dtype))
    return NumpyRows(layout, codes.reshape(n_rows, layout.n_nodes))


def make_holes(layout: Layout, n_threads: int | None, seed: int) -> Holes:
    """Return questions of no rows yet; there is one thread, and nothing is drawn."""
    from robustbn._rows.kernels.numpy_holes import NumpyHoles  # not needed where kernels are native

    return NumpyHoles(layout, LARGEST_TABLE)


def sample(
    layout: Layout,
    order: Sequence[int],
    probabilities: Vector,
    n_rows: int,
    key: int,
    n_threads: int | None = None,
) -> Codes:
    """Draw rows node by node, parents first. O(N d) time."""
    d = layout.n_nodes
    codes: Codes = allocate((n_rows, d), layout.code_dtype, "Drawing rows")
    thresholds = sampling_thresholds(layout, probabilities)
    for start in range(0, n_rows, ROWS_IN_BLOCK):
        block = codes[start : start + ROWS_IN_BLOCK]
        first = np.arange(start, start + len(block), dtype=np.uint64) * np.uint64(d)
        for i in order:
            u = scramble(np.uint64(key) + (first + np.uint64(i + 1)) * GOLDEN)
            *parents, _ = layout.families[i]
            configuration = np.zeros(len(block), np.int64)
            for p in parents:
                configuration = configuration * layout.cards[p] + block[:, p]
            drawn = (u >> np.uint64(34)).astype(np.int64)
            block[:, i] = _count_reached(thresholds[i], configuration, drawn)
    return codes


def find_copied(prints: NDArray[np.uint64], least: int) -> Copied:
    """Return the fingerprints that occur at least so often, and their rows. O(N log N) time."""
    order = np.argsort(prints, kind="stable")
    found, begin, seen = np.unique(prints[order], return_index=True, return_counts=True)
    is_copied = seen >= least
    within = np.repeat(is_copied, seen)
    return Copied(found[is_copied], order[begin[is_copied]], seen[is_copied], order[within])


def sampling_thresholds(layout: Layout, probabilities: Vector) -> list[NDArray[np.int32]]:
    """Return for each node an array of shape (configurations, card - 1).

    A draw `u`, uniform in 0 ... 2^30 - 1, picks the state `sum(u >= thresholds)`: a state of
    probability 0 is never picked, others to within 2^-30.
    """
    start, cards, found = layout.cell_start, np.array(layout.cards), dict[int, NDArray[np.int32]]()
    of_cell = np.repeat(cards, layout.cells_per_node)
    for card in np.unique(cards):  # nodes of as many states at once
        cumulative = np.cumsum(probabilities[of_cell == card].reshape(-1, card), axis=1)
        cumulative /= cumulative[:, -1:]
        of_all = np.rint(cumulative[:, :-1] * 2.0**30).astype(np.int32)
        nodes = np.flatnonzero(cards == card)
        ends = np.cumsum((start[nodes + 1] - start[nodes]) // card)
        found |= dict(zip(nodes.tolist(), np.split(of_all, ends[:-1]), strict=True))
    return [found[i] for i in range(len(cards))]


def _count_reached(
    thresholds: NDArray[np.int32], configuration: NDArray[np.int64], drawn: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return `(drawn[n] >= thresholds[configuration[n]]).sum()` for every row n."""
    n_configurations, n_thresholds = thresholds.shape
    apart = 2**30 + 1  # thresholds are 2^30 at most: all lines end to end are increasing
    line = thresholds + np.arange(n_configurations, dtype=np.int64)[:, None] * apart
    found = np.searchsorted(line.ravel(), drawn + configuration * apart, side="right")
    reached: NDArray[np.int64] = found - configuration * n_thresholds
    return reached


def _with_no_cell(table: Vector) -> Vector:
    """Return a table with a line of zeros for a family that touches no cell."""
    return np.concatenate([table, np.zeros((1, table.shape[1]))])
