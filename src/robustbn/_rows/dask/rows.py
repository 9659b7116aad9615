"""A table on a Dask cluster as rows that can be passed over, with their names and context."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from robustbn._core.allocate import allocate
from robustbn._core.holes import Expectation
from robustbn._core.layout import Codes, Layout
from robustbn._core.origins import CountedContext
from robustbn._core.protocols import CountRows, Judged, Rows, RowVector, Survey, Vector
from robustbn._core.trust import spread
from robustbn._rows.context_counts import ChooseRuns, ContextStretch, CountPairs, RowCounter
from robustbn._rows.dask.cluster import Partitions
from robustbn._rows.dask.partition import FoundInRows, Partition, first_rows
from robustbn._rows.memory import draw_evenly, load_rows
from robustbn._tables.aside import MOST_NAME_BYTES, Aside, join_arrow, say_files
from robustbn._tables.coded import Reading
from robustbn._tables.table import dtype_of_codes
from robustbn.network import BayesianNetwork

Weigh = Callable[[Rows], RowVector]
Place = tuple[int, int]  # first row of a partition among all that were read, number of its file
MOST_WEIGHTS_FETCHED = 50_000_000  # of rows; of more, the trust in each is not brought here


@dataclass(frozen=True, eq=False)
class HolesOnDask:
    """What the rows of a cluster that miss values ask: each worker keeps that of its partitions."""

    layout: Layout
    partitions: Partitions
    verdict: str  # its name, by which workers know what they keep
    # weigh, weights: the trust in rows, and their own weights; for who has lost what was kept
    weigh: Weigh
    weights: RowVector | None
    n_sampled: float  # weight of the questions that are sampled

    def expect(self, q: Vector) -> Expectation:
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
    """

    network: BayesianNetwork  # whose nodes the columns are
    partitions: Partitions  # the rows
    reading: Reading  # what was found in all of them
    # founds, found: what was found in each partition, and in all of them
    founds: tuple[FoundInRows, ...]
    found: FoundInRows
    files: tuple[str, ...]  # of each partition, if the table is a path
    kernels: str  # that the workers use, and the host has to use too: "native" or "numpy"
    n_threads: int | None  # of the host

    def __len__(self) -> int:
        return self.partitions.n_rows

    @property
    def kept(self) -> NDArray[np.int64] | None:
        """Numbers of the rows that are left, if any were left out; else None."""
        return self.found.kept

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values of the rows that are left at their places; NaN for those left out."""
        return spread(values, self.kept, self.reading.n_read)

    def numbers_read(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the numbers, among all rows that were read, of rows that are left. O(dropped)."""
        dropped = self.found.dropped
        before = dropped - np.arange(len(dropped))  # rows left before each left out
        return numbers + np.searchsorted(before, numbers, side="right")

    def fetch(self, numbers: NDArray[np.int64] | None) -> Codes:
        """Return the codes of the rows with these numbers, which increase, or of all. One pass."""
        n = len(self) if numbers is None else len(numbers)
        given = split_numbers(numbers, self.partitions.starts)
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
        rows = load_rows(self.network, codes, self.kernels, self.n_threads, holed=None)
        numbers = np.arange(n) if chosen is None else chosen
        written = self.found.clues.numbers.print_rows(self.numbers_read(numbers))
        return Survey(n, counts, codes, numbers, rows, written=written)

    def judge(
        self,
        weigh: Weigh,
        weights: RowVector | None,
        *,
        gathers: bool = False,
        count: CountRows | None = None,
        surveyed: RowVector | None = None,
    ) -> Judged:
        """Return the counts of all rows by the trust in each, and that trust. One pass."""
        keeps_trust = len(self) <= MOST_WEIGHTS_FETCHED
        verdict = uuid4().hex if gathers and self.reading.n_holes else None
        work = partial(judge_rows, weigh, keeps_trust, verdict, count)
        counts, answers = self.partitions.ask("judging rows", work, weights=weights)
        totals, sampled, trusts = zip(*answers, strict=True)
        holes = None
        if verdict is not None:
            layout, n_sampled = self.network.layout, math.fsum(sampled)
            holes = HolesOnDask(layout, self.partitions, verdict, weigh, weights, n_sampled)
        trust = np.concatenate(trusts) if keeps_trust else None
        return Judged(counts, math.fsum(totals), trust, holes)


def split_numbers(
    numbers: NDArray[np.int64] | None, starts: NDArray[np.int64]
) -> list[NDArray[np.int64] | slice]:
    """Return the numbers of some rows, which increase, or of all, as each partition has them."""
    if numbers is None:
        return [slice(None)] * (len(starts) - 1)
    cuts = np.searchsorted(numbers, starts)
    return [numbers[a:b] - start for (a, b), start in zip(pairwise(cuts), starts, strict=False)]


# --- what is asked of each partition ------------------------------------------------------------


def pick_rows(partition: Partition, numbers: NDArray[np.int64] | slice) -> tuple[None, Codes]:
    return None, partition.codes[numbers]


def count_rows(partition: Partition, weights: RowVector | None) -> tuple[Vector, None]:
    return partition.rows.count(weights), None


def judge_rows(
    weigh: Weigh,
    keeps_trust: bool,
    verdict: str | None,
    count: CountRows | None,
    partition: Partition,
    weights: RowVector | None,
) -> tuple[Vector, tuple[float, float, RowVector | None]]:
    """Return the counts by the trust in each row, its sum, and that trust if it is to be kept."""
    trust = weigh(partition.rows)
    judged = trust if weights is None else trust * weights
    total = float(judged.sum(dtype=np.float64))
    n_sampled = 0.0
    if verdict is not None:
        n_sampled = partition.gather(verdict, lambda: judged).n_sampled
    rows = partition.rows
    counts = rows.count(judged) if count is None else count(rows, judged)
    return counts, (total, n_sampled, trust if keeps_trust else None)


def expect_rows(
    weigh: Weigh, verdict: str, q: Vector, partition: Partition, weights: RowVector | None
) -> tuple[Vector, tuple[float, float]]:
    """Return the expected counts of the families that miss a value, and their variances."""

    def judge() -> RowVector:
        trust = weigh(partition.rows)
        return trust if weights is None else trust * weights

    found = partition.gather(verdict, judge).expect(q)
    errors = np.zeros_like(found.counts) if found.standard_errors is None else found.standard_errors
    return np.stack([found.counts, errors**2]), (found.log_likelihood, found.n_impossible)


# --- names and context: counted by the workers, added up here -------------------------------------


def read_aside(
    data: RowsOnDask,
    weigh: Weigh,
    shown: NDArray[np.int64],
    choose_runs: ChooseRuns,
    *,
    is_anywhere: bool,
) -> Aside:
    """Return names and context. Two passes over what the workers hold, and one for names."""
    counted = _count(data, weigh, choose_runs) if is_anywhere else None
    numbers = None if data.found.name_bytes <= MOST_NAME_BYTES else shown
    return Aside(
        names=_fetch_names(data, numbers),
        damaged=data.found.damaged,
        counted=counted,
        numbers=numbers,
        n_rows=data.found.n_read,
    )


def _count(data: RowsOnDask, weigh: Weigh, choose_runs: ChooseRuns) -> CountedContext:
    """Return how the distrusted rows are spread over files, context and row numbers."""
    files = tuple(dict.fromkeys(data.files))
    numbers = [files.index(file) for file in data.files] or [0] * len(data.founds)
    given = list(zip(first_rows(data.founds).tolist(), numbers, strict=False))
    ask, gone = data.partitions.ask, {*data.found.given_up, *data.found.damaged}
    first = next((found.context for found in data.founds if found.n_read), ())
    columns = [name for name in first if name not in gone]
    counter = RowCounter(columns, say_files(files), data.found.n_read)
    _, answers = ask("looking at context", partial(count_context, weigh, counter), given=given)
    for answer in answers:
        counter.merge(answer)

    def count_pairs(count: CountPairs, named: set[str]) -> Vector:
        return ask("looking at context", partial(count_runs, weigh, count), given=given)[0]

    return counter.pair_up(choose_runs, count_pairs)


def count_context(
    weigh: Weigh, empty: RowCounter, partition: Partition, place: Place
) -> tuple[None, RowCounter]:
    """Return the rows of a partition, counted by a copy of a counter."""
    counter = deepcopy(empty)
    for stretch in _stretches(partition, weigh, place):
        counter.add(stretch)
    return None, counter


def count_runs(
    weigh: Weigh, count: CountPairs, partition: Partition, place: Place
) -> tuple[Vector, None]:
    """Return how many rows belong to both of two runs, and are distrusted; shape (2, r, r)."""
    return count(_stretches(partition, weigh, place)), None


def _stretches(partition: Partition, weigh: Weigh, place: Place) -> Iterator[ContextStretch]:
    """Yield the context of a partition's pieces, with the trust in their rows."""
    found, (first, file), start = partition.found, place, 0
    trust = spread(weigh(partition.rows), found.kept, found.n_read)
    for aside in partition.asides:
        raws = {raw.name: raw for raw in aside.raw}
        yield ContextStretch(first + start, file, raws, trust[start : start + aside.n_rows])
        start += aside.n_rows


def _fetch_names(data: RowsOnDask, numbers: NDArray[np.int64] | None) -> dict[str, Any]:
    """Return the names of some rows, by their numbers among all that were read, or of all."""
    names = data.reading.config.named
    if not names:
        return {}
    given = split_numbers(numbers, first_rows(data.founds))
    _, parts = data.partitions.ask("fetching names", partial(pick_names, names), given=given)
    return {name: join_arrow([chunk for p in parts for chunk in p[name]]) for name in names}


def pick_names(
    names: Sequence[str], partition: Partition, numbers: NDArray[np.int64] | slice
) -> tuple[None, dict[str, list[Any]]]:
    """Return the names of some rows of a partition, or of all; batches of codes have none."""
    import pyarrow as pa

    found = {}
    for name in names:
        chunks: list[Any] = []
        for aside in partition.asides:
            is_there = name in aside.names
            chunks += aside.names[name].chunks if is_there else [pa.nulls(aside.n_rows)]
        whole = join_arrow(chunks)
        chosen = whole if isinstance(numbers, slice) else whole.take(numbers)
        found[name] = chosen.chunks
    return None, found
