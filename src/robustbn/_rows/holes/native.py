"""Rows with holes, answered in C++: see native/hole_questions.h and native/hole_solver.h."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.allocate import allocate, available_cpus, insufficient_memory
from robustbn._core.holes import Expectation, HolePosterior
from robustbn._core.layout import Layout
from robustbn._core.protocols import RowVector, Vector
from robustbn._core.tuning import Tuning
from robustbn._rows.kernels import _native
from robustbn._rows.kernels.native import align, as_read
from robustbn.exceptions import CodeRangeError


@dataclass(frozen=True, eq=False)
class NativeHoles:
    """Questions in memory, each with where its factors start in the tables."""

    layout: Layout
    questions: _native.Holes
    n_threads: int

    @property
    def n_questions(self) -> int:
        """Number of distinct questions."""
        return self.questions.n_questions

    @property
    def n_patterns(self) -> int:
        """Number of distinct components."""
        return self.questions.n_patterns

    @property
    def n_sampled(self) -> float:
        """Weight of the questions that are sampled."""
        return self.questions.n_sampled

    @property
    def n_bytes(self) -> int:
        """Memory that the questions and their programs take."""
        return self.questions.n_bytes

    def add(self, codes: NDArray[Any], weights: RowVector | None = None) -> None:
        """Add the questions of more rows. One pass, any strides, no copy of the codes."""
        if weights is not None:
            weights = as_read(weights, np.float64)
        try:
            row, column = self.questions.add(align(codes, codes.itemsize), weights, self.n_threads)
        except MemoryError:
            # a base takes 4 bytes and its share of a hash table; no row asks more than it has cells
            needed = 2 * self.n_bytes + 8 * codes.size
            raise insufficient_memory(needed, "Gathering rows with holes") from None
        self._refuse(codes, row, column)

    def expect(self, q: Vector) -> Expectation:
        """Return the expected counts of the families with a hole under tables q."""
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
        self._refuse(codes, row, column)
        return HolePosterior(rows, columns, probabilities, logs)

    def _refuse(self, codes: NDArray[Any], row: int, column: int) -> None:
        if row >= 0:
            raise CodeRangeError(row, column, int(codes[row, column]), self.layout.cards[column])


def make_holes(layout: Layout, n_threads: int | None, seed: int, tuning: Tuning) -> NativeHoles:
    """Return questions of no rows yet."""
    layout.require_addressable()
    questions = _native.Holes(
        layout.cards,
        layout.families,
        tuning.completion_largest_table,
        tuning.completion_sweeps,
        seed,
    )
    return NativeHoles(layout, questions, n_threads or available_cpus())
