"""Names and context of rows on a cluster: counted by the workers, added up here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.origins import (
    FILE_NAME,
    ROW_NUMBER,
    ContextTally,
    CountedContext,
    GroupRun,
    count_together,
    cut_row_numbers,
    say_row_numbers,
)
from robustbn._core.protocols import Rows, RowVector, Vector
from robustbn._core.trust import DOUBT
from robustbn._rows.dask.partition import Partition, PartitionPiece
from robustbn._rows.dask.rows import RowsOnDask
from robustbn._tables.aside import join_arrow, say_files
from robustbn._tables.context import Aside
from robustbn._tables.groups import ContextSummary, Groups, RawContext
from robustbn._tables.names import MOST_NAME_BYTES

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
    choose_runs: Callable[[Sequence[ContextTally]], list[GroupRun]],
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
    choose_runs: Callable[[Sequence[ContextTally]], list[GroupRun]],
) -> CountedContext:
    """Return how the distrusted rows are spread over files, context and row numbers."""
    columns = _common_columns(data, damaged)
    starts, files = cut_row_numbers(data.reading.n_read), tuple(dict.fromkeys(data.files))
    said = say_files(files)
    firsts = np.cumsum([0, *(found.n_read for found in data.founds)]).tolist()
    numbers = [files.index(file) for file in data.files] or [0] * len(data.founds)
    given = [_Place(first, file) for first, file in zip(firsts, numbers, strict=False)]
    ask = data.partitions.ask
    question = partial(count_context, weigh, columns, starts)
    of_numbers, answers = ask("looking at context", question, given=given)
    tallies, groups = [], {}
    if said:
        of_files = np.zeros((2, len(said) + 1), np.int64)
        for place, (_, counts) in zip(given, answers, strict=True):
            of_files[:, 1 + place.file] += counts
        tallies.append(ContextTally(FILE_NAME, said, (), False, *of_files))
    for name in columns:
        summary = ContextSummary(name)
        for summaries, _ in answers:
            summary.merge(summaries[name])
        found = summary.tally()
        if found is not None:
            groups[len(tallies)] = found[0]
            tallies.append(found[1])
    labels, ends = say_row_numbers(starts)
    of_rows = of_numbers.astype(np.int64)
    tallies.append(ContextTally(ROW_NUMBER, labels, ends, True, *of_rows))
    runs, together = tuple(choose_runs(tallies)), np.zeros((2, 0, 0))
    if runs:
        of_runs = partial(count_runs, weigh, runs, groups, starts, bool(said))
        together, _ = ask("looking at context", of_runs, given=given)
    return CountedContext(tuple(tallies), runs, *together.astype(np.int64))


def _common_columns(data: RowsOnDask, damaged: Mapping[str, str]) -> list[str]:
    """Return the columns of context of the first rows that no partition has given up."""
    first = next((found for found in data.founds if found.n_read), None)
    gone = {name for found in data.founds for name in found.given_up} | set(damaged)
    return [name for name in (first.context if first else ()) if name not in gone]


def count_context(
    weigh: Weigh, columns: Sequence[str], starts: Counts, partition: Partition, place: _Place
) -> tuple[Vector, tuple[dict[str, ContextSummary], Counts]]:
    """Return the rows by stretches of the row number; by context, and all of them."""
    trust = _trust_of(partition, weigh)
    masks = ~np.isnan(trust), trust < DOUBT
    summaries = {name: ContextSummary(name) for name in columns}
    start = 0
    for piece in partition.pieces:
        some = slice(start, start + piece.n_read)
        for name, summary in summaries.items():
            summary.add(_raw_of(piece, name), *(mask[some] for mask in masks))
        start += piece.n_read
    numbers = 1 + _stretch_numbers(starts, place, len(trust))
    of_numbers = [np.bincount(numbers[mask], minlength=len(starts)) for mask in masks]
    totals = np.array([np.count_nonzero(mask) for mask in masks])
    return np.array(of_numbers, np.float64), (summaries, totals)


def count_runs(
    weigh: Weigh,
    runs: Sequence[GroupRun],
    groups: Mapping[int, Groups],
    starts: Counts,
    has_files: bool,
    partition: Partition,
    place: _Place,
) -> tuple[Vector, None]:
    """Return how many rows belong to both of two runs, and are distrusted; shape (2, r, r)."""
    trust = _trust_of(partition, weigh)
    codes: dict[int, NDArray[Any]] = {}
    for k in {run.column for run in runs}:
        if k in groups:
            pieces = [groups[k].place(_raw_of(p, groups[k].name)) for p in partition.pieces]
            codes[k] = np.concatenate([np.empty(0, np.int16), *pieces])
        elif k == 0 and has_files:
            codes[k] = np.full(len(trust), place.file)
        else:
            codes[k] = _stretch_numbers(starts, place, len(trust))
    counted = count_together(runs, codes, ~np.isnan(trust), trust < DOUBT)
    return np.array(counted, np.float64), None


def _trust_of(partition: Partition, weigh: Weigh) -> RowVector:
    """Return the trust in the rows that were read, NaN for those left out."""
    trust = np.full(partition.found.n_read, np.nan, np.float32)
    kept = np.delete(np.arange(len(trust)), partition.found.dropped)
    trust[kept] = weigh(partition.rows)
    return trust


def _raw_of(piece: PartitionPiece, name: str) -> RawContext:
    """Return a column of context; one that is not there misses every value."""
    found = next((raw for raw in piece.context if raw.name == name), None)
    if found is None:
        return RawContext(name, "values", (), np.full(piece.n_read, -1, np.int16))
    return found


def _stretch_numbers(starts: Counts, place: _Place, n_rows: int) -> Counts:
    numbers = place.first + np.arange(n_rows)
    return np.searchsorted(starts[1:], numbers, side="right")


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
