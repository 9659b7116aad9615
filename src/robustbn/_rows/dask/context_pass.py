"""Names and context of rows on a cluster: counted by the workers, added up here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.origins import CountedContext
from robustbn._core.protocols import Rows, RowVector, Vector
from robustbn._rows.context_counts import ChooseRuns, ContextStretch, CountPairs, RowCounter
from robustbn._rows.dask.partition import Partition, first_rows
from robustbn._rows.dask.rows import RowsOnDask, split_numbers
from robustbn._tables.aside import MOST_NAME_BYTES, Aside, join_arrow, say_files

Weigh = Callable[[Rows], RowVector]
Place = tuple[int, int]  # first row of a partition among all that were read, number of its file


def read_aside(
    data: RowsOnDask,
    weigh: Weigh,
    shown: NDArray[np.int64],
    choose_runs: ChooseRuns,
    *,
    is_anywhere: bool,
) -> Aside:
    """Return names and context. Two passes over what the workers hold, and one for names.

    `shown` are the rows whose names are wanted. If no row is distrusted anywhere, context is not
    looked at.
    """
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
    _, answers = ask("looking at context", partial(count_rows, weigh, counter), given=given)
    for answer in answers:
        counter.merge(answer)

    def count_pairs(count: CountPairs, named: set[str]) -> Vector:
        return ask("looking at context", partial(count_runs, weigh, count), given=given)[0]

    return counter.pair_up(choose_runs, count_pairs)


def count_rows(
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
    trust = np.full(partition.found.n_read, np.nan, np.float32)  # in rows left out
    kept = np.delete(np.arange(len(trust)), partition.found.dropped)
    trust[kept] = weigh(partition.rows)
    (first, file), start = place, 0
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
