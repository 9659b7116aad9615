"""What a worker holds: the rows of a partition, read and encoded there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustbn._core.clues import Clues
from robustbn._core.config import TableConfig
from robustbn._core.holes import Holes
from robustbn._core.layout import Codes, Layout
from robustbn._core.protocols import Rows, RowVector
from robustbn._rows.kernels import load_kernels
from robustbn._rows.memory import gather
from robustbn._rows.stream.parts import Part
from robustbn._tables.aside import Aside
from robustbn._tables.coded import Table
from robustbn._tables.noticed import Noticed
from robustbn._tables.sources import Source, open_table
from robustbn._tables.table import encode_source, encode_table
from robustbn.exceptions import DataError
from robustbn.network import BayesianNetwork


@dataclass(frozen=True)
class Reader:
    """How partitions are read: what every worker is told once."""

    network: BayesianNetwork
    config: TableConfig
    kernels: str


@dataclass(frozen=True, eq=False)
class FoundInRows:
    """What was found in a batch, in a partition, or in all of them."""

    # n_read, n_missing, n_unknown, ignored, n_incomplete: as in `Reading`
    n_read: int
    n_missing: Mapping[str, int]
    n_unknown: Mapping[str, int]
    ignored: tuple[str, ...]
    dropped: NDArray[np.int64]  # numbers of the rows that were left out
    n_incomplete: int
    # context, given_up, damaged: columns of context, those that turned out to be none, and those
    # that cannot be read
    context: tuple[str, ...]
    given_up: tuple[str, ...]
    damaged: Mapping[str, str]
    name_bytes: int  # that the columns take which rows keep
    clues: Clues  # odd values, and numbers of some rows

    @cached_property
    def kept(self) -> NDArray[np.int64] | None:
        """Numbers of the rows that are left, if any were left out; else None."""
        return np.delete(np.arange(self.n_read), self.dropped) if len(self.dropped) else None

    @classmethod
    def of(cls, table: Table) -> FoundInRows:
        found, aside, dropped = table.reading, table.aside, np.empty(0, np.int64)
        if table.kept is not None:
            dropped = np.setdiff1d(np.arange(found.n_read), table.kept)
        return cls(
            found.n_read, found.n_missing, found.n_unknown, found.ignored, dropped,
            found.n_incomplete, tuple(raw.name for raw in aside.raw), aside.given_up,
            aside.damaged, sum(column.nbytes for column in aside.names.values()), aside.clues,
        )  # fmt: skip

    @classmethod
    def join(cls, founds: Sequence[FoundInRows]) -> FoundInRows:
        """Return what was found in rows that stand one below another."""
        firsts = first_rows(founds)
        dropped, noticed = [], Noticed()
        for each, first in zip(founds, firsts.tolist(), strict=False):
            dropped.append(each.dropped + first)
            noticed.merge(each.clues, first)

        def names(of: str) -> tuple[str, ...]:
            return tuple(dict.fromkeys(name for each in founds for name in getattr(each, of)))

        def sums(of: str) -> Mapping[str, int]:
            return sum((Counter(getattr(each, of)) for each in founds), Counter())

        return cls(
            int(firsts[-1]), sums("n_missing"), sums("n_unknown"), names("ignored"),
            np.concatenate([np.empty(0, np.int64), *dropped]),
            sum(each.n_incomplete for each in founds), names("context"), names("given_up"),
            {name: why for each in founds for name, why in each.damaged.items()},
            sum(each.name_bytes for each in founds), noticed.clues(),
        )  # fmt: skip


def first_rows(founds: Sequence[FoundInRows]) -> NDArray[np.int64]:
    """Return the number of the first row that was read in each, and of all rows at the end."""
    return np.cumsum([0, *(each.n_read for each in founds)], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Partition:
    """The rows of a partition, as a worker holds them: codes, and the same rows packed."""

    layout: Layout
    kernels: str
    codes: Codes
    found: FoundInRows
    asides: tuple[Aside, ...]  # of its batches
    number: int

    @cached_property
    def rows(self) -> Rows:
        """The rows as the kernels holds them."""
        return load_kernels(self.kernels).encode(self.layout, self.codes, _n_threads())

    @cached_property
    def asked(self) -> dict[str, Holes]:
        """What the rows that miss values ask, by the name of the last verdict on them."""
        return {}

    def gather(self, verdict: str, weigh: Callable[[], RowVector]) -> Holes:
        """Return what rows that miss values ask: gathered once, until there is a new verdict."""
        # What is sampled is drawn by the number of the partition: the same question in two of them
        # is answered twice, so that the variances of both add up.
        if verdict not in self.asked:
            self.asked.clear()
            self.asked[verdict] = gather(
                self.layout,
                self.codes,
                weigh(),
                _n_threads(),
                engine=self.kernels,
                seed=self.number,
            )
        return self.asked[verdict]

    def __getstate__(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def __sizeof__(self) -> int:
        """Tell Dask what it holds, the packed rows included."""
        packed = getattr(self.__dict__.get("rows"), "packed", None)
        own = 0 if packed is None else packed.nbytes
        own += self.found.name_bytes + sum(holes.n_bytes for holes in self.asked.values())
        own += sum(raw.codes.nbytes for aside in self.asides for raw in aside.raw)
        return self.codes.nbytes + self.found.dropped.nbytes + own + 1000


def _n_threads() -> int:
    """Return how many threads this worker may use; 1 outside of one."""
    from distributed import get_worker

    try:
        return int(get_worker().state.nthreads)
    except ValueError:
        return 1


def encode_frame(frame: Any, number: int, reader: Reader) -> Partition:
    source = replace(open_table(frame), where=f"Partition {number}")
    return _hold([_encode(source, reader)], number, reader)


def encode_batches(batches: Any, number: int, reader: Reader) -> Partition:
    """Encode what a partition of a Bag holds: frames or arrays, or records."""
    items = list(batches)
    if items and isinstance(items[0], Mapping) and all(map(_is_scalar, items[0].values())):
        items = [items]
    tables = []
    for k, item in enumerate(items):
        where = f"Partition {number}" + (f", batch {k}" if len(items) > 1 else "")
        if isinstance(item, np.ndarray):
            try:
                tables.append(encode_table(item, reader.network, reader.config))
            except DataError as error:
                raise DataError(f"{where}: {error}") from None
        else:
            source = replace(open_table(item), where=where)
            tables.append(_encode(source, reader))
    return _hold(tables, number, reader)


def encode_part(part: Part, number: int, reader: Reader) -> Partition:
    source = replace(part.open(), where=f"Partition {number} ({part.name})")
    return _hold([_encode(source, reader)], number, reader)


def _encode(source: Source, reader: Reader) -> Table:
    return encode_source(source, reader.network, reader.config, is_part=True)


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str) or not hasattr(value, "__len__")


def _hold(tables: Sequence[Table], number: int, reader: Reader) -> Partition:
    """Return tables as one partition, packed: a code that is out of range is found here."""
    layout = reader.network.layout.with_holes(c for t in tables for c in t.holed)
    codes = np.concatenate([np.empty((0, layout.n_nodes), np.uint8), *(t.codes for t in tables)])
    asides = tuple(replace(t.aside, n_rows=t.reading.n_read) for t in tables)
    found = FoundInRows.join([FoundInRows.of(t) for t in tables])
    partition = Partition(layout, reader.kernels, codes, found, asides, number)
    try:
        partition.rows  # noqa: B018 - packs them
    except DataError as error:  # a plain one, because it has to travel
        raise DataError(f"Partition {number}: {error}") from None
    return partition
