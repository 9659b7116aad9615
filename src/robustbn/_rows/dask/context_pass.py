"""Names and context of rows on a cluster: counted by the workers, added up here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.origins import ContextTally, CountedContext, GroupRun, RowNumbers
from robustbn._core.protocols import Rows, RowVector, Vector
from robustbn._rows.context_counts import ChooseRuns, ContextStretch, RowCounter, count_pairs
from robustbn._rows.dask.partition import Partition
from robustbn._rows.dask.rows import RowsOnDask
from robustbn._tables.aside import MOST_NAME_BYTES, Aside, join_arrow, say_files

Weigh = Callable[[Rows], RowVector]
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class _Place:
    """Where a partition stands: its first row among all that were read, and its file's number."""

    first: int
    file: int


def read_aside(
    data: RowsOnDask,
    weigh: Weigh,
    shown: NDArray[np.int64],
    choose_runs: ChooseRuns,
    *,
    is_anywhere: bool,
) -> Aside:
    """Return names and context. Two passes over what the workers hold, and one for names.

    Parameters
    ----------
    weigh : judges rows.
    shown : numbers of the rows that may be shown, in order.
    choose_runs : returns the groups to count two by two.
    is_anywhere : whether any row is distrusted; otherwise context is not looked at.
    """
    damaged = {name: why for found in data.founds for name, why in found.damaged.items()}
    counted = _count(data, weigh, damaged, choose_runs) if is_anywhere else None
    has_all = sum(found.name_bytes for found in data.founds) <= MOST_NAME_BYTES
    names = _fetch_names(data, None if has_all else shown)
    return Aside(
        names=names,
        damaged=damaged,
        counted=counted,
        numbers=None if has_all else shown,
        n_rows=data.reading.n_read,
    )


def _count(
    data: RowsOnDask,
    weigh: Weigh,
    damaged: Mapping[str, str],
    choose_runs: ChooseRuns,
) -> CountedContext:
    """Return how the distrusted rows are spread over files, context and row numbers."""
    files = tuple(dict.fromkeys(data.files))
    firsts = np.cumsum([0, *(found.n_read for found in data.founds)]).tolist()
    numbers = [files.index(file) for file in data.files] or [0] * len(data.founds)
    given = [_Place(first, file) for first, file in zip(firsts, numbers, strict=False)]
    ask = data.partitions.ask
    counter = RowCounter(_common_columns(data, damaged), say_files(files), data.reading.n_read)
    _, answers = ask("looking at context", partial(count_rows, weigh, counter), given=given)
    for answer in answers:
        counter.merge(answer)
    tallies = counter.tallies()
    runs, together = tuple(choose_runs(tallies)), np.zeros((2, 0, 0))
    if runs:
        of_runs = partial(count_runs, weigh, tallies, runs, counter.numbers)
        together, _ = ask("looking at context", of_runs, given=given)
    return CountedContext(tallies, runs, *together.astype(np.int64))


def _common_columns(data: RowsOnDask, damaged: Mapping[str, str]) -> list[str]:
    """Return the columns of context of the first rows that no partition has given up."""
    first = next((found for found in data.founds if found.n_read), None)
    gone = {name for found in data.founds for name in found.given_up} | set(damaged)
    return [name for name in (first.context if first else ()) if name not in gone]


def count_rows(
    weigh: Weigh, empty: RowCounter, partition: Partition, place: _Place
) -> tuple[None, RowCounter]:
    """Return the rows of a partition, counted by a copy of a counter."""
    counter = deepcopy(empty)
    for stretch in _stretches(partition, weigh, place):
        counter.add(stretch)
    return None, counter


def count_runs(
    weigh: Weigh,
    tallies: Sequence[ContextTally],
    runs: Sequence[GroupRun],
    numbers: RowNumbers,
    partition: Partition,
    place: _Place,
) -> tuple[Vector, None]:
    """Return how many rows belong to both of two runs, and are distrusted; shape (2, r, r)."""
    total = np.zeros((2, len(runs), len(runs)))
    for stretch in _stretches(partition, weigh, place):
        total += count_pairs(tallies, runs, numbers, stretch)
    return total, None


def _stretches(partition: Partition, weigh: Weigh, place: _Place) -> Iterator[ContextStretch]:
    """Yield the context of a partition's pieces, with the trust in their rows."""
    trust, start = _trust_of(partition, weigh), 0
    for piece in partition.pieces:
        raws = {raw.name: raw for raw in piece.context}
        some = trust[start : start + piece.n_read]
        yield ContextStretch(place.first + start, place.file, raws, some)
        start += piece.n_read


def _trust_of(partition: Partition, weigh: Weigh) -> RowVector:
    """Return the trust in the rows that were read, NaN for those left out."""
    trust = np.full(partition.found.n_read, np.nan, np.float32)
    kept = np.delete(np.arange(len(trust)), partition.found.dropped)
    trust[kept] = weigh(partition.rows)
    return trust


def _fetch_names(data: RowsOnDask, numbers: Counts | None) -> dict[str, Any]:
    """Return the names of some rows, by their numbers among all that were read, or of all."""
    names = data.reading.config.named
    if not names:
        return {}
    firsts = np.cumsum([0, *(found.n_read for found in data.founds)])
    given: list[Any] = [None] * len(data.founds)
    if numbers is not None:
        cuts = np.searchsorted(numbers, firsts)
        given = [numbers[cuts[k] : cuts[k + 1]] - firsts[k] for k in range(len(given))]
    _, parts = data.partitions.ask("fetching names", partial(pick_names, names), given=given)
    return {name: join_arrow([chunk for p in parts for chunk in p[name]]) for name in names}


def pick_names(
    names: Sequence[str], partition: Partition, numbers: Counts | None
) -> tuple[None, dict[str, list[Any]]]:
    """Return the names of some rows of a partition, or of all; batches of codes have none."""
    import pyarrow as pa

    found = {}
    for name in names:
        chunks = [
            chunk
            for piece in partition.pieces
            for chunk in (
                piece.names[name].chunks if name in piece.names else [pa.nulls(piece.n_read)]
            )
        ]
        whole = join_arrow(chunks)
        chosen = whole if numbers is None else whole.take(numbers)
        found[name] = chosen.chunks
    return None, found
