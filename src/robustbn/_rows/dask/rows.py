"""A table on a Dask cluster as rows that can be passed over."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from robustbn._core.allocate import allocate
from robustbn._core.holes import Expectation
from robustbn._core.layout import Codes, Layout
from robustbn._core.protocols import (
    Divided,
    DividedApart,
    DividedInTwo,
    Judged,
    Rows,
    RowVector,
    Survey,
    TwoSides,
    Vector,
)
from robustbn._rows.dask.cluster import Partitions
from robustbn._rows.dask.partition import FoundInPartition
from robustbn._rows.dask.questions import (
    Question,
    all_codes,
    count_rows,
    divide_rows,
    divide_rows_apart,
    divide_rows_in_two,
    expect_rows,
    find_odds,
    hash_rows,
    judge_rows,
    pick_rows,
    project_rows,
    score_rows,
    sum_rows,
)
from robustbn._rows.memory import draw_evenly, find_holed, load_rows
from robustbn._tables.coded import Reading
from robustbn._tables.table import dtype_of_codes
from robustbn.network import BayesianNetwork

T = TypeVar("T")
MOST_WEIGHTS_FETCHED = 50_000_000  # of rows; of more, the trust in each is not brought here


@dataclass(frozen=True, eq=False)
class DaskRows:
    """All rows on a cluster as `Rows`: vectors of length N are on the host. For second looks."""

    layout: Layout
    partitions: Partitions

    @property
    def n_rows(self) -> int:
        """Number of rows, N."""
        return self.partitions.n_rows

    def parts(self, max_rows: int) -> Iterator[tuple[slice, DaskRows]]:
        """Yield the rows in parts of whole partitions, at most `max_rows` if those are small."""
        starts, first = self.partitions.starts, 0
        while first < len(starts) - 1:
            fits = int(np.searchsorted(starts, starts[first] + max_rows, side="right")) - 1
            last = max(first + 1, fits)
            some = self.partitions[first:last]
            if some.n_rows:
                yield slice(int(starts[first]), int(starts[last])), replace(self, partitions=some)
            first = last

    def count(self, weights: RowVector | None = None) -> Vector:
        """Return `C[j]`, the weight of the rows that touch cell j. One pass."""
        return self.partitions.ask("counting rows", count_rows, weights=weights)[0]

    def project(self, table: Vector, offset: Vector | None = None) -> RowVector:
        """Return `y[n] = sum of table[j] over the cells of row n, minus offset`. One pass."""
        return self._join("projecting rows", partial(project_rows, table, offset))

    def score(self, table: Vector, offset: Vector | None = None) -> RowVector:
        """Return `|y[n]|^2`. One pass."""
        return self._join("scoring rows", partial(score_rows, table, offset))

    def gram(
        self, table: Vector, offset: Vector | None = None, weights: RowVector | None = None
    ) -> Vector:
        """Return `G[j] = sum of weights[n] y[n] over the rows that touch cell j`. One pass."""
        work = partial(sum_rows, table, offset)
        return self.partitions.ask("summing rows", work, weights=weights)[0]

    def divide(
        self, table: Vector, offset: Vector | None = None, weights: RowVector | None = None
    ) -> Divided:
        """Divide each row's weight by `softmax(0, y[n])`, and count each part. One pass."""
        work = partial(divide_rows, table, offset)
        counts, sums = self.partitions.ask("dividing rows", work, weights=weights)
        masses = np.sum([each[:-1] for each in sums], axis=0)
        return Divided(counts, masses, math.fsum(float(each[-1]) for each in sums))

    def divide_apart(
        self,
        table: Vector,
        offset: Vector | None,
        against: RowVector,
        weights: RowVector | None = None,
    ) -> DividedApart:
        """Divide each row between each column alone and what is against it, and count that."""
        given = np.ones(self.n_rows, np.float32) if weights is None else weights
        work = partial(divide_rows_apart, table, offset)
        both = np.stack([given, against], axis=1)
        counts, sums = self.partitions.ask("dividing rows", work, weights=both)
        return DividedApart(counts, *np.sum(sums, axis=0))

    def odds(self, table: Vector, offset: Vector | None, n_first: int) -> RowVector:
        """Return the log-odds of the second side of columns against the first. One pass."""
        return self._join("projecting rows", partial(find_odds, table, offset, n_first))

    def divide_in_two(
        self,
        table: Vector,
        offset: Vector | None,
        sides: TwoSides,
        weights: RowVector | None = None,
    ) -> DividedInTwo:
        """Divide each row between two sides by its odds, and count each column. One pass."""
        work = partial(divide_rows_in_two, table, offset, sides)
        counts, parts = self.partitions.ask("dividing rows", work, weights=weights)
        masses, odds = zip(*parts, strict=True)
        return DividedInTwo(counts, np.sum(masses, axis=0), np.concatenate(odds))

    def fingerprints(self) -> NDArray[np.uint64]:
        """Return a 64-bit hash of each row. One pass."""
        return self._join("comparing rows", hash_rows)

    def unpack(self) -> Codes:
        """Return the codes of the rows. One pass."""
        codes: Codes = self._join("fetching rows", all_codes)
        return codes

    def _join(self, what: str, question: Question) -> NDArray[Any]:
        return np.concatenate(self.partitions.ask(what, question)[1])


@dataclass(frozen=True, eq=False)
class HolesOnDask:
    """What the rows of a cluster that miss values ask: each worker keeps that of its partitions.

    Parameters
    ----------
    verdict : its name, by which workers know what they keep.
    weigh, weights : the trust in rows, and their own weights; for who has lost what was kept.
    n_sampled : weight of the questions that are sampled.
    """

    layout: Layout
    partitions: Partitions
    verdict: str
    weigh: Callable[[Rows], RowVector]
    weights: RowVector | None
    n_sampled: float

    def expect(self, q: Vector) -> Expectation:
        """Return the expected counts of the families that miss a value under tables q."""
        work = partial(expect_rows, self.weigh, self.verdict, q)
        sums, answers = self.partitions.ask("expecting values", work, weights=self.weights)
        likelihood, impossible = (math.fsum(each) for each in zip(*answers, strict=True))
        errors = np.sqrt(sums[1]) if self.n_sampled else None
        return Expectation(sums[0], likelihood, impossible, errors)


@dataclass(frozen=True, eq=False)
class RowsOnDask:
    """A table on a Dask cluster, as `Data`.

    Rows are numbered as if the partitions, without the rows left out, stood one below another: the
    same rows are drawn as from a table in memory.

    Parameters
    ----------
    network : whose nodes the columns are.
    partitions : the rows.
    reading : what was found in all of them.
    dropped : numbers of the rows that were left out, among all that were read.
    kernels : that the workers use, and the host has to use too: "native" or "numpy".
    n_threads : of the host.
    founds : what was found in each partition.
    files : of each partition, if the table is a path.
    """

    network: BayesianNetwork
    partitions: Partitions
    reading: Reading
    dropped: NDArray[np.int64]
    kernels: str
    n_threads: int | None = None
    founds: tuple[FoundInPartition, ...] = ()
    files: tuple[str, ...] = ()

    def __len__(self) -> int:
        return self.partitions.n_rows

    @cached_property
    def kept(self) -> NDArray[np.int64] | None:
        """Numbers of the rows that are left, if any were left out; else None."""
        if not len(self.dropped):
            return None
        return np.delete(np.arange(self.reading.n_read), self.dropped)

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values of the rows that are left at their places; NaN for those left out."""
        if self.kept is None:
            return values
        spread = np.full(self.reading.n_read, np.nan, np.result_type(values, np.float32))
        spread[self.kept] = values
        return spread

    def numbers_read(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the numbers, among all rows that were read, of rows that are left. O(dropped)."""
        before = self.dropped - np.arange(len(self.dropped))  # rows left before each left out
        return numbers + np.searchsorted(before, numbers, side="right")

    def fetch(self, numbers: NDArray[np.int64] | None) -> Codes:
        """Return the codes of the rows with these numbers, which increase, or of all. One pass."""
        starts = self.partitions.starts
        given: list[Any] = [slice(None)] * (len(starts) - 1)
        n = len(self) if numbers is None else len(numbers)
        if numbers is not None:
            cuts = np.searchsorted(numbers, starts)
            given = [numbers[cuts[k] : cuts[k + 1]] - starts[k] for k in range(len(given))]
        dtype = dtype_of_codes(self.network, self.reading.config)
        codes: Codes = allocate((n, self.network.n_nodes), dtype, "Fetching rows")
        _, parts = self.partitions.ask("fetching rows", pick_rows, given=given)
        return np.concatenate(parts, out=codes)

    def survey(self, weights: RowVector | None, n_most: int, seed: int) -> Survey:
        """Count all rows and draw at most `n_most` of them, evenly. One pass, and one for those."""
        counts, _ = self.partitions.ask("counting rows", count_rows, weights=weights)
        n, chosen = len(self), None
        if n > n_most:
            chosen = draw_evenly(n, n_most, seed)
        codes = self.fetch(chosen)
        holed = find_holed(self.network.layout, codes)
        rows = load_rows(self.network, codes, self.kernels, self.n_threads, holed=holed)
        return Survey(n, counts, codes, np.arange(n) if chosen is None else chosen, rows)

    def judge(
        self,
        weigh: Callable[[Rows], RowVector],
        weights: RowVector | None,
        *,
        gathers: bool = False,
    ) -> Judged:
        """Return the counts of all rows by the trust in each, and that trust. One pass.

        Of more than `MOST_WEIGHTS_FETCHED` rows the trust stays on the workers: None stands for it.
        """
        keeps_trust = len(self) <= MOST_WEIGHTS_FETCHED
        verdict = uuid4().hex if gathers and self.reading.n_holes else None
        work = partial(judge_rows, weigh, keeps_trust, verdict)
        counts, answers = self.partitions.ask("judging rows", work, weights=weights)
        totals, sampled, trusts = zip(*answers, strict=True)
        holes = None
        if verdict is not None:
            layout, n_sampled = self.network.layout, math.fsum(sampled)
            holes = HolesOnDask(layout, self.partitions, verdict, weigh, weights, n_sampled)
        trust = np.concatenate(trusts) if keeps_trust else None
        return Judged(counts, math.fsum(totals), trust, holes)

    def remember(self, stage: str, make: Callable[[], T]) -> T:
        """Return what is made."""
        return make()

    def all_rows(self) -> DaskRows:
        """Return all rows as one, for second looks."""
        return DaskRows(self.network.layout, self.partitions)
