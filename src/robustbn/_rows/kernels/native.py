"""Rows in memory, worked on by the C++ kernels: one byte a cluster of nodes, float32 look-ups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.allocate import allocate, available_cpus, insufficient_memory
from robustbn._core.holes import Expectation, HolePosterior
from robustbn._core.layout import Codes, Layout
from robustbn._core.protocols import (
    Copied,
    Divided,
    DividedApart,
    DividedInTwo,
    RowVector,
    TwoSides,
    Vector,
)
from robustbn._core.trust import is_even
from robustbn._rows.kernels import _native
from robustbn._rows.kernels.clusters import (
    Cluster,
    cells_of_states,
    fold_states,
    fuse_families,
    separate_families,
)
from robustbn._rows.kernels.numpy import (
    LARGEST_TABLE,
    DividedInParts,
    sampling_thresholds,
    wrong_code,
)

SWEEPS = 1024  # of sampling: its noise is a small share of that of the rows themselves
MOST_DIVIDED = 16  # columns that one pass holds


@dataclass(frozen=True)
class NativeRows(DividedInParts):
    """Rows packed into cluster codes, in blocks of 256; no pass stores what has shape (N, r)."""

    layout: Layout
    clusters: tuple[Cluster, ...]
    plan: _native.Plan
    packed: NDArray[np.uint8]
    n_rows: int
    n_threads: int

    def unpack(self) -> Codes:
        layout, block = self.layout, _native.BLOCK
        codes: Codes = allocate((self.n_rows, layout.n_nodes), layout.code_dtype, "Unpacking rows")
        blocks, start = self.packed.reshape(-1, self.plan.block_bytes), 0
        for cluster in self.clusters:
            n_bytes = block * cluster.code_bytes
            if not cluster.tells_columns:
                start += n_bytes
                continue
            joint = np.ascontiguousarray(blocks[:, start : start + n_bytes])
            joint = joint.view(f"u{cluster.code_bytes}").reshape(-1)[: self.n_rows]
            told = [c for c in cluster.columns if layout.codes_per_column[c] > 1]
            shape = [layout.codes_per_column[c] for c in told]
            for column in cluster.columns:
                codes[:, column] = 0
            found = np.unravel_index(joint, shape) if told else ()
            for column, states in zip(told, found, strict=True):
                codes[:, column] = states
            start += n_bytes
        return codes

    def parts(self, max_rows: int) -> Iterator[tuple[slice, NativeRows]]:
        step = max(1, max_rows // _native.BLOCK)
        for first in range(0, -(-self.n_rows // _native.BLOCK), step):
            rows = slice(first * _native.BLOCK, min((first + step) * _native.BLOCK, self.n_rows))
            packed = self.packed[first * self.plan.block_bytes :][: step * self.plan.block_bytes]
            yield rows, replace(self, packed=packed, n_rows=rows.stop - rows.start)

    def count(self, weights: RowVector | None = None) -> Vector:
        """Return exact integers, or sums in double; without weights, one pass serves all calls."""
        counts: Vector
        if weights is not None and weights.ndim == 2:
            counts = allocate((self.layout.n_cells, weights.shape[1]), float, "Counting")
            lines = as_read(weights, np.float32)
            self._call(_native.count_columns, lines, counts)
            return counts
        given = self._read(weights)
        return self._plain_counts.copy() if given is None else self._count(given)

    @cached_property
    def _plain_counts(self) -> Vector:
        return self._count(None)

    def _count(self, weights: RowVector | None) -> Vector:
        counts: Vector = allocate((self.layout.n_cells,), float, "Counting")
        self._call(_native.count, weights, counts)
        return counts

    def project(self, table: Vector, offset: Vector | None = None) -> NDArray[np.float32]:
        y: NDArray[np.float32]
        y = allocate((self.n_rows, table.shape[1]), np.float32, "Projecting rows")
        self._call(_native.project, *_table_and_offset(table, offset), y)
        return y

    def score(self, table: Vector, offset: Vector | None = None) -> NDArray[np.float32]:
        scores: NDArray[np.float32] = allocate((self.n_rows,), np.float32, "Scoring rows")
        self._call(_native.score, *_table_and_offset(table, offset), scores)
        return scores

    def gram(
        self, table: Vector, offset: Vector | None = None, weights: RowVector | None = None
    ) -> Vector:
        total: Vector = allocate(table.shape, float, "Summing rows")
        self._call(_native.gram, *_table_and_offset(table, offset), self._read(weights), total)
        return total

    def divide(
        self, table: Vector, offset: Vector | None = None, weights: RowVector | None = None
    ) -> Divided:
        n_columns = table.shape[1] + 1
        if n_columns > MOST_DIVIDED:
            return super().divide(table, offset, weights)
        counts: Vector = allocate((self.layout.n_cells, n_columns), float, "Dividing rows")
        sums = np.empty(n_columns + 1)
        given = self._read(weights)
        self._call(_native.divide, *_table_and_offset(table, offset), given, counts, sums)
        return Divided(counts, sums[:-1], float(sums[-1]))

    def divide_apart(
        self,
        table: Vector,
        offset: Vector | None,
        against: RowVector,
        weights: RowVector | None = None,
    ) -> DividedApart:
        counts: Vector = allocate(table.shape, float, "Dividing rows")
        sums = np.empty((2, table.shape[1]))
        given, minus = self._read(weights), as_read(against, np.float32)
        pair = _table_and_offset(table, offset)
        self._call(_native.divide_apart, *pair, minus, given, counts, sums)
        return DividedApart(counts, sums[0], sums[1])

    def odds(self, table: Vector, offset: Vector | None, n_first: int) -> RowVector:
        if table.shape[1] >= MOST_DIVIDED:
            return super().odds(table, offset, n_first)
        odds: NDArray[np.float32] = allocate((self.n_rows,), np.float32, "Projecting rows")
        self._call(_native.odds, *_table_and_offset(table, offset), n_first, odds)
        return odds

    def divide_in_two(
        self,
        table: Vector,
        offset: Vector | None,
        sides: TwoSides,
        weights: RowVector | None = None,
    ) -> DividedInTwo:
        n_columns = table.shape[1] + 1
        if n_columns > MOST_DIVIDED:
            return super().divide_in_two(table, offset, sides, weights)
        counts: Vector = allocate((self.layout.n_cells, n_columns), float, "Dividing rows")
        odds: NDArray[np.float32] = allocate((self.n_rows,), np.float32, "Dividing rows")
        masses, pair = np.empty(n_columns), _table_and_offset(table, offset)
        line = sides.n_first, sides.intercept, sides.slope
        given = self._read(weights)
        self._call(_native.divide_in_two, *pair, *line, given, counts, masses, odds)
        return DividedInTwo(counts, masses, odds)

    def count_pairs(self, weights: RowVector | None = None) -> Vector:
        """Return sums in double. A row of weight zero costs nothing."""
        n = self.layout.n_cells
        pairs: Vector = allocate((n, n), float, "Counting pairs of cells")
        read = None if weights is None else as_read(weights, np.float64)
        counter = _pair_counter(self.layout, self.clusters)
        try:
            counter.count(align(self.packed, 4), self.n_rows, read, pairs, self.n_threads)
        except MemoryError:
            raise insufficient_memory(8 * n * n, "A pass over rows") from None
        return pairs

    def fingerprints(self) -> NDArray[np.uint64]:
        """Return one number a row; one pass serves all calls."""
        return self._fingerprints

    @cached_property
    def _fingerprints(self) -> NDArray[np.uint64]:
        hashes: NDArray[np.uint64] = allocate((self.n_rows,), np.uint64, "Hashing rows")
        self._call(_native.fingerprints, hashes)
        return hashes

    def _read(self, weights: RowVector | None) -> RowVector | None:
        """Return weights as kernels read them; None if all are 1."""
        if weights is None or (is_even(weights) and len(weights) == self.n_rows):
            return None
        is_read = weights.dtype in (np.float32, np.float64)
        return as_read(weights, weights.dtype if is_read else np.float64)

    def _call(self, kernel: Any, *arguments: Any) -> None:
        try:
            packed = align(self.packed, 4)
            kernel(self.plan, packed, self.n_rows, *arguments, self.n_threads)
        except MemoryError:
            # 16 columns of float and double for every thread's and lane's table, at the most
            raise insufficient_memory(self.plan.n_entries * 16 * 12, "A pass over rows") from None


def encode(
    layout: Layout, codes: Codes, n_threads: int | None = None, *, fuse: bool = True
) -> NativeRows:
    """Check and pack the rows, in one pass; families share codes, unless `fuse` is off."""
    clusters, plan = _plan(layout, fuse)
    n_threads = n_threads or available_cpus()
    n_blocks = -(-len(codes) // _native.BLOCK)
    packed: NDArray[np.uint8] = allocate((n_blocks * plan.block_bytes,), np.uint8, "Packing rows")
    row, column = _native.encode(plan, align(codes, codes.itemsize), packed, n_threads)
    if row >= 0:
        raise wrong_code(layout, codes, row, column)
    return NativeRows(layout, clusters, plan, packed, len(codes), n_threads)


def restore(
    layout: Layout, packed: NDArray[np.uint8], n_rows: int, n_threads: int | None = None
) -> NativeRows:
    """Return rows from the bytes that `encode` packed them into, without a copy."""
    clusters, plan = _plan(layout, True)
    return NativeRows(layout, clusters, plan, packed, n_rows, n_threads or available_cpus())


@lru_cache(maxsize=16)
def _plan(layout: Layout, fuse: bool) -> tuple[tuple[Cluster, ...], _native.Plan]:
    """Choose the clusters and hand them to the kernels; a layout is planned once."""
    layout.require_addressable()
    clusters = tuple(fuse_families(layout) if fuse else separate_families(layout))
    plan = _native.Plan(
        layout.codes_per_column,
        layout.cards,
        [c.columns for c in clusters],
        [c.code_bytes for c in clusters],
        [fold_states(layout, c) for c in clusters],
        [c.is_blanked for c in clusters],
        [cells_of_states(layout, c) for c in clusters],
        layout.n_cells,
    )
    return clusters, plan


@lru_cache(maxsize=4)
def _pair_counter(layout: Layout, clusters: tuple[Cluster, ...]) -> _native.Pairs:
    """Tell the kernels which cells each code touches; once for a layout and its clusters."""
    return _native.Pairs(
        [c.code_bytes for c in clusters],
        [cells_of_states(layout, c) for c in clusters],
        layout.n_cells,
    )


def sample(
    layout: Layout,
    order: Sequence[int],
    probabilities: Vector,
    n_rows: int,
    key: int,
    n_threads: int | None = None,
) -> Codes:
    """Draw rows; the same ones as the NumPy kernels draw from the same key."""
    codes: Codes = allocate((n_rows, layout.n_nodes), layout.code_dtype, "Drawing rows")
    thresholds = sampling_thresholds(layout, probabilities)
    _native.sample(
        layout.cards,
        order,
        [layout.families[i][:-1] for i in order],
        [thresholds[i] for i in order],
        key,
        codes,
        n_threads or available_cpus(),
    )
    return codes


def find_copied(prints: NDArray[np.uint64], least: int) -> Copied:
    """Return the fingerprints that occur at least so often, and their rows. O(N log N) time."""
    try:
        found = _native.Copies(as_read(prints, np.uint64), least)
    except MemoryError:
        raise insufficient_memory(40 * len(prints), "Looking for copies") from None
    distinct: NDArray[np.uint64] = allocate((found.n_prints,), np.uint64, "Looking for copies")
    seen: NDArray[np.int64] = allocate((found.n_prints,), np.int64, "Looking for copies")
    rows: NDArray[np.int64] = allocate((found.n_rows,), np.int64, "Looking for copies")
    found.write(distinct, seen, rows)
    return Copied(distinct, rows[np.cumsum(seen) - seen], seen, rows)


# --- rows with holes: see native/hole_questions.h and native/hole_solver.h -----------------------


@dataclass(frozen=True, eq=False)
class NativeHoles:
    """Questions in memory, each with where its factors start in the tables."""

    layout: Layout
    questions: _native.Holes
    n_threads: int

    @property
    def n_sampled(self) -> float:
        return self.questions.n_sampled

    @property
    def n_bytes(self) -> int:
        return self.questions.n_bytes

    def add(self, codes: NDArray[Any], weights: RowVector | None = None) -> None:
        if weights is not None:
            weights = as_read(weights, np.float64)
        try:
            row, column = self.questions.add(align(codes, codes.itemsize), weights, self.n_threads)
        except MemoryError:
            # a base takes 4 bytes and its share of a hash table; no row asks more than it has cells
            needed = 2 * self.n_bytes + 8 * codes.size
            raise insufficient_memory(needed, "Gathering rows with holes") from None
        if row >= 0:
            raise wrong_code(self.layout, codes, row, column)

    def expect(self, q: Vector) -> Expectation:
        counts: Vector = allocate((self.layout.n_cells,), float, "Expected counts")
        variances = np.zeros_like(counts) if self.n_sampled else None
        try:
            log_likelihood, n_impossible = self.questions.expect(
                as_read(q, np.float64), counts, variances, self.n_threads
            )
        except MemoryError:
            raise insufficient_memory(2 * self.n_bytes, "Answering rows with holes") from None
        errors = None if variances is None else np.sqrt(variances)
        return Expectation(counts, log_likelihood, n_impossible, errors)

    def posterior(self, codes: NDArray[Any], q: Vector) -> HolePosterior:
        """Return the probabilities of every hole's states; rows that ask the same share them."""
        rows, columns = np.nonzero(codes == np.array(self.layout.cards))
        shape = (len(rows), max(self.layout.cards, default=0))
        probabilities: NDArray[np.float64] = allocate(shape, float, "Probabilities of holes")
        logs: NDArray[np.float64] = allocate((len(codes),), float, "Likelihoods of rows")
        tables = as_read(q, np.float64)
        try:
            row, column = self.questions.posterior(
                align(codes, codes.itemsize), tables, probabilities, logs, self.n_threads
            )
        except MemoryError:
            raise insufficient_memory(probabilities.nbytes, "Probabilities of holes") from None
        if row >= 0:
            raise wrong_code(self.layout, codes, row, column)
        return HolePosterior(rows, columns, probabilities, logs)


def make_holes(layout: Layout, n_threads: int | None, seed: int) -> NativeHoles:
    """Return questions of no rows yet."""
    layout.require_addressable()
    questions = _native.Holes(layout.cards, layout.families, LARGEST_TABLE, SWEEPS, seed)
    return NativeHoles(layout, questions, n_threads or available_cpus())


# --- arrays as kernels read them -----------------------------------------------------------------


def as_read(array: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """Return an array as kernels read it: in one piece, and aligned, which a message's is not."""
    return np.require(array, dtype, ["C_CONTIGUOUS", "ALIGNED"])


def align(codes: NDArray[Any], n_bytes: int) -> NDArray[Any]:
    """Return codes, in any order, that begin where entries of so many bytes may."""
    begin = codes.__array_interface__["data"][0]
    return codes.copy(order="K") if begin % n_bytes else codes


def _table_and_offset(table: Vector, offset: Vector | None) -> tuple[Vector, Vector]:
    if offset is None:
        offset = np.zeros(table.shape[1])
    return as_read(table, np.float64), as_read(offset, np.float64)
