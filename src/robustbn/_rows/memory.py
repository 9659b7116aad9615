"""A table in memory as rows that can be passed over."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robustbn._core.holes import Holes
from robustbn._core.layout import Codes, Layout, take_rows
from robustbn._core.origins import ContextColumn
from robustbn._core.protocols import CountRows, Judged, Rows, RowVector, Survey
from robustbn._core.trust import is_even, sum_weights
from robustbn._rows.kernels import load_kernels
from robustbn._tables.coded import as_codes
from robustbn.exceptions import CodeRangeError
from robustbn.network import BayesianNetwork


def load_rows(
    network: BayesianNetwork,
    X: ArrayLike,
    kernels: str | None = None,
    n_threads: int | None = None,
    *,
    holed: Collection[int] | None = (),
) -> Rows:
    """Check the rows and hand them to kernels."""
    codes = as_codes(X, network)
    holed = find_holed(network.layout, codes) if holed is None else holed
    layout = network.layout.with_holes(holed) if holed else network.layout
    try:
        return load_kernels(kernels).encode(layout, codes, n_threads)
    except CodeRangeError as wrong:
        raise CodeRangeError(
            wrong.row,
            wrong.column,
            wrong.value,
            wrong.n_states,
            network.nodes[wrong.column],
            is_holed=wrong.is_holed,
        ) from None


def load_codes(
    layout: Layout, codes: Codes, kernels: str | None = None, n_threads: int | None = None
) -> Rows:
    """Hand codes that are known to be right to kernels, by any layout of their columns."""
    layout = layout.with_holes(find_holed(layout, codes))
    return load_kernels(kernels).encode(layout, codes, n_threads)


def find_holed(layout: Layout, codes: Codes) -> tuple[int, ...]:
    """Return the columns in which some value is missing. O(N d) time."""
    might_be = np.flatnonzero(codes.max(axis=0, initial=0) >= np.array(layout.cards))
    return tuple(c for c in might_be.tolist() if (codes[:, c] == layout.cards[c]).any())


def fingerprint_codes(
    network: BayesianNetwork, kernels: str | None = None
) -> Callable[[Codes], NDArray[np.uint64]]:
    """Return a function that gives rows of codes, with holes or without, their fingerprints."""

    def fingerprint(codes: Codes) -> NDArray[np.uint64]:
        return load_rows(network, codes, kernels, holed=None).fingerprints()

    return fingerprint


def gather(
    layout: Layout,
    codes: NDArray[Any],
    weights: RowVector | None = None,
    n_threads: int | None = None,
    *,
    engine: str | None = None,
    seed: int = 0,
) -> Holes:
    """Return the questions that rows with holes ask; one pass."""
    holes = load_kernels(engine).make_holes(layout, n_threads, seed)
    holes.add(codes, weights)
    return holes


def draw_evenly(n_rows: int, n: int, seed: int) -> NDArray[np.int64]:
    """Return the numbers of n rows, one drawn from each of n equal stretches."""
    places = np.random.default_rng([seed, n]).random(n)
    places += np.arange(n)
    places *= n_rows / n
    return places.astype(np.int64)


@dataclass(frozen=True, eq=False)
class RowsInMemory:
    """A table in memory, as `Data`; values may be missing in the `holed` columns.

    `context` are columns outside the network, of the same rows; `written` as in `Survey`.
    """

    network: BayesianNetwork
    codes: Codes
    kernels: str | None = None
    n_threads: int | None = None
    holed: tuple[int, ...] = ()
    context: tuple[ContextColumn, ...] = ()
    written: NDArray[np.uint64] | None = None

    @cached_property
    def rows(self) -> Rows:
        return self._load(self.codes)

    def picked(self, which: NDArray[np.int64]) -> RowsInMemory:
        """Return some of the rows, by their places."""
        context = tuple(replace(each, codes=each.codes[which]) for each in self.context)
        written = None if self.written is None else self.written[which]
        return replace(self, codes=take_rows(self.codes, which), context=context, written=written)

    def survey(self, weights: RowVector | None, n_most: int, seed: int) -> Survey:
        n = len(self.codes)
        counts = self.rows.count(weights)
        if n <= n_most:
            chosen, some = np.arange(n), self
        else:
            chosen = draw_evenly(n, n_most, seed)
            some = self.picked(chosen)
        return Survey(n, counts, some.codes, chosen, some.rows, some.context, some.written)

    def judge(
        self,
        weigh: Callable[[Rows], RowVector],
        weights: RowVector | None,
        *,
        gathers: bool = False,
        count: CountRows | None = None,
        surveyed: RowVector | None = None,
    ) -> Judged:
        """Return the counts by the trust in each row; with no pass where `survey` has counted."""
        trust = weigh(self.rows) if surveyed is None else surveyed
        judged = trust if weights is None else weights if is_even(trust) else trust * weights
        holes = None
        if gathers and self.holed:
            layout, n_threads = self.network.layout, self.n_threads
            holes = gather(layout, self.codes, judged, n_threads, engine=self.kernels)
        total = sum_weights(judged)
        counts = self.rows.count(judged) if count is None else count(self.rows, judged)
        return Judged(counts, total, trust, holes)

    def _load(self, codes: Codes) -> Rows:
        return load_rows(self.network, codes, self.kernels, self.n_threads, holed=self.holed)
